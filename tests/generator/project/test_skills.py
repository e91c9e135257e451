"""Folders of skills reach a container where somebody names them, hidden or not; the others are told."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from pallas_gen.project import configmaps
from pallas_gen.targets import image

FLEET = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101%s}\n"
HIDDEN = ".claude/skills"
CODE = "from fast_agent import FastAgent\nfast = FastAgent('x')\n@fast.agent(skills=%s)\ndef a(): ...\n"


@pytest.fixture
def folder(make) -> Path:
    """A project with skills in a hidden folder, and another file beside them there."""
    project: Path = make(FLEET % "").parent
    (project / HIDDEN / "letters").mkdir(parents=True)
    (project / HIDDEN / "letters" / "SKILL.md").write_text("---\nname: letters\n---\n")
    (project / ".claude" / "settings.json").write_text("canary")
    return project


@pytest.mark.parametrize(
    ("keys", "config", "code"),
    [
        (f", skills: [{HIDDEN}]", "", ""),
        (f", skills: [./{HIDDEN}/]", "", ""),
        ("", f"skills: {{directories: [{HIDDEN}]}}", ""),
        ("", "", CODE % f"['{HIDDEN}']"),
        ("", "", CODE % f"Path('{HIDDEN}')"),
    ],
)
def test_a_hidden_folder_that_is_named_is_delivered_and_nothing_beside_it(
    folder: Path, plan, keys: str, config: str, code: str
) -> None:
    (folder / "fastagent.config.yaml").write_text(f"default_model: passthrough\n{config}\n")
    (folder / "agents" / "scout.py").write_text(code or "fast = None\n")
    made = plan(FLEET % keys)
    assert made.entries == (f"{HIDDEN}/", "agents.yaml", "agents/scout.py", "fastagent.config.yaml")
    delivery = configmaps.read(folder, made)
    assert [path for path in delivery.code if path.startswith(".")] == [f"{HIDDEN}/letters/SKILL.md"]
    dockerfile = image.render(made, PurePosixPath())[image.FILE]
    assert f'COPY ["{HIDDEN}/", "/project/{HIDDEN}/"]' in dockerfile
    assert "settings.json" not in dockerfile


@pytest.mark.parametrize(
    ("keys", "config", "code"),
    [
        (f", skills: [./{HIDDEN}/]", "", ""),
        ("", f"skills: {{directories: [{HIDDEN}]}}", ""),
        ("", "", CODE % f"['{HIDDEN}']"),
    ],
    ids=["fleet file", "configuration", "module"],
)
def test_one_that_somebody_names_is_not_told(folder: Path, run, keys: str, config: str, code: str) -> None:
    (folder / "fastagent.config.yaml").write_text(f"default_model: passthrough\n{config}\n")
    (folder / "agents" / "scout.py").write_text(code or "fast = None\n")
    (folder / "agents.yaml").write_text(FLEET % keys)
    assert "nobody names" not in run("validate", "-f", str(folder / "agents.yaml"))[2]


def test_one_that_nobody_names_is_told_unless_that_is_meant(folder: Path, run) -> None:
    path = folder / "agents.yaml"
    path.write_text(FLEET % "")
    code, _, err = run("validate", "-f", str(path))
    assert code == 0
    assert err.startswith(f"warning: {HIDDEN}: nobody names these skills: no agent reads them\n")
    path.write_text(FLEET % ", skills: []")
    assert run("validate", "-f", str(path))[2] == ""


@pytest.mark.parametrize(
    ("config", "agent", "position"),
    [
        ("skills: {directories: [/usr/share/skills]}\n", {}, "fastagent.config.yaml:1:24 skills.directories.0"),
        ("", {"scout.py": CODE % "['/usr/share/skills']"}, "agents/scout.py:3:20"),
        ("", {"scout.md": "---\nskills: /usr/share/skills\n---\nHello\n"}, "agents/scout.md:2:1 skills"),
    ],
    ids=["configuration", "module", "card"],
)
def test_one_outside_of_the_project_is_told_where_it_is_named(
    folder: Path, run, config: str, agent: dict[str, str], position: str
) -> None:
    (folder / "fastagent.config.yaml").write_text(config)
    for name, text in agent.items():
        (folder / "agents" / name).write_text(text)
    if "scout.md" in agent:
        (folder / "agents.yaml").write_text("name: x\nagents:\n  scout: {card: agents/scout.md, port: 8101}\n")
    err = run("compose", "-f", str(folder / "agents.yaml"), "--stdout")[2]
    assert f"warning: {position}: /usr/share/skills is outside: no container gets it\n" in err


def test_a_secret_in_one_is_refused(folder: Path, run) -> None:
    (folder / "skills").mkdir()
    (folder / "skills" / "key").write_text("canary")
    (folder / "agents.yaml").write_text(FLEET % ", skills: [skills], secrets: {KEY: {file: skills/key}}")
    code, _, err = run("validate", "-f", str(folder / "agents.yaml"))
    assert code == 2
    assert "skills/key lies in `skills/`, which a container gets as a whole" in err
