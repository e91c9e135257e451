"""The check of an audit: from its files to the first record that does not follow the one before. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pallas_contract.codes import Code
from pallas_contract.documents.audit_record import BEGIN, Entry, Link, NotOurs, opened
from pallas_contract.problems import Level, Problem, Where


@dataclass(slots=True)
class Checked:
    """The result of a check: how many records follow each other, the last of them, and what is wrong."""

    records: int = 0
    head: Link | None = None
    problems: list[Problem] = field(default_factory=list)


@dataclass(slots=True)
class _Walk:
    """The way along the chain as far as it holds."""

    key: bytes
    wanted: Link | None
    last: Entry | None = None
    first: Entry | None = None
    records: int = 0
    dropped: int = 0
    """Number of the last record that the gateway itself has removed, to make room."""
    passed: bool = False
    """Whether the wanted record was passed."""


def check(
    files: Iterable[tuple[str, Iterable[bytes]]], key: bytes, *, head: Link | None = None, whole: bool = False
) -> Checked:
    """Return what is wrong with an audit: of records that do not follow the first one only.

    `files` are name and lines (with their newlines) of each, in order; `head` is a record that the gateway once said to
    be its last, `whole` says that these are all of its files, so that nothing may be missing before them.
    """
    walk = _Walk(key, head)
    result = Checked()
    for name, lines in files:
        if problem := _file(walk, name, lines):
            result.problems.append(problem)
            if problem.level == "error":
                break
    else:
        result.problems += _ends(walk, whole=whole)
    result.records = walk.records
    result.head = walk.last.link if walk.last else None
    return result


def _file(walk: _Walk, name: str, lines: Iterable[bytes]) -> Problem | None:
    """Walk through one file; return the problem where the chain ends in it."""
    line_number = 0
    for line_number, line in enumerate(lines, 1):
        where = Where(name, line_number, 1)
        if not line.endswith(b"\n"):
            return _tail(walk, where)
        try:
            entry = opened(walk.key, line.removesuffix(b"\n"))
        except NotOurs as error:
            return _broken(walk, where, f"{_after(walk)} {error}")
        if reason := _gap(walk, entry):
            return _broken(walk, where, reason)
        _step(walk, entry)
    return None


def _step(walk: _Walk, entry: Entry) -> None:
    walk.first = walk.first or entry
    walk.last = entry
    walk.records += 1
    walk.passed = walk.passed or entry.link == walk.wanted
    if entry.fields.get("event") == "dropped":
        walk.dropped = max(walk.dropped, entry.fields.get("until", 0))


def _gap(walk: _Walk, entry: Entry) -> str:
    """Return why a record, which has its MAC, does not follow; empty where it does."""
    if walk.last is None:
        return ""
    expected = walk.last.link.seq + 1
    if entry.link.seq > expected:
        missing = expected if entry.link.seq == expected + 1 else f"{expected} to {entry.link.seq - 1}"
        return f"record {entry.link.seq} is there, and {missing} before it is not"
    if entry.link.seq < expected:
        return f"record {entry.link.seq} is there again, after {expected - 1}"
    if entry.prev != walk.last.link.mac:
        return f"record {entry.link.seq} follows another record {expected - 1} than the one that is there"
    return ""


def _after(walk: _Walk) -> str:
    return f"the line after record {walk.last.link.seq}" if walk.last else "the first line"


def _broken(walk: _Walk, where: Where, message: str) -> Problem:
    hint = f"records {_span(walk)} follow each other" if walk.last else "is it the key of this audit?"
    return Problem(where, message, hint, code=Code.AUDIT_RECORD)


def _span(walk: _Walk) -> str:
    return f"{walk.first.link.seq} to {walk.last.link.seq}" if walk.first and walk.last else "none"


def _tail(walk: _Walk, where: Where) -> Problem:
    """Return the problem of a line without an end, which is also what an end by force leaves behind."""
    hint = "a gateway that was killed leaves that; it cuts it off at its next start, and says so in a record"
    message = f"{_after(walk)} has no end"
    return Problem(where, message, hint, "warning", code=Code.AUDIT_TAIL)


def _ends(walk: _Walk, *, whole: bool) -> Iterator[Problem]:
    """Yield what is wrong with the beginning, and with an end that was cut off between two records."""
    where = Where("audit")
    if walk.first and walk.first.link.seq - 1 > walk.dropped:
        missing = walk.first.link.seq - 1
        level: Level = "error" if whole else "warning"
        message = f"begins with record {missing + 1}: 1 to {missing} are not there"
        hint = "no record says that the gateway removed them to make room" if whole else "they are in the files before"
        if walk.first.prev == BEGIN:
            hint = "a new chain begins there, since the one before was changed or had another key: check its files too"
        yield Problem(where, message, hint, level, code=Code.AUDIT_BEGINNING)
    if walk.wanted and not walk.passed:
        hint = "the end was cut off, or all was written anew by somebody with the key"
        last = walk.last.link.seq if walk.last else 0
        message = f"does not have record {walk.wanted.seq} with that MAC: it ends with record {last}"
        yield Problem(where, message, hint, code=Code.AUDIT_HEAD)
