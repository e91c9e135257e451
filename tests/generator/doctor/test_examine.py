"""All findings in one run, whatever is wrong."""

from __future__ import annotations

from pathlib import Path

from pallas_contract.codes import Code
from pallas_gen.doctor.examine import examine
from pallas_gen.running.tool import Done

ONE = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101}\n"


def test_a_wrong_project_hides_nothing_of_the_machine(make, machine) -> None:
    path = make(ONE.replace("port", "prt"))
    findings = examine(path, machine({"helm": None}), ["helm"])
    assert next(finding.subject for finding in findings if finding.state == "error") == "helm"
    wrong = [finding for finding in findings if finding.topic == "project"]
    assert Code.UNKNOWN_KEY in {finding.code for finding in wrong}
    assert {finding.topic for finding in findings} == {"machine", "project"}


def test_a_project_that_is_right_is_said_so_and_looked_at(make, machine) -> None:
    findings = examine(make(ONE), machine(), ["compose"])
    assert {finding.topic for finding in findings} == {"machine", "project", "ports", "images", "fleet"}
    assert [finding.message for finding in findings if finding.topic == "project"] == ["1 agent, no errors"]


def test_images_are_asked_for_where_compose_is_and_an_engine_answers(make, machine, tmp_path: Path) -> None:
    path = make(ONE)
    assert "images" not in {finding.topic for finding in examine(path, machine(), [])}
    (tmp_path / "compose.yaml").write_text("")
    absent = {"docker image inspect": Done(1)}
    states = {finding.state for finding in examine(path, machine(absent), []) if finding.topic == "images"}
    assert states == {"warning"}
    away = machine({"docker version": Done(1, "null", "cannot connect")})
    findings = examine(path, away, [])
    assert "images" not in {finding.topic for finding in findings}
    assert [finding.code for finding in findings if finding.state == "warning"] == [Code.ENGINE_AWAY]


def test_the_machine_alone_where_there_is_no_fleet_file(machine, tmp_path: Path) -> None:
    findings = examine(tmp_path / "agents.yaml", machine(), [], project=False)
    assert {finding.topic for finding in findings} == {"machine"}


def test_what_a_process_lacks_here_is_a_warning_of_validate(make, machine, monkeypatch) -> None:
    """The rule is that of `validate`: contract.project.availability."""
    config = "mcp: {servers: {web: {command: npx, args: ['-y', '@s/n']}}}\n"
    path = make(ONE, **{"fastagent.config__yaml": config})
    agent = "from fast_agent import FastAgent\nfast = FastAgent('x')\n\n\n@fast.agent(name='scout', servers=['web'])\n"
    (path.parent / "agents" / "scout.py").write_text(f"{agent}async def main(): ...\n")
    monkeypatch.setenv("PATH", "/nowhere")
    for targets, count in (([], 1), (["processes"], 1), (["compose"], 0)):
        findings = examine(path, machine(), targets)
        assert [finding.code for finding in findings].count(Code.NO_PROGRAM) == count
