"""The file that tells the registry of members that are not up."""

from __future__ import annotations

from pathlib import Path

from pallas_agent_runtime.local.absences import AbsenceFile
from pallas_contract.documents import absence
from pallas_contract.documents.reason import Reason

REFUSED = {"harper": Reason("InputRefused", "agents.yaml: no")}


def test_the_file_says_what_it_was_told_last(tmp_path: Path) -> None:
    path = tmp_path / "absences.json"
    write = AbsenceFile(path)
    for absences in (REFUSED, {}, REFUSED):
        write(absences)
        assert absence.parse(path.read_text()) == absences
    assert [entry.name for entry in tmp_path.iterdir()] == ["absences.json"]


def test_what_stands_there_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "absences.json"
    write = AbsenceFile(path)
    write(REFUSED)
    path.unlink()
    write(dict(REFUSED))
    assert not path.exists()


def test_a_folder_that_is_gone_stops_nothing(tmp_path: Path) -> None:
    AbsenceFile(tmp_path / "gone" / "absences.json")(REFUSED)
