"""The pytest plugin (entry point `pallas` of pytest11): fixtures, options, a part of the report.

pytest imports this module in every project of an environment, so it imports nothing but pytest; what starts and asks
fleets is imported when the first test wants one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pallas_testing import model_fixture
from pallas_testing.conformance_fixture import conformance  # noqa: F401 - pytest finds fixtures by their names here
from pallas_testing.model_fixture import scripted_model  # noqa: F401 - the same

if TYPE_CHECKING:
    from pallas_testing.fleet.face import Fleet
    from pallas_testing.fleet.start import Running
    from pallas_testing.targets.base import Order

Scope = Literal["session", "package", "module", "class", "function"]

SCOPES: tuple[Scope, ...] = ("session", "package", "module", "class", "function")
_FACE = "pallas_testing.fleet.face"
TARGETS = ("processes", "compose", "cluster")
_MARKER = "fleet(target): the target, or targets, on which the fixture `fleet` of this test runs"


_MISMATCH = (
    "scripted_model is made for one test, the fleet for several: run with --fleet-scope function, or serve "
    "one model for all in `fleet_environment` with `pallas_testing.model.serving`"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and their settings in pytest's configuration."""
    group = parser.getgroup("pallas", "fleets of agents (pallas-kit)")
    group.addoption(
        "--fleet-target",
        action="append",
        choices=TARGETS,
        help="run the fixture `fleet` on this target; several times: on each. Default: processes",
    )
    group.addoption("--fleet-scope", choices=SCOPES, help="how long a fleet is shared by tests. Default: session")
    group.addoption("--fleet-file", help="agents.yaml of the fleet. Default: that of this folder, or the next above")
    parser.addini("fleet_target", "targets of the fixture `fleet`, as --fleet-target", type="args")
    parser.addini("fleet_scope", "scope of a fleet, as --fleet-scope")
    parser.addini("fleet_file", "agents.yaml of the fleet, relative to pytest's root folder")


def pytest_configure(config: pytest.Config) -> None:
    """Tell pytest of the markers."""
    config.addinivalue_line("markers", _MARKER)
    config.addinivalue_line("markers", model_fixture.MARKER)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once on each of its targets."""
    if "fleet_target" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("fleet")
    chosen = marker.kwargs.get("target", marker.args) if marker else ()
    targets = [chosen] if isinstance(chosen, str) else list(chosen)
    if unknown := sorted(set(targets) - set(TARGETS)):
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: no target {unknown[0]}: {', '.join(TARGETS)}")
    if targets or len(_targets(metafunc.config)) > 1:
        metafunc.parametrize("fleet_target", targets or _targets(metafunc.config), indirect=True, scope="session")


def _targets(config: pytest.Config) -> list[str]:
    return list(config.getoption("fleet_target") or config.getini("fleet_target") or TARGETS[:1])


def _scope(fixture_name: str, config: pytest.Config) -> Scope:
    """Return the scope of a running fleet: the option, else the setting, else the whole session."""
    scope = config.getoption("fleet_scope") or config.getini("fleet_scope") or SCOPES[0]
    if scope not in SCOPES:
        raise pytest.UsageError(f"fleet_scope: no scope {scope}: {', '.join(SCOPES)}")
    return scope


@pytest.fixture(scope="session")
def fleet_target(request: pytest.FixtureRequest) -> str:
    """Return the target of the fleet: `processes`, `compose` or `cluster`."""
    target: str = getattr(request, "param", None) or _targets(request.config)[0]
    return target


@pytest.fixture(scope="session")
def fleet_file(request: pytest.FixtureRequest) -> Path:
    """Return agents.yaml of the fleet. A conftest.py may define a fixture of this name that returns another one."""
    from pallas_testing.project import fleet_file as files  # noqa: PLC0415 - only where there is a fleet

    config = request.config
    if option := config.getoption("fleet_file"):
        return config.invocation_params.dir / str(option)
    if setting := config.getini("fleet_file"):
        return config.rootpath / str(setting)
    try:
        return files.nearest(config.invocation_params.dir)
    except files.NoFleetFile as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


@pytest.fixture(scope=_scope)
def fleet_environment() -> Mapping[str, str]:
    """Return variables for the commands that start the fleet, beside those of pytest itself: none, to be overridden."""
    return {}


@pytest.fixture(scope=_scope)
def fleet_expected() -> Mapping[str, str]:
    """Return states other than `ok` that agents come up in, `{"research": "degraded"}`: none, to be overridden."""
    return {}


@pytest.fixture(scope=_scope)
def fleet_order(fleet_file: Path, fleet_environment: Mapping[str, str]) -> Callable[[Path], Order]:
    """Return what to start, once there is a folder to do it in."""
    from pallas_testing.targets.base import Order  # noqa: PLC0415 - only where there is a fleet

    return lambda folder: Order(fleet_file, folder, fleet_environment)


@pytest.fixture(scope=_scope)
def running_fleet(
    fleet_target: str,
    fleet_order: Callable[[Path], Order],
    fleet_expected: Mapping[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Running]:
    """Yield the fleet itself, up, for as many tests as `--fleet-scope` says."""
    from pallas_testing.fleet import start  # noqa: PLC0415 - only where there is a fleet
    from pallas_testing.targets.base import CannotStart  # noqa: PLC0415 - only where there is a fleet

    folder = tmp_path_factory.mktemp("fleet")
    try:
        with start.running(fleet_target, fleet_order(folder), fleet_expected) as running:
            yield running
    except CannotStart as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


@pytest.fixture
def fleet(running_fleet: Running) -> Iterator[Fleet]:
    """Yield a running fleet for one test: what it does to the fleet is undone at its end."""
    from pallas_testing.fleet.face import Fleet  # noqa: PLC0415 - only where there is a fleet

    face = Fleet(running_fleet)
    yield face
    face.restore()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show beneath a failed test what its fleet was doing."""
    report = yield
    text = str(report.longrepr)
    if report.failed and "ScopeMismatch" in text and "scripted_model" in text and "fleet_" in text:
        report.sections.append(("fleet: scope", _MISMATCH))
    face: Any = getattr(item, "funcargs", {}).get("fleet")
    if call.when == "call" and report.failed and type(face).__module__ == _FACE:  # not a fixture of somebody else's
        from pallas_testing.fleet import report as fleet_report  # noqa: PLC0415 - only where there is a fleet

        report.sections.extend(fleet_report.sections(face))
    return report
