"""agents.yaml and fast-agent's configuration as the registry follows them: read at start, and when they change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import PositiveInt, TypeAdapter, ValidationError

from pallas_contract import limited_file, names
from pallas_contract.codes import Code
from pallas_contract.documents import lock as locks
from pallas_contract.documents.lock import Lock
from pallas_contract.fleet import fastagent, fastagent_files
from pallas_contract.fleet.fastagent import Capabilities
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.problems import Problem, Refused, Where, refuse_errors
from pallas_contract.validate import load as validate_load
from pallas_registry.registration import token_files
from pallas_registry.registration.token_files import RegistrationTokens

POLL_SECONDS = 1.0
_LONGEST_REASON = 500
_NUMBERS = TypeAdapter(dict[str, PositiveInt])

Stamp = tuple[tuple[int, int, int, int] | None, ...]
"""(mtime_ns, size, inode, links) of each file; None where there is no file."""


@dataclass(frozen=True, slots=True)
class FleetReading:
    """The content of the files: the fleet, and what its model can do."""

    fleet: ResolvedFleet
    capabilities: Capabilities | None
    warnings: tuple[Problem, ...] = ()
    tokens: RegistrationTokens | None = None
    """Those that agents outside of the file may register with; None when nobody may."""
    token_files: tuple[Path, ...] = ()
    written: datetime | None = None
    """When the two files were changed last."""
    replicas: Mapping[str, int] | None = None
    """How many replicas run of the agents of which that is known, where something else than the fleet file decides."""
    path: Path | None = None
    """The fleet file."""
    lock: Lock | None = None
    """What agents.lock beside it has; None where there is none, or one of no use."""
    lock_problems: tuple[Problem, ...] = ()
    """Why it is of no use; in `warnings` too."""
    servers: tuple[str, ...] = ()
    """The names of those `mcp.servers` in fast-agent's configuration that have a URL, also of members of the fleet."""
    model: str = ""
    """The default model as it is written there."""

    def expected_replicas(self, agent: str) -> int:
        """Return the replicas that an agent of the file should have; 1 where nothing is known, as with autoscaling."""
        if self.replicas is not None:
            return self.replicas.get(agent, 1)
        return self.fleet.agents[agent].replicas


def load(path: Path, secrets: Path = Path(names.SECRETS_DIR)) -> FleetReading:
    """Read agents.yaml at `path`, what is beside it, and the tokens in `secrets` or where it says.

    Raises:
        Refused: with every error of all of them.
    """
    errors: list[Problem] = []
    accepted: RegistrationTokens | None = None
    files: dict[str, Path] = {}
    replicas: Mapping[str, int] | None = None
    lock: Lock | None = None
    lock_problems: tuple[Problem, ...] = ()
    try:
        fleet, _, warnings = validate_load.load(path)
        if registration := fleet.registry.registration:
            files = token_files.paths(registration, path.parent, secrets)
            accepted = token_files.read(registration, files, path.name)
    except Refused as refused:
        errors += refused.problems
    try:
        config, notes = fastagent.load(path.parent)
        notes = refuse_errors(notes)
    except Refused as refused:
        errors += refused.problems
    try:
        replicas = _replicas(path.with_name(names.REPLICAS_FILE))
    except Refused as refused:
        errors += refused.problems
    try:
        lock = _lock(path.with_name(names.LOCK_FILE))
    except Refused as refused:  # the fleet can be watched without what it was locked to
        lock_problems = tuple(replace(problem, level="warning") for problem in refused.problems)
    if errors:
        raise Refused(errors)
    written = _written(path, path.parent / config.file)
    return FleetReading(
        fleet=fleet,
        capabilities=config.capabilities,
        warnings=(*warnings, *notes, *lock_problems),
        tokens=accepted,
        token_files=tuple(files.values()),
        written=written,
        replicas=replicas,
        path=path,
        lock=lock,
        lock_problems=lock_problems,
        servers=tuple(server for server, url in config.servers.items() if url),
        model=config.default_model,
    )


def _replicas(path: Path) -> Mapping[str, int] | None:
    """Return the numbers in the file at `path`, or None where there is no such file.

    Raises:
        Refused: they cannot be read.
    """
    try:
        return _NUMBERS.validate_json(limited_file.read(path))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError):
        raise Refused(
            [Problem(Where(path.name), 'must be a JSON object of agents: {"name": replicas}', code=Code.REPLICAS_FILE)]
        ) from None


