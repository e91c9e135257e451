"""The mistakes of newcomers, one at a time in a project that is right: each gets its place, reason and remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

START = 'from fast_agent import FastAgent\nfast = FastAgent("trip")\n'
PROJECT = {
    "agents.yaml": """\
name: trip
registry_port: 24200
# A comment keeps the lines of the cases apart from those of their edits.
agents:
  planner:
    module: agents.planner
    port: 24201
    depends_on: [weatherman, packer, tides]
  weatherman: {module: agents.weatherman, port: 24202}
# A card.
  packer:
    card: agents/packer.md
    port: 24203
services:
  tides: {module: tides, port: 24211}
""",
    "agents/planner.py": f'{START}@fast.agent(name="planner", servers=["weatherman", "packer", "tides"])\n'
    "async def planner(): ...\n",
    "agents/weatherman.py": f'{START}@fast.agent(name="weatherman", servers=["weather"])\n'
    "async def weatherman(): ...\n",
    "agents/packer.md": "---\ntype: agent\n---\nYou pack.\n",
    "tides.py": 'import os\nADDRESS = os.environ["PALLAS_BIND"]\n',
    "fastagent.config.yaml": "default_model: passthrough\nmcp:\n  servers:\n    weather:\n"
    "      url: http://weather.example/mcp\n",
}
CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "mistakes.yaml").read_text("utf-8"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch) -> Path:
    write(tmp_path)
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path) -> None:
    """Write the project that is right."""
    folder.chmod(0o755)
    for name, text in PROJECT.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def make(project: Path, case: dict[str, Any]) -> None:
    """Make one mistake in the project."""
    path = project / case["in"]
    if "file" in case:
        (project / case["file"][0]).write_text(case["file"][1], "utf-8")
    if case.get("remove"):
        path.unlink()
        return
    text = case.get("write")
    if text is None:
        text = path.read_text("utf-8")
        for before, after in [case["replace"], *([case["also"]] if "also" in case else [])]:
            assert before in text
            text = text.replace(before, after, 1)
    path.write_text(text, "utf-8")


def problems(err: str) -> list[str]:
    """Return each problem with its indented lines."""
    blocks: list[str] = []
    for line in err.splitlines():
        if line.startswith("    ") and blocks:
            blocks[-1] += f"\n{line}"
        else:
            blocks.append(line)
    return blocks


def test_the_project_is_right(project: Path, run) -> None:
    assert run("validate") == (0, "agents.yaml: 3 agents, no errors\n", "")


def test_there_are_at_least_eighty() -> None:
    assert len({case["name"] for case in CASES}) == len(CASES) >= 80


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_mistake_gets_its_place_reason_and_remedy(case: dict[str, Any], project: Path, run) -> None:
    make(project, case)
    code, _, err = run(case.get("command", "validate"))
    warning = case.get("level") == "warning"
    place, remedy = case["says"]
    prefix = "warning: " if warning else ""
    (problem, *_) = [block for block in problems(err) if block.startswith(prefix + place)] or [""]
    assert problem, err
    assert remedy in problem, err
    assert code == case.get("code", 0 if warning else 2)
    assert "Traceback" not in err
