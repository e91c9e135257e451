"""One folder per rule in tests/invalid: what `pallas-gen compose` says of it, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_gen import cli

CASES = sorted(path.parent for path in (Path(__file__).parent.parent / "invalid").glob("*/agents.yaml"))


@pytest.mark.parametrize("folder", CASES, ids=lambda path: path.name)
def test_refusal_names_place_and_cure(folder: Path, tmp_path: Path, expected, capsys, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", ["pallas-gen", "compose", "-o", str(tmp_path)])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    said = capsys.readouterr()
    assert exit_.value.code == 2
    assert said.out == ""
    assert list(tmp_path.iterdir()) == []
    expected(folder / "expected.txt", said.err)
