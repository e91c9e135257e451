"""Options and fixtures of all tests."""

from __future__ import annotations

import atexit
import gc
import itertools
import os
import signal
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from xdist.scheduler import LoadFileScheduling

from pallas_service import deferred_models

# The commands that tests start by the hundred are compiled once, also where the environment forbids to keep it: a
# `pallas-gen validate` takes a third of the processor time then. Workers and commands inherit it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# As `make` does, for who starts `.venv/bin/pytest`: tests call `pallas`, `pallas-gen` and `uv` by their names.
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))

# There are none, and to find that out each process that has a model reads the metadata of all packages: 10 ms.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

# Of a thousand models in what is imported to read the tests a worker uses some, and builds them then, as an agent does:
# an eighth of what it takes to read them. What a test defines is built at once.
deferred_models.defer()

# A session holds a million objects that are no garbage: to look through them again and again, and once more at the end,
# is a third of what it takes to read all tests.
gc.set_threshold(100_000, 50, 50)
atexit.register(gc.freeze)

# A shell ignores SIGINT for what it starts in the background, and who inherits that is not interrupted: fleets either.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_VARIABLES: dict[bytes, bytes] = vars(os.environ)["_data"]
"""What is behind `os.environ`, which decodes all of it for a copy: a second of a run of 8,500 tests."""
TESTS = Path(__file__).parent
ROOT = TESTS.parent
LONGEST = (
    # those of the cluster
    "e2e/test_cluster_fixture.py",
    "e2e/test_cluster_examples.py",
    "e2e/test_cluster_options.py",
    "e2e/test_cluster.py",
    "e2e/test_cluster_guarded.py",
    # those beside
    "tools/supply_chain/test_release.py",
    "agent_runtime/upstream/test_examples.py",
    "agent_runtime/upstream/test_human_input.py",
    "e2e/test_conformance.py",
    "e2e/test_baked.py",
    "e2e/test_stranger.py",
    "packaging/test_wheel.py",
    # the others
    "e2e/test_commands.py",
    "e2e/test_compose.py",
    "testing/targets/test_compose.py",
    "agent_runtime/test_bad_input.py",
    "benchmarks/test_runs.py",
    "e2e/test_local.py",
    "e2e/test_data_pool.py",
    "e2e/test_local_percolate.py",
    "e2e/test_local_data_pool.py",
    "agent_runtime/test_starting.py",
    "e2e/test_percolate.py",
    "registry/status_page/test_browser.py",
    "e2e/test_atlas.py",
    "e2e/test_local_atlas.py",
    "e2e/test_upstream.py",
    "gateway/test_console_page.py",
    "agent_runtime/telemetry/test_traces.py",
    "agent_runtime/access/test_forwarding.py",
    "tools/site/test_sources.py",
    "e2e/test_demo.py",
    "e2e/test_access.py",
    "testing/test_plugin.py",
    "proof/test_load.py",
    "agent_runtime/test_check.py",
    "agent_runtime/test_probed.py",
    "chart/test_kubernetes.py",
    "chart/test_policy.py",
)
"""The modules that take long, in each lane the longest first: none is to be waited for alone. Of those that start ten
agents no two come within the first four, which begin together."""

TOGETHER = ("tests/agent_runtime/pair/", "tests/agent_runtime/upstream/", "tests/testing/model/")
"""Folders whose modules share the agents that they call, or imports of seconds: one worker runs them all, and starts or
reads these once."""

