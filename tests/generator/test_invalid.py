"""One folder per rule in tests/invalid: what `pallas-gen compose` says of it, word for word.

A file `command` in the folder names another verb, for what only that target refuses.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_gen import cli

INVALID = Path(__file__).parents[1] / "invalid"
CASES = sorted(path.parent for path in INVALID.glob("*/agents.yaml"))


@pytest.mark.parametrize("folder", CASES, ids=lambda path: path.name)
def test_refusal_names_place_and_cure(folder: Path, tmp_path: Path, expected, capsys, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    command = (folder / "command").read_text().split() if (folder / "command").exists() else ["compose"]
    monkeypatch.setattr("sys.argv", ["pallas-gen", *command, "-o", str(tmp_path)])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    said = capsys.readouterr()
    assert exit_.value.code == 2
    assert said.out == ""
    assert list(tmp_path.iterdir()) == []
    expected(folder / "expected.txt", said.err)


def test_every_folder_is_a_case() -> None:
    assert sorted(path for path in INVALID.iterdir() if path.is_dir()) == CASES
    assert {folder.name for folder in CASES if not (folder / "expected.txt").is_file()} == set()


def test_more_than_one_target_refuses() -> None:
    assert {path.read_text() for path in INVALID.glob("*/command")} == {"helm\n"}
