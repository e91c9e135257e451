"""`pallas-gen audit verify`: the exit code by what follows, and input that is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pallas_contract.documents import audit_record
from pallas_contract.documents.audit_record import BEGIN, Link

KEY = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An audit of six records in two files, and its key."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "audit.key").write_text(f"{KEY}\n")
    (tmp_path / "audit").mkdir()
    link = Link(0, BEGIN)
    for first in (1, 4):
        text = b""
        for _ in range(3):
            line, link = audit_record.sealed(KEY.encode(), {"event": "decision", "caller": "phone"}, link)
            text += line
        (tmp_path / "audit" / audit_record.file_name(first)).write_bytes(text)
    return tmp_path / "audit"


def verify(run, *words: str) -> tuple[int, str, str]:
    result: tuple[int, str, str] = run("audit", "verify", *words, "--key-file", "audit.key")
    return result


def head(folder: Path) -> str:
    last = (folder / audit_record.file_name(4)).read_bytes().splitlines()[-1]
    return str(audit_record.opened(KEY.encode(), last).link)


def test_a_whole_audit_is_0_and_its_last_record_is_named(folder: Path, run) -> None:
    words = f"6 records, each as it was written; the last is {head(folder)}\n"
    assert verify(run, "audit") == (0, words, "")
    assert verify(run, "audit", "--head", head(folder)) == (0, words, "")
    files = [str(path) for path in folder.iterdir()]
    assert verify(run, *sorted(files, reverse=True)) == (0, words, "")


def test_an_edit_is_1_and_named_in_each_form(folder: Path, run) -> None:
    path = folder / audit_record.file_name(1)
    path.write_bytes(path.read_bytes().replace(b'"seq":2,"event":"decision","caller":"phone"', b'"seq":2'))
    code, out, err = verify(run, "audit")
    place = "audit/audit-000000000001.jsonl:2:1"
    assert (code, out) == (1, "")
    assert err.startswith(f"{place}: the line after record 1 was changed, or written with another key\n")
    code, out, err = verify(run, "audit", "--format", "json")
    (problem,) = json.loads(out)["problems"]
    assert (code, problem["code"], problem["line"], problem["file"]) == (1, "PAL650", 2, place.removesuffix(":2:1"))
    code, out, err = verify(run, "audit", "--format", "sarif")
    (result,) = json.loads(out)["runs"][0]["results"]
    assert (code, result["ruleId"]) == (1, "PAL650")


def test_an_end_by_force_is_0_with_a_warning_and_a_cut_end_is_found_by_the_head(folder: Path, run) -> None:
    last = head(folder)
    path = folder / audit_record.file_name(4)
    path.write_bytes(path.read_bytes()[:-20])
    code, out, err = verify(run, "audit")
    assert (code, out[:9]) == (0, "5 records")
    assert err.startswith("warning: audit/audit-000000000004.jsonl:3:1: the line after record 5 has no end\n")
    code, _, err = verify(run, "audit", "--head", last)
    assert (code, "it ends with record 5" in err) == (1, True)


def test_one_file_of_several_is_a_part_and_a_folder_is_all(folder: Path, run) -> None:
    code, _, err = verify(run, str(folder / audit_record.file_name(4)))
    assert (code, "warning: audit: begins with record 4" in err) == (0, True)
    (folder / audit_record.file_name(1)).unlink()
    code, _, err = verify(run, "audit")
    assert (code, "audit: begins with record 4: 1 to 3 are not there" in err) == (1, True)


def test_wrong_input_is_2(folder: Path, run, tmp_path: Path) -> None:
    assert verify(run, "nowhere.jsonl")[0] == 2
    assert "nowhere.jsonl: cannot be read: no such file" in verify(run, "nowhere.jsonl")[2]
    assert run("audit", "verify", "audit", "--key-file", "nowhere")[0] == 2
    (tmp_path / "empty").mkdir()
    assert "empty: has no audit in it" in verify(run, "empty")[2]
    code, _, err = verify(run, "audit", "--head", "7")
    assert (code, "is no N:MAC" in err) == (2, True)
    (tmp_path / "audit.key").write_text("\n")
    assert "audit.key: is empty" in verify(run, "audit")[2]
