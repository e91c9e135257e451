"""What was compiled from text is found again by it, and is what compiling gives."""

from __future__ import annotations

import builtins
import dataclasses
import inspect
import re
import sys
import threading
import typing
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from pallas_service import compiled_texts

PATTERNS = (r"(?P<year>\d{4})-(\d\d)", r"^\s*[äöü]+(?i:x)?$", r"(?<!a)b|c{2,3}?", "")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "compiled.texts"


@pytest.fixture
def process(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Return what makes of this process one that has just begun; it compiles as usual afterwards."""
    monkeypatch.setattr(compiled_texts, "file_path", lambda: path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    def new() -> None:
        monkeypatch.setattr(compiled_texts, "_used", False)
        compiled_texts.begin()

    yield new
    compiled_texts.end()


def made() -> SimpleNamespace:
    """Have the standard library compile one text of each kind."""
    point = dataclasses.make_dataclass(
        "Point", [("x", int), ("y", "list[int]", dataclasses.field(default_factory=list))]
    )
    re.purge()
    patterns = [re.compile(text, re.IGNORECASE) for text in PATTERNS]
    return SimpleNamespace(point=point, reference=typing.ForwardRef("dict[str, int] | None"), patterns=patterns)


def refusing(*_: object, **__: object) -> None:
    pytest.fail("it was compiled anew")


def test_what_is_kept_is_what_compiling_gives(process: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    usual = made()
    process()
    first = made()
    compiled_texts.end()
    with monkeypatch.context() as patch:
        process()
        patch.setattr(builtins, "compile", refusing)
        patch.setattr(re._parser, "parse", refusing)  # type: ignore[attr-defined]
        again = made()
    for found in (first, again):
        assert repr(found.point(1, [2])) == repr(usual.point(1, [2])) == "Point(x=1, y=[2])"
        assert inspect.signature(found.point) == inspect.signature(usual.point)
        assert found.point.__init__.__code__ == usual.point.__init__.__code__
        assert found.point.__init__.__annotations__ == usual.point.__init__.__annotations__
        assert found.reference == usual.reference
        assert found.reference.__forward_code__ == usual.reference.__forward_code__
        for pattern, expected in zip(found.patterns, usual.patterns, strict=True):
            assert (pattern, pattern.flags, dict(pattern.groupindex)) == (
                expected,
                expected.flags,
                dict(expected.groupindex),
            )
            for text in ("2026-11", "ÄX", "CCC", "b"):
                assert str(pattern.search(text)) == str(expected.search(text))


def test_mistakes_are_told_as_usual(process: Callable[[], None]) -> None:
    process()
    with pytest.raises(re.PatternError, match="unterminated character set"):
        re.compile("[abc" + "d")
    with pytest.raises(SyntaxError, match="must be an expression"):
        typing.ForwardRef("a b")
    assert re.compile(b"[ab]+").match(b"ba")


def test_what_others_compile_meanwhile_is_not_kept_for_it() -> None:
    compiler = re._compiler  # type: ignore[attr-defined]
    usual, engine = compiler.compile, compiler._sre
    texts = compiled_texts.Texts({}, memoryview(b""))

    def disturbed(text: str, flags: int) -> re.Pattern[str]:
        found: re.Pattern[str] = usual(text, flags)
        usual(b"c", 0)
        thread = threading.Thread(target=usual, args=(text, flags | re.IGNORECASE))
        thread.start()
        thread.join(60)
        return found

    assert texts.pattern("a+b", 0, compiler, disturbed).match("aab")
    assert compiler._sre is engine
    ((key, kept),) = texts.added.items()
    again = compiled_texts.Texts({key: len(kept)}, memoryview(kept)).pattern("a+b", 0, compiler, refusing)
    assert again.match("aab")
    assert not again.match("AAB")


def test_a_warning_about_a_pattern_may_compile_one(
    process: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[bool] = []
    process()
    monkeypatch.setattr(
        warnings, "showwarning", lambda message, *_: shown.append(bool(re.compile("[a-z]+ *set").search(str(message))))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert re.compile("[[a-c]b]").match("ab]")
    assert shown == [True]


def test_nothing_is_kept_of_a_project_or_after_the_start(process: Callable[[], None], path: Path) -> None:
    process()
    with compiled_texts.suspended():
        made()
    compiled_texts.end()
    made()
    compiled_texts.begin()  # once for each process, forks included
    made()
    assert not path.exists()
    assert "exec" not in vars(dataclasses)
    assert "compile" not in vars(typing)


def test_nothing_is_written_where_python_writes_no_bytecode(
    process: Callable[[], None], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process()
    made()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    compiled_texts.end()
    assert not path.exists()


def test_nothing_is_looked_up_where_none_is_kept_and_none_will_be(
    process: Callable[[], None], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    process()
    assert "exec" not in vars(dataclasses)
    monkeypatch.setattr(compiled_texts, "_used", False)
    compiled_texts.begin(always=True)
    made()
    compiled_texts.end(always=True)
    assert path.exists()
    process()
    assert "exec" in vars(dataclasses), "what an image has is used there"


@pytest.mark.parametrize("damage", ["cut", "changed", "version", "empty"])
def test_a_file_that_is_not_as_it_was_written_is_not_used(process: Callable[[], None], path: Path, damage: str) -> None:
    process()
    made()
    compiled_texts.end()
    whole = path.read_bytes()
    other = {
        "cut": whole[:-1],
        "changed": whole[:-1] + bytes([whole[-1] ^ 1]),
        "version": b"?" + whole[1:],
        "empty": b"",
    }
    path.write_bytes(other[damage])
    assert compiled_texts.read(path).all() == {}
    process()
    made()
    compiled_texts.end()
    assert path.read_bytes() == whole, "sorted, and the same of the same texts"
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_it_does_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_texts, "_MOST", 2)
    texts = compiled_texts.Texts({b"a": 1, b"b": 1 << 32 | 2}, memoryview(b"ab"))
    texts.code("1", "eval")
    assert len(texts.all()) == 1


def test_an_installation_that_cannot_be_written_is_left_alone(process: Callable[[], None], path: Path) -> None:
    path.parent.write_text("a file where the folder would be")
    process()
    made()
    compiled_texts.end()
    assert path.parent.is_file()
