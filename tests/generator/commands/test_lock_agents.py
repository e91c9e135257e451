"""`pallas-gen lock --check` and `pallas-gen plan`: agents.lock written, compared and handed to the registry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from pallas_contract.documents.tool_contract import ToolContract
from pallas_contract.probe.probe import Result
from pallas_gen.comparison import side
from pallas_gen.locking import served_tools
from pallas_gen.running import tool

FLEET = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101}\n"
URL = "http://127.0.0.1:24200"


@pytest.fixture(autouse=True)
def project(make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's folder, entered; without docker."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tool, "run", lambda command: None)
    make(FLEET)
    return tmp_path


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> dict[str, Result]:
    """A registry with an agent, and that agent's answer."""
    answers = {"scout": Result("ok", tools={"scout": ToolContract("1")})}
    entry = {"server": {"name": "local.x/scout", "title": "", "remotes": [{"url": "http://127.0.0.1:8101/mcp"}]}}
    monkeypatch.setattr(side, "document", lambda url: {"servers": [entry | {"_meta": {}}]})

    async def answer(target, *, timeout: float) -> Result:
        return answers["scout"]

    monkeypatch.setitem(served_tools.ask.__kwdefaults__, "ask", answer)
    return answers


def test_the_lock_is_written_once_and_then_is_what_is_here(run, project: Path) -> None:
    assert run("lock", "--check")[::2] == (1, "agents.lock is not there: `pallas-gen lock` writes it\n")
    code, out, err = run("lock")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "wrote agents.lock"
    assert "without the tools of scout" in out
    written = (project / "agents.lock").read_bytes()
    assert run("lock")[1].startswith("unchanged agents.lock\n")
    assert (project / "agents.lock").read_bytes() == written
    assert run("lock", "--check") == (0, "agents.lock is what is here\n", "")
    assert run("plan") == (0, "no difference\n", "")


def test_a_container_that_has_the_lock_mounted_sees_the_next_one(run, make, project: Path) -> None:
    file = project / "agents.lock"
    run("lock")
    mounted = file.stat().st_ino
    for title in ("title: A longer one than before, ", ""):
        former = json.loads(file.read_text())
        make(FLEET.replace("scout: {", f"scout: {{{title}"))
        assert run("lock")[1].startswith("wrote agents.lock\n")
        assert json.loads(file.read_text()) != former
        assert file.stat().st_ino == mounted


def test_what_differs_is_named_and_plan_says_whether_it_breaks(run, make, project: Path) -> None:
    run("lock")
    make(FLEET.replace("8101", "8102"))
    code, out, _ = run("lock", "--check")
    assert (code, "http://localhost:8101/mcp -> http://localhost:8102/mcp" in out) == (1, True)
    assert run("plan")[:2] == (1, out)
    make(FLEET.replace("8101", "8101, title: Other"))
    assert run("lock", "--check")[0] == 1
    code, out, _ = run("plan", "--format", "json")
    assert (code, json.loads(out)["cosmetic"], json.loads(out)["breaking"]) == (0, 1, 0)


def test_the_tools_of_a_running_fleet_are_locked_and_compared(run, served: dict[str, Result], project: Path) -> None:
    assert run("lock", "--registry", URL) == (0, "wrote agents.lock\n", "")
    assert json.loads((project / "agents.lock").read_text())["agents"]["scout"]["tools"] == {"scout": {"input": "1"}}
    assert run("lock") == (0, "unchanged agents.lock\n", "")
    served["scout"] = Result("ok", tools={"scout": ToolContract("2")})
    code, out, _ = run("lock", "--check", "--registry", URL)
    assert (code, "agents.scout.tools.scout.input" in out) == (1, True)
    assert run("lock", "--check")[0] == 0, "nobody was asked"


def test_who_does_not_answer_ends_it_and_nothing_is_written(run, served: dict[str, Result], project: Path) -> None:
    served["scout"] = Result("ok")
    assert run("lock", "--registry", URL)[::2] == (1, "scout: tells no tools: it has not told its tools\n")
    assert not (project / "agents.lock").exists()


def test_no_registry_is_the_world_and_no_lock_the_input(run, project: Path) -> None:
    code, out, err = run("lock", "--registry", "http://127.0.0.1:1")
    assert (code, out, err.startswith("no registry answers at http://127.0.0.1:1")) == (1, "", True)
    assert run("plan") == (2, "", "agents.lock: is not there\n    `pallas-gen lock` writes it\n")
    (project / "agents.lock").write_text("<<<<<<< ours\n")
    assert run("plan")[0] == 2
    assert run("lock")[0] == 0
    assert run("lock", "--check", "--upgrade")[0] == 2


def test_only_the_registry_gets_it_and_agents_are_not_made_anew_by_it(run, project: Path) -> None:
    def services() -> dict:
        run("compose")
        return yaml.safe_load((project / "compose.yaml").read_text())["services"]

    before = services()
    run("lock")
    after = services()
    assert before["scout"] == after["scout"]
    sources = [volume["source"] for volume in after["registry"]["volumes"]]
    assert "agents.lock" in sources
    assert before["registry"] != after["registry"]
    run("helm", "-o", "chart")
    values = yaml.safe_load((project / "chart" / "values.yaml").read_text())
    assert values["project"]["lock"]["agents.lock"] == (project / "agents.lock").read_text()
