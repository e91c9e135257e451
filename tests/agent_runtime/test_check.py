"""`pallas --check`: everything that would stop the start is told in one run, and nothing is started."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pallas_agent_runtime import check, cli
from pallas_agent_runtime.local import ports
from pallas_agent_runtime.local.programs import Member
from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Refused, Where
from pallas_gen.console import read_plan
from tests.generator import test_mistakes as newcomers
from tests.ports import free_ports
from tests.problem_lines import without_codes

INVALID = sorted(path.parent for path in (Path(__file__).parents[1] / "invalid").glob("*/agents.yaml"))
MISTAKES = [case for case in newcomers.CASES if "command" not in case]
START = 'from fast_agent import FastAgent\nfast = FastAgent("demo")\n'
GOOD = f'{START}@fast.agent(name="jarvis")\nasync def jarvis() -> None: ...\n'
REGISTRY, JARVIS, OTHER = free_ports(3)
ONE = f"  jarvis: {{module: agents.jarvis, port: {JARVIS}}}\n"
FLEET = f"""\
name: demo
registry_port: {REGISTRY}
agents:
{ONE}\
  other: {{card: other.md, port: {OTHER}}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "jarvis.py").write_text(GOOD)
    (tmp_path / "other.md").write_text("---\ntype: agent\n---\nHello\n")
    (tmp_path / "agents.yaml").write_text(FLEET)
    (tmp_path / "fastagent.config.yaml").write_text("default_model: passthrough\n")
    return tmp_path


