"""Reading YAML: positions, limits and refusals."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_contract.fleet import source
from pallas_contract.problems import Refused
from tests.examples import hostile


def refusal(text: str) -> str:
    with pytest.raises(Refused) as refused:
        source.parse(text, name="f.yaml")
    return str(refused.value)


def test_a_place_is_that_of_the_key_counted_from_one() -> None:
    tree = source.parse("a:\n  b:\n    - x\n    - {c: 1}\n", name="f.yaml")
    assert str(tree.where("a", "b", 1, "c")) == "f.yaml:4:8 a.b.1.c"


def test_an_absent_path_is_placed_at_its_parent() -> None:
    assert str(source.parse("a:\n  b: 1\n", name="f.yaml").where("a", "zzz")) == "f.yaml:1:1 a.zzz"


def test_aliases_and_merge_keys_work() -> None:
    tree = source.parse("a: &x {p: 1}\nb: {<<: *x, q: 2}\n", name="f.yaml")
    assert tree.data["b"] == {"p": 1, "q": 2}


def test_limits() -> None:
    assert "nested deeper than 32" in refusal("[" * 40 + "]" * 40)
    assert "more than 100 aliases" in refusal("a: &a 1\nb: [" + "*a, " * 101 + "]")
    assert "more than 100000 values" in refusal("[" + "1," * 100_001 + "]")


def test_a_hundred_thousand_brackets_neither_crash_nor_hang() -> None:
    assert "nested deeper" in refusal("[" * 100_000)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "cannot be read: Is a directory"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), "is not UTF-8 text (byte 0)"),
        (lambda path: path.write_bytes(b"#" * (source.MAX_BYTES + 1)), "is larger than 1 MiB"),
        (os.mkfifo, "cannot be read: Not a regular file"),
    ],
)
def test_unreadable_files(tmp_path: Path, make, said: str) -> None:
    path = tmp_path / "agents.yaml"
    make(path)
    with pytest.raises(Refused, match=r"agents\.yaml") as refused:
        source.read(path)
    assert said in str(refused.value)


TEXTS = st.text(alphabet="ab:{}[]&*!|>-#'\"\n\t \0\u202e%@`?,1", max_size=60)
PIECES = """a: |b: |1|'x'|"\\0"|"\\ud800"|{|}|[|]|, |[a]: |? |- |&a |*a|<<: *a|!!int |!x |~: |on: |2024-99-99|#"""
WORDS = st.lists(st.sampled_from([*PIECES.split("|"), "\n", "\n  "]), max_size=9).map("".join)
"""One in eight breaks a rule of ours and not only YAML's grammar; of texts of single characters one in a hundred."""


@given(TEXTS | WORDS)
@pytest.mark.fuzz
@hostile(300, fuzz=30_000)
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        source.parse(text, name="f.yaml")
    except Refused as refused:
        said = refused.problems
    else:
        return
    assert said


def test_a_file_that_is_not_there_is_looked_for_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "desk" / "agents" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "desk" / "agents" / "deep")
    with pytest.raises(Refused, match=r"no such file .*\n +create it \(`pallas init` makes a whole project\), or name"):
        source.read(Path("none-of-this-name.yaml"))
    (tmp_path / "desk" / "fleet.yaml").touch()
    with pytest.raises(Refused, match=r"no such file .*\n +name the one in a folder above: \.\./\.\./fleet\.yaml$"):
        source.read(Path("fleet.yaml"))
