"""Reading YAML: positions, limits and refusals."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
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


@pytest.mark.parametrize("loader", [source.Loader, yaml.SafeLoader])
def test_a_character_that_yaml_does_not_take_has_a_place(monkeypatch: pytest.MonkeyPatch, loader: Any) -> None:
    monkeypatch.setattr(source, "Loader", loader)
    with pytest.raises(Refused) as refused:
        source.parse("name: demo\nagents: {é: {\0}}\n", name="agents.yaml")
    where = refused.value.problems[0].where
    assert (where.line, where.column) == (2, 14)


def test_aliases_and_merge_keys_work() -> None:
    tree = source.parse("a: &x {p: 1}\nb: {<<: *x, q: 2}\n", name="f.yaml")
    assert tree.data["b"] == {"p": 1, "q": 2}


def test_limits() -> None:
    assert "nested deeper than 32" in refusal("[" * 40 + "]" * 40)
    assert "more than 100 aliases" in refusal("a: &a 1\nb: [" + "*a, " * 101 + "]")
    assert "more than 100000 values" in refusal("[" + "1," * 100_001 + "]")
    long = "d" * (source.MAX_BYTES // 4)
    assert source.parse(f"a: &d {long}\nb: [*d, *d]\n", name="f.yaml").data["b"] == [long, long]
    assert refusal(f"a: &d {long}\nb: [*d, *d, *d, *d]\n").startswith("f.yaml:1:4: expands to more than 1 MiB")
    keys = "k" * source.MAX_KEY
    assert "expands to more than 1 MiB" in refusal(
        f"a: &a {{{', '.join(f'{keys[5:]}{i:05}: 1' for i in range(99))}}}\nb: [{'*a, ' * 40}]\n"
    )


def test_a_key_is_as_long_as_a_name_and_no_longer() -> None:
    """Every problem below it repeats it. YAML itself ends a key at 1,024 characters, but not one after `?`."""
    key = "k" * source.MAX_KEY
    assert source.parse(f"{key}: 1", name="f.yaml").data == {key: 1}
    for text in (f"a:\n  {key}k: 1", f"a:\n  ? {key * 300}\n  :\n    x: 1\n"):
        said = refusal(text)
        assert "f.yaml:2:" in said
        assert "this key has more than 320 characters" in said
        assert len(said) < 100


def test_a_long_field_is_cut_in_its_middle() -> None:
    path = [letter * source.MAX_KEY for letter in "abc"]
    tree = source.parse("{" + ": {".join(path) + ": 1" + "}" * 3, name="f.yaml")
    assert tree.where(*path).field == f"{'a' * 100}...{'c' * 100}"
    cut = refusal("{" + ": {".join(path) + ": 1" + "}" * 2 + f", {path[0]}: 1}}")
    assert f" {'a' * 100}...{'a' * 100}: this key is given twice" in cut


@pytest.mark.parametrize(
    "number",
    [
        "9" * 65,
        "-0x" + "f" * 6000,
        "0b" + "1" * 40_000,
        "0" + "7" * 6000,
        "1" + ":1" * 200_000,
        "1" + ":1" * 400 + ".5",
        "1." + "0" * 64,
        "1_" * 60 + "1",
    ],
    ids=lambda number: number[:6],
)
def test_numbers_are_short(number: str) -> None:
    """Python prints no number of more than 4,300 digits, and reading `1:1:1` takes time by the square of its length."""
    assert refusal(f"a: [1, {number}]") == (
        "f.yaml:1:8 a.1: is a number of more than 64 characters [PAL003]\n    put it in quotes if it is a text"
    )
    assert source.parse(f"a: '{number}'", name="f.yaml").data == {"a": number}


def test_numbers_of_any_other_length_are_read() -> None:
    tree = source.parse(f"[{'9' * 64}, 1:30:00, 1e400, {'x' * 65}]", name="f.yaml")
    assert tree.data == [int("9" * 64), 5400, "1e400", "x" * 65]


def test_a_number_that_no_processor_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of 64 characters is too large for the libraries of today."""
    monkeypatch.setattr(source, "MAX_NUMBER", 9000)
    assert refusal("a: 1" + ":1" * 400 + ".5").startswith("f.yaml: broken YAML: int too large to convert to float")


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