def _lock(path: Path) -> Lock | None:
    """Return the lock in the file at `path`, or None where there is no such file.

    Raises:
        Refused: it cannot be read, or is no lock.
    """
    try:
        data = limited_file.read(path, locks.LARGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"cannot be read: {limited_file.reason(error)}"
        raise Refused([Problem(Where(path.name), message, code=Code.LOCK_FILE)]) from None
    return locks.parse(data, path.name)


def _written(*paths: Path) -> datetime | None:
    times = [stamp[0] for path in paths if (stamp := _stamp(path))]
    return datetime.fromtimestamp(max(times) / 1e9, UTC) if times else None


class FleetWatcher:
    """The files as they are followed: read again once they changed. Blocking: call it from a thread."""

    def __init__(self, path: Path, *, read: Callable[[Path], FleetReading] = load) -> None:
        self._path = path
        self._read = read
        beside = (*fastagent_files.CONFIG, names.REPLICAS_FILE, names.LOCK_FILE)
        self._files = (path, *(path.with_name(name) for name in beside))
        self._tokens: tuple[Path, ...] = ()
        self._stamp_read: Stamp = ()
        self._changing: Stamp | None = None
        self._lock: Lock | None = None
        self.ok = False
        """False while the files on disk cannot be used and an earlier reading is."""

    def first(self) -> FleetReading:
        """Return the reading at start.

        Raises:
            Refused: there is no earlier fleet to keep.
        """
        return self._load(self._stamp())

    def poll(self) -> FleetReading | None:
        """Return the new reading once after each change, else None.

        A change is read when it has stood still from one poll to the next: half of a file being written can be a
        valid, shorter fleet.

        Raises:
            Refused: once per change; the caller keeps the fleet it has.
        """
        stamp = self._stamp()
        if stamp in (self._stamp_read, self._changing):
            settled = stamp != self._stamp_read
            self._changing = None
            return self._load(stamp) if settled else None
        self._changing = stamp
        return None

    def _load(self, stamp: Stamp) -> FleetReading:
        self._stamp_read = stamp
        self.ok = False
        fleet_entry, lock_entry = stamp[0], stamp[len(self._files) - 1]
        if _was_replaced(fleet_entry):
            raise Refused([_replaced(self._path.name)])
        try:
            loaded = self._read(self._path)
        except Refused:
            raise
        except (KeyboardInterrupt, SystemExit):
            raise
        # A defect of ours must not end a registry that has a fleet to go on with. A panic of pydantic is no Exception.
        except BaseException as error:
            message = f"cannot be checked: {type(error).__name__}: {str(error)[:_LONGEST_REASON]}"
            hint = "this is a defect of pallas-kit, please report it; undoing the last change of the file helps"
            raise Refused([Problem(Where(self._path.name), message, hint, code=Code.DEFECT)]) from error
        if _was_replaced(lock_entry):
            problem = replace(_replaced(names.LOCK_FILE), level="warning")
            loaded = replace(loaded, warnings=(*loaded.warnings, problem), lock_problems=(problem,))
        self.ok = True
        if not loaded.lock_problems or self._lock is None:  # the lock of before stays where there is one of no use
            self._lock = loaded.lock
        # the reading says which token files there are, and only then can they be watched
        if self._tokens != loaded.token_files:
            self._tokens = loaded.token_files
            self._stamp_read = stamp[: len(self._files)] + tuple(map(_stamp, self._tokens))
        return replace(loaded, lock=self._lock)

    def _stamp(self) -> Stamp:
        return tuple(_stamp(path) for path in (*self._files, *self._tokens))


def _stamp(path: Path) -> tuple[int, int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino, stat.st_nlink


def _was_replaced(entry: tuple[int, int, int, int] | None) -> bool:
    """Return whether a file that is mounted alone is the one of before: another has its name on the host now."""
    return entry is not None and entry[3] == 0


def _replaced(name: str) -> Problem:
    hint = "`docker compose restart registry`; an editor that writes in place needs none"
    message = "was replaced on the host, and this container still has the old one"
    return Problem(Where(name), message, hint, code=Code.FILE_REPLACED)