def run(*arguments: str, cwd: Path | None = None) -> tuple[int, str, str]:
    command = [sys.executable, "-P", "-m", "pallas_agent_runtime", "--check", *arguments]
    done = subprocess.run(command, check=False, cwd=cwd, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, without_codes(done.stderr)


@pytest.mark.slow
def test_a_fleet_that_can_start_and_all_that_cannot_in_one_run(project: Path) -> None:
    assert run() == (0, "agents.yaml: 2 agents can start\n", "")
    (project / "agents" / "jarvis.py").write_text(f"{GOOD}__import__('no_such_module')\n")
    (project / "other.md").write_text("---\nsevers: [x]\n---\nHello\n")
    code, out, err = run()
    assert (code, out) == (2, "")
    assert "agents.yaml:4:12 agents.jarvis.module: `agents.jarvis` cannot be imported: No module named" in err
    assert "agents/jarvis.py:5" in err
    assert "other.md:2:1 severs: unknown key of a card of type `agent`\n    did you mean `servers`?" in err
    assert "Unsupported fields" not in err  # fast-agent would only say the same
    assert "Traceback" not in err
    code, out, err = run("--format", "json")
    assert (code, err) == (2, "")
    problems = {(entry["code"], entry["file"], entry["line"]) for entry in json.loads(out)["problems"]}
    assert problems == {("PAL223", "agents.yaml", 4), ("PAL209", "other.md", 2)}


GUARDED = """\
gateway:
  port: {port}
  agents: [other]
  access: {{tokens: {{me: {{file: keys/me}}}}}}
registry:
  registration: {{tokens: {{partner: {{file: keys/partner}}}}}}
"""


@pytest.mark.slow
def test_tokens_that_are_none_are_told_with_the_agents(project: Path) -> None:
    """The gateway, the registry and an agent would each end with it at the start."""
    access = "access: {tokens: {gateway: {file: keys/gateway}}}"
    text = FLEET.replace(ONE, "").replace("{card: other.md,", f"{{card: other.md, {access},")
    (project / "agents.yaml").write_text(text + GUARDED.format(port=free_ports(1)[0]))
    (project / "keys").mkdir(mode=0o700)
    for name in ("me", "gateway", "partner"):
        (project / "keys" / name).write_text(f"{name}-{'x' * 32}\n")
    assert run() == (0, "agents.yaml: 1 agent can start\n", "")
    (project / "keys" / "me").write_text("")
    (project / "keys" / "partner").write_text("canary\n")
    code, out, err = run()
    assert (code, out) == (2, "")
    assert "gateway.access.tokens.me.file: keys/me is not a token" in err
    assert "openssl rand -hex 32 > keys/me" in err
    assert "registry.registration.tokens.partner.file: keys/partner holds no token" in err
    (project / "keys" / "gateway").write_text("short\n")
    code, out, err = run("-f", str(project.relative_to(project.parent)), "--format", "json", cwd=project.parent)
    assert (code, err) == (2, "")
    assert "canary" not in out
    fields = {entry["field"] for entry in json.loads(out)["problems"]}
    wrong = {"registry.registration.tokens.partner.file", "agents.other.access.tokens.gateway.file"}
    assert wrong <= fields, "the gateway has the second one too"
    assert {entry["file"] for entry in json.loads(out)["problems"]} == {f"{project.name}/agents.yaml"}


@pytest.mark.slow
def test_a_document_has_each_place_as_it_is_seen_from_here(project: Path) -> None:
    """An agent that cannot be loaded is told after its process has gone into the project, and others before."""
    (project / "agents" / "jarvis.py").write_text(f"{GOOD}__import__('no_such_module')\n")
    _, out, _ = run("-f", str(project), "--format", "json", cwd=project.parent)
    assert {entry["file"] for entry in json.loads(out)["problems"]} == {f"{project.name}/agents.yaml"}
    _, out, _ = run("-f", str(project), "--agent", "jarvis", "--format", "json", cwd=project.parent)
    assert {entry["file"] for entry in json.loads(out)["problems"]} == {f"{project.name}/agents.yaml"}


@pytest.mark.slow
def test_servers_that_only_running_the_module_tells(project: Path) -> None:
    text = GOOD.replace('name="jarvis"', 'name="jarvis", servers="argos atlas".split()')
    (project / "agents" / "jarvis.py").write_text(text)
    code, _, err = run("--agent", "jarvis")
    assert code == 2
    assert err.startswith(
        "agents.yaml:4:12 agents.jarvis.module: uses MCP servers that there are not: `argos`, `atlas`\n"
    )


@pytest.mark.slow
def test_a_program_that_is_not_on_this_machine_is_a_warning(project: Path) -> None:
    (project / "other.md").write_text("---\ntype: agent\nservers: [absent, here, elsewhere]\n---\nHello\n")
    servers = {
        "absent": "{command: no-such-uvx, args: [x]}",
        "here": "{command: sh}",
        "elsewhere": "{command: no-such-npx, env: {PATH: /opt}}",
        "unused": "{command: no-such-npx}",
    }
    text = "".join(f"    {name}: {entry}\n" for name, entry in servers.items())
    (project / "fastagent.config.yaml").write_text(f"default_model: passthrough\nmcp:\n  servers:\n{text}")
    code, _, err = run("--agent", "other")
    warning, _ = err.split("\n    ")
    expected = (
        ":4:14 mcp.servers.absent.command: there is no program `no-such-uvx` here: as a process the agent is without"
    )
    assert (code, warning.startswith(f"warning: fastagent.config.yaml{expected}")) == (0, True)


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have fast-agent find nothing wrong with any agent, and nobody have their ports."""
    monkeypatch.setattr(check, "_checked", lambda member, options: check.Result(0, ""))
    monkeypatch.setattr(ports, "taken", lambda members, tree, fleet: [])


HERE = {
    "an import that nobody brings": "an image may have it; a process here has what is installed here",
    "a secret file that is not there": "containers may get it later; a process here does not start without it",
    "no model": "containers may get FAST_AGENT_MODEL where they are deployed; a process here has what is here",
}
"""Mistakes that only `pallas` refuses."""


def refused_by_validate(folder: Path) -> bool:
    try:
        read_plan(folder / "agents.yaml")
    except Refused:
        return True
    return False


CONTAINERS = {
    "pool_too_small": "networks are of containers alone",
}
"""What validate refuses in `tests/invalid` and processes do not have."""


@pytest.mark.usefixtures("unloaded")
@pytest.mark.parametrize("folder", INVALID, ids=lambda path: path.name)
def test_what_validate_refuses_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused = refused_by_validate(folder)
    expected = 2 if refused and folder.name not in CONTAINERS else 0
    assert (check.fleet(folder / "agents.yaml", {}), "can start" in capsys.readouterr().out) == (expected, not expected)


@pytest.mark.usefixtures("unloaded")
@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case["name"])
def test_a_newcomers_mistake_that_validate_refuses_is_refused(
    case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newcomers.write(tmp_path)
    newcomers.make(tmp_path, case)
    code = check.fleet(tmp_path / "agents.yaml", {})
    assert "Traceback" not in capsys.readouterr().err
    if case["name"] not in HERE:
        assert code == (2 if refused_by_validate(tmp_path) else 0)


@pytest.mark.usefixtures("unloaded")
def test_a_module_that_is_installed_is_there_as_at_the_start(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "agents.yaml").write_text(f"{FLEET}services: {{web: {{module: http.server, port: 8203}}}}\n")
    assert check.fleet(Path("agents.yaml"), {}) == 0
    (project / "agents.yaml").write_text(f"{FLEET}services: {{web: {{module: no_such.server, port: 8203}}}}\n")
    assert check.fleet(Path("agents.yaml"), {}) == 2
    assert capsys.readouterr().err.count("there is no module `no_such.server`") == 1


@pytest.mark.usefixtures("unloaded")
def test_the_project_is_the_folder_that_a_link_leads_to_as_at_the_start(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "agents.yaml").symlink_to(project / "agents.yaml")
    monkeypatch.chdir(elsewhere)
    assert check.fleet(Path("agents.yaml"), {}) == 0
    (project / "other.md").unlink()
    assert check.fleet(Path("agents.yaml"), {}) == 2


@pytest.mark.usefixtures("unloaded")
def test_a_port_of_somebody_else_ends_it_as_it_would_end_the_start(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = Problem(
        Where("agents.yaml", 4, 35, "agents.jarvis.port"), "jarvis cannot listen", "stop it", code=Code.SAME_PORT
    )
    monkeypatch.setattr(ports, "taken", lambda members, tree, fleet: [busy])
    assert check.fleet(Path("agents.yaml"), {}) == 1
    assert capsys.readouterr() == ("", f"{busy}\n")
    (project / "other.md").write_text("none\n")
    assert check.fleet(Path("agents.yaml"), {}) == 2
    assert "other.md:1:1: has no frontmatter" in capsys.readouterr().err


def test_a_file_that_is_refused_ends_it_before_any_agent(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "agents.yaml").write_text(FLEET.replace(str(OTHER), str(JARVIS)).replace("other.md", "none.md"))
    assert check.fleet(Path("agents.yaml"), {}) == 2
    assert f"port {JARVIS} is already used" in capsys.readouterr().err


def member(*command: str) -> Member:
    health = "http://127.0.0.1:1"
    return Member(
        name="x", kind="agent", command=command, env={}, health_url=health, stage=0, cwd=Path.cwd(), url=health
    )


def test_a_check_that_crashes_is_the_worlds_fault_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    result = check._checked(member(sys.executable, "-c", "raise SystemExit(9)"))
    assert (result.code, result.stderr) == (1, "x: the check ended with 9\n")
    monkeypatch.setattr(check, "TIMEOUT", 0.01)
    result = check._checked(member(sys.executable, "-c", "input() if 0 else __import__('time').sleep(60)"))
    assert (result.code, result.stderr) == (1, "x: its code was still being imported after 0 s\n")
    assert [str(problem) for problem in result.problems] == [
        "agents.yaml agents.x: its code was still being imported after 0 s [PAL223]"
    ]


def test_the_problems_of_several_agents_are_told_apart() -> None:
    assert list(check._blocks("a: x\n    y\nb: z\n")) == ["a: x\n    y", "b: z"]
    assert list(check._blocks("")) == []


def test_of_one_agent_it_prints_in_the_same_form(project: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, name: str, *, allow_plain_secrets: bool) -> list[object]:
        raise Refused([])

    monkeypatch.setattr(check, "agent", refused)
    monkeypatch.setattr(cli, "_defer", lambda: None)  # nothing in this process waits for its use
    assert cli.main(["--check", "--agent", "jarvis"]) == 2
    monkeypatch.setattr(check, "agent", lambda path, name, *, allow_plain_secrets: [])
    assert cli.main(["--check", "--agent", "jarvis"]) == 0
    assert capsys.readouterr().out == "agents.yaml: jarvis can start\n"
