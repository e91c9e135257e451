"""The pytest plugin as a user's pytest runs it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import httpcore  # noqa: F401 - httpx imports it late: pytester would forget it, and the rest of this process has another
import pytest
import yaml

from pallas_testing import plugin
from pallas_testing.targets import table
from tests.documentation.blocks import files

pytest_plugins = ["pytester"]

FILE = "agents: {harper: {module: a, port: 1}}\n"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, root: Path) -> pytest.Pytester:
    """A user's project in which starting a fleet costs nothing."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("processes", "compose"):
        monkeypatch.setitem(table.TARGETS, name, "tests.testing.fleet.registry_stub:Stub")
    pytester.syspathinsert(root)
    pytester.path.joinpath("agents.yaml").write_text(FILE)
    return pytester


def run(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    return project.runpytest_inprocess("-p", "pallas_testing.plugin", "-p", "no:cacheprovider", *options)


def test_it_costs_nothing_where_nobody_wants_a_fleet() -> None:
    heavy = "{'asyncio', 'docker', 'httpx', 'mcp', 'pydantic', 'testcontainers', 'yaml'} & set(sys.modules)"
    code = f"import sys, pytest; before = {heavy}; import pallas_testing.plugin; print({heavy} - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_fleet_is_shared_by_a_session_and_each_test_has_its_own_view(project: pytest.Pytester) -> None:
    project.makepyfile("""
        def test_kills(fleet):
            fleet.faults.kill("harper")
            fleet.wait_for({"harper": "error"})

        def test_knows_nothing_of_it(fleet, running_fleet):
            assert running_fleet.target.done[:2] == ["kill harper", "restore harper"]
            assert not fleet.registry.events
            assert fleet.registry.state("harper").status == "ok"
    """)
    run(project).assert_outcomes(passed=2)


def test_the_scope_is_configurable(project: pytest.Pytester) -> None:
    project.makepyfile("""
        from tests.testing.fleet.registry_stub import Stub

        def test_one(fleet):
            Stub.first = Stub.last

        def test_two(fleet):
            assert Stub.last is not Stub.first
            assert Stub.first.done == ["stop"]
    """)
    run(project, "--fleet-scope", "function").assert_outcomes(passed=2)
    project.makeini("[pytest]\nfleet_scope = function\n")
    run(project).assert_outcomes(passed=2)


def test_targets_come_from_marker_option_and_setting(project: pytest.Pytester) -> None:
    project.makepyfile("""
        import pytest

        def test_any(fleet_target): print("any on", fleet_target)

        @pytest.mark.fleet("compose")
        def test_marked(fleet_target): print("marked on", fleet_target)
    """)
    run(project, "-s").stdout.fnmatch_lines(["*any on processes*", "*marked on compose*"])
    both = ["--fleet-target", "processes", "--fleet-target", "compose"]
    result = run(project, "-v", *both)
    result.stdout.fnmatch_lines_random(["*test_any[[]processes]*", "*test_any[[]compose]*", "*test_marked[[]compose]*"])
    result.assert_outcomes(passed=3)
    project.makeini("[pytest]\nfleet_target = compose\n")
    run(project, "-s").stdout.fnmatch_lines(["*any on compose*"])


def test_the_options_name_each_target_that_there_is() -> None:
    assert sorted(plugin.TARGETS) == sorted(table.TARGETS)


def test_an_unknown_target_is_refused(project: pytest.Pytester) -> None:
    project.makepyfile("import pytest\n@pytest.mark.fleet('moon')\ndef test_it(fleet): pass")
    run(project).stdout.fnmatch_lines(["*test_it: no target moon: processes, compose*"])


def test_a_failed_test_shows_its_fleet(project: pytest.Pytester) -> None:
    project.makepyfile("""
        def test_fails(fleet):
            fleet.faults.kill("harper")
            assert fleet.registry.saw("harper", "error", "unknown", within=0.2)
    """)
    result = run(project)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*harper was not seen error -> unknown within 0.2 s",
            "*fleet on stub: registry*",
            "harper: error",
            "(change) harper: ok -> error, connection refused",
            "kill harper",
            "*fleet: log of harper (error)*",
            "first line of harper",
        ]
    )


def test_a_missing_file_is_told_in_one_line(project: pytest.Pytester) -> None:
    project.makepyfile("def test_it(fleet): pass")
    result = run(project, "--fleet-file", "elsewhere/agents.yaml")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*elsewhere/agents.yaml: No such file or directory. Name another one with --fleet-file"]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_fixtures_of_the_user_decide(project: pytest.Pytester) -> None:
    project.makepyfile("""
        import pytest

        @pytest.fixture(scope="session")
        def fleet_file(tmp_path_factory):
            path = tmp_path_factory.mktemp("other") / "agents.yaml"
            path.write_text("agents: {scout: {module: a, port: 1}}")
            return path

        @pytest.fixture(scope="session")
        def fleet_environment():
            return {"PLANTED": "yes"}

        def test_it(fleet, running_fleet):
            assert fleet.agents == ("scout",)
            assert running_fleet.target.order.environ["PLANTED"] == "yes"
    """)
    run(project).assert_outcomes(passed=1)


MODEL_OF_A_TEST = """
import pytest

@pytest.fixture{scope}
def fleet_environment(scripted_model):
    return scripted_model.environ()

def test_it(fleet, running_fleet, scripted_model):
    assert running_fleet.target.order.environ["OPENAI_BASE_URL"] == f"{scripted_model.url}/v1"
"""


def test_a_fleet_of_one_test_may_have_the_model_of_that_test(project: pytest.Pytester) -> None:
    project.makepyfile(MODEL_OF_A_TEST.replace("{scope}", ""))
    run(project, "--fleet-scope", "function").assert_outcomes(passed=1)
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["scripted_model is made for one test, the fleet for several: run with *"])


def test_a_scripted_model_comes_along(project: pytest.Pytester) -> None:
    project.makepyfile("def test_it(scripted_model): assert scripted_model.environ()")
    run(project).assert_outcomes(passed=1)


def test_the_workflow_of_the_page_runs_the_tests() -> None:
    workflow = yaml.safe_load(files("fleet-test")[".github/workflows/fleet.yaml"])
    steps = [step["run"] for step in workflow["jobs"]["test"]["steps"] if "run" in step]
    assert steps == ["pip install 'pallas-kit[local,testing]'", "python -m pytest"]


@pytest.mark.slow
def test_the_tests_of_the_page_and_of_the_first_example(tmp_path: Path, root: Path) -> None:
    example = shutil.copytree(root / "examples" / "01-hello", tmp_path / "hello")
    for name in ("tests/test_fleet.py", "tests/test_conformance.py"):
        (example / name).write_text(files("fleet-test")[name])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pallas_testing.plugin", "-p", "no:cacheprovider", "tests"]
    env = {"PATH": "/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=example, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout
    assert sorted(path.name for path in example.iterdir()) == sorted(
        path.name for path in (root / "examples" / "01-hello").iterdir()
    )