APART = ("tests/e2e/test_cluster_examples.py::",)
"""Modules whose tests share nothing: each has a fleet of its own, and goes to whichever worker is free."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the expected files instead of comparing with them")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Have each worker begin to read the tests at another place: what one compiled there the others find.

    In a fresh clone that is all of them, 10 s of processor time, which each worker took for itself.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    if worker:
        files = list(itertools.chain(*map(files_of, session.config.args)))
        first = worker * len(files) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        session.config.args = files[first:] + files[:first]


def files_of(argument: str) -> list[str]:
    """Return the files with tests in a folder; a file or a test as it is."""
    folder = Path(argument)
    return sorted(map(str, folder.rglob("test_*.py"))) if folder.is_dir() else [argument]


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Put the longest first for workers, and those of the lane beside after the others that it runs.

    Without workers those with a cluster come last, for it runs until the session ends.
    """
    if "PALLAS_TEST_FILES" in os.environ and os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0":
        list_files(items, Path(os.environ["PALLAS_TEST_FILES"]))
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=attrgetter("path"))  # the same in each, wherever it began
    yield
    if "PYTEST_XDIST_WORKER" in os.environ:
        order: Mapping[Path, int] = {TESTS / name: number for number, name in enumerate(LONGEST)}
        later = [(item.get_closest_marker("beside") is not None, order.get(item.path, len(LONGEST))) for item in items]
        items[:] = [item for _, item in sorted(zip(later, items, strict=True), key=itemgetter(0))]
    else:
        items.sort(key=lambda item: item.get_closest_marker("cluster") is not None)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Take what was read to be no garbage: pytest looks through all objects five times when it ends.

    Garbage that tests make is found as before, and models that they define are built as usual.
    """
    if log := sys.modules.get("structlog"):  # by its own default tracebacks are pictures, of 0.1 s of processor time
        log.dev.ConsoleRenderer.get_active().exception_formatter = log.dev.plain_traceback
    deferred_models.as_usual()
    gc.freeze()


def list_files(items: Iterable[pytest.Item], folder: Path) -> None:
    """Write for each mark the files of the tests that carry it, a line each, so that a later run reads no others.

    `TESTS` has all tests, so that it can be told at the end whether each has run.
    A test of a run of its own counts for that mark alone: the others have nothing to run in a file of such tests.
    `folder` is there only when all of them are: another run waits for it.
    """
    files: dict[str, set[str]] = defaultdict(set)
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        for name in marks & {"alone", "waits", "beside"} or marks:
            files[name].add(item.path.relative_to(ROOT).as_posix())
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    unfinished.mkdir(parents=True)
    (unfinished / "TESTS").write_text("".join(f"{item.nodeid}\n" for item in items), "utf-8")
    for name, paths in files.items():
        (unfinished / name).write_text("".join(f"{path}\n" for path in sorted(paths)), "utf-8")
    unfinished.rename(folder)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    """Share the tests among workers by `Scheduling` where a run says `--dist loadfile`."""
    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


class Scheduling(LoadFileScheduling):
    """A module to a worker, the modules of a folder, or a test."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(APART):
            return nodeid
        folders = (folder for folder in TOGETHER if nodeid.startswith(folder))
        return next(folders, super()._split_scope(nodeid))


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Any]:
    """Chromium for the tests of a module, which run in its loop: each opens a context of its own, and closes it.

    A browser takes a second of processor time to start, a context half as much.
    """
    from playwright.async_api import async_playwright  # noqa: PLC0415 - seven of ten workers open no browser

    from tools.browser import CHROMIUM  # noqa: PLC0415

    async with async_playwright() as driver:
        started = await driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        await started.close()


@pytest.fixture(autouse=True)
def _leaves_the_process_alone() -> Iterator[None]:
    """What a test changed would be another one's, on this worker, in some of the runs: `PALLAS_BIND` for example."""
    before, handlers = _VARIABLES.copy(), {number: signal.getsignal(number) for number in SIGNALS}
    yield
    names = {os.fsdecode(name) for name, _ in before.items() ^ _VARIABLES.items()} - {"PYTEST_CURRENT_TEST"}
    left = names | {number.name for number, handler in handlers.items() if signal.getsignal(number) != handler}
    if left:
        _put_back({os.fsdecode(name): os.fsdecode(value) for name, value in before.items()}, handlers)
    assert left == set(), "changed for good: ask for the fixture `as_it_was`"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have probes wait a minute where a test does not say how long: the 3 s are no part of what it tests."""
    from pallas_contract.probe import probe, quick, session  # noqa: PLC0415 - not for every worker

    for module, name in ((probe, "ASIDE"), (session, "ASIDE"), (quick, "_ASIDE")):  # for the end of a session
        monkeypatch.setattr(module, name, 60.0)
    monkeypatch.setitem(probe.probe.__kwdefaults__, "timeout", 60.0)
    monkeypatch.setitem(quick.ask.__kwdefaults__, "timeout", 60.0)


@pytest.fixture
def as_it_was() -> Iterator[None]:
    """Put back what a command that runs in this process changes of it."""
    before, handlers = dict(os.environ), {number: signal.getsignal(number) for number in SIGNALS}
    yield
    _put_back(before, handlers)


def _put_back(environ: Mapping[str, str], handlers: Mapping[signal.Signals, Any]) -> None:
    for name in os.environ.keys() - environ.keys():
        del os.environ[name]
    os.environ.update(environ)
    for number, handler in handlers.items():
        if signal.getsignal(number) != handler:
            signal.signal(number, handler)


@pytest.fixture
def expected(request: pytest.FixtureRequest):
    """Compare a text with a committed file, or rewrite that file under `--rewrite`."""
    rewrite = request.config.getoption("--rewrite")

    def check(path: Path, text: str) -> None:
        if rewrite:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        assert path.is_file(), f"{path.relative_to(ROOT)} is missing: run `make golden`"
        assert text == path.read_text("utf-8")

    return check
