"""Links out of the project folder: what is behind them is nothing that containers should get."""

from __future__ import annotations

from pathlib import Path

import pytest

FLEET = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101%s}\n"


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outside")
    (folder / "secret.txt").write_text("canary")
    return folder


@pytest.mark.parametrize("verb", ["compose", "helm", "validate"])
def test_every_link_out_of_the_folder_is_refused_with_its_place(make, run, outside: Path, verb: str) -> None:
    file = make(FLEET % ", files: [agents, data, up]")
    folder = file.parent
    (folder / "agents" / "deep").mkdir()
    (folder / "agents" / "deep" / "notes.md").symlink_to(outside / "secret.txt")
    (folder / "data").symlink_to(outside)
    (folder / "up").symlink_to("../outside")
    code, out, err = run(verb, "-f", str(file), *(() if verb == "validate" else ("-o", str(folder / "out"))))
    assert code == 2
    assert "canary" not in out + err
    assert [line.partition(": ")[0] for line in err.splitlines() if "is a link out of" in line] == [
        "agents/deep/notes.md",
        "data",
        "up",
    ]
    assert f"data: is a link out of the project folder, to {outside}\n    put a copy into the project folder" in err


def test_links_within_the_folder_hidden_ones_and_baked_code_are_no_business_of_ours(make, run, outside: Path) -> None:
    fleet = FLEET % ", files: [agents/*]"
    file = make(fleet)
    folder = file.parent
    (folder / "agents" / "same.py").symlink_to("scout.py")
    (folder / ".venv").symlink_to(outside)
    (folder / "loop").symlink_to("loop")
    assert run("validate", "-f", str(file))[0] == 0
    (folder / "data").symlink_to(outside)
    file.write_text(fleet + "image: example/agents:1\n")
    assert run("validate", "-f", str(file))[0] == 0


@pytest.mark.parametrize("verb", ["compose", "helm", "image"])
def test_a_virtual_environment_beside_the_code_is_none_of_it(make, run, outside: Path, verb: str) -> None:
    """Its `python` is a link to the machine's own, and most are called `venv`, without a dot."""
    file = make(FLEET % ", files: [agents/*, '*']")
    before = run(verb, "-f", str(file), "--stdout")
    for environment in (file.parent / "venv", file.parent / "agents" / "venv"):
        (environment / "bin").mkdir(parents=True)
        (environment / "bin" / "python").symlink_to(outside / "secret.txt")
        (environment / "pyvenv.cfg").touch()
    assert before[0] == 0
    assert run(verb, "-f", str(file), "--stdout") == before
