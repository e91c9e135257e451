"""The check of an audit finds each edit, and tells an end by force from one."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from pallas_contract.documents import audit_check, audit_record
from pallas_contract.documents.audit_check import Checked
from pallas_contract.documents.audit_record import BEGIN, Link

KEY = b"0123456789abcdef"


def chain(count: int, after: Link | None = None) -> list[bytes]:
    """Return the lines of a whole audit."""
    lines = []
    link = after or Link(0, BEGIN)
    for number in range(count):
        line, link = audit_record.sealed(KEY, {"event": "decision", "caller": f"caller-{number}"}, link)
        lines.append(line)
    return lines


def checked(lines: list[bytes], key: bytes = KEY, *, head: Link | None = None, whole: bool = True) -> Checked:
    """Return what is said of one file."""
    return audit_check.check([("audit.jsonl", io.BytesIO(b"".join(lines)))], key, head=head, whole=whole)


def said(result: Checked) -> list[str]:
    return [f"{problem.where}: {problem.message} [{problem.code}]" for problem in result.problems]


def link_of(line: bytes) -> Link:
    return audit_record.opened(KEY, line[:-1]).link


def test_a_whole_chain_has_no_problem_and_a_head() -> None:
    lines = chain(5)
    result = checked(lines, head=link_of(lines[2]))
    assert (result.problems, result.records, result.head) == ([], 5, link_of(lines[4]))
    assert checked([]).problems == []


@given(st.data())
def test_each_edit_of_one_byte_is_found(data: st.DataObject) -> None:
    lines = chain(4)
    which = data.draw(st.integers(0, 3))
    at = data.draw(st.integers(0, len(lines[which]) - 2))  # not the newline: that is the end, or two records in one
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != lines[which][at]))
    lines[which] = lines[which][:at] + bytes([byte]) + lines[which][at + 1 :]
    result = checked(lines)
    assert [problem.level for problem in result.problems] == ["error"]
    assert result.records == which


@given(st.integers(0, 4).flatmap(lambda start: st.tuples(st.just(start), st.integers(start + 1, 5))))
def test_records_that_are_not_there_are_found(span: tuple[int, int]) -> None:
    lines = chain(6)
    head = link_of(lines[5])
    start, end = span
    del lines[start:end]
    result = checked(lines, head=head)
    assert [problem.level for problem in result.problems] == ["error"]
    if start:
        assert result.problems[0].where.line == start + 1


@given(st.permutations(range(5)).filter(lambda order: order != [0, 1, 2, 3, 4]))
def test_another_order_is_found(order: list[int]) -> None:
    lines = chain(5)
    result = checked([lines[index] for index in order])
    assert [problem.level for problem in result.problems] == ["error"]
    first = next(index for index in range(5) if order[index] != index)
    if first:
        assert result.records == first


@given(st.integers(1, 400))
def test_an_end_that_is_cut_off_shows_against_the_head(cut: int) -> None:
    lines = chain(3)
    text = b"".join(lines)[:-cut]
    result = checked([text])
    assert all(problem.level == "warning" for problem in result.problems)
    assert bool(result.problems) is not (text.endswith(b"\n") or not text)
    against = checked([text], head=link_of(lines[2]))
    assert against.problems[-1].code == "PAL653"


def test_the_first_record_that_does_not_follow_is_named() -> None:
    lines = chain(6)
    gone = checked([*lines[:2], *lines[3:]])
    assert said(gone) == ["audit.jsonl:3:1: record 4 is there, and 3 before it is not [PAL650]"]
    assert gone.problems[0].hint == "records 1 to 2 follow each other"
    assert "3 to 4 before it is not" in said(checked([*lines[:2], *lines[4:]]))[0]
    assert "record 2 is there again, after 2" in said(checked([*lines[:2], *lines[1:]]))[0]
    forked = [*chain(1), audit_record.sealed(KEY, {"event": "x"}, Link(1, "ab" * 32))[0]]
    assert "record 2 follows another record 1 than the one that is there" in said(checked(forked))[0]
    edited = [*lines[:4], lines[4].replace(b"caller-4", b"caller-5"), lines[5]]
    assert "the line after record 4 was changed" in said(checked(edited))[0]


def test_another_key_is_said_of_the_first_line() -> None:
    result = checked(chain(2), b"another key 0123")
    assert said(result) == ["audit.jsonl:1:1: the first line was changed, or written with another key [PAL650]"]
    assert result.problems[0].hint == "is it the key of this audit?"


def test_an_end_by_force_is_told_apart() -> None:
    result = checked([*chain(2), b'{"seq":3,"event":"deci'])
    assert said(result) == ["audit.jsonl:3:1: the line after record 2 has no end [PAL651]"]
    assert result.problems[0].level == "warning"
    assert checked([*chain(2), b"{}\n"]).problems[0].level == "error"


def test_a_beginning_that_is_not_there_needs_a_record_of_it() -> None:
    lines = chain(4)
    late = checked(lines[2:])
    assert said(late) == ["audit: begins with record 3: 1 to 2 are not there [PAL652]"]
    assert late.problems[0].level == "error"
    assert checked(lines[2:], whole=False).problems[0].level == "warning"
    dropped, _ = audit_record.sealed(KEY, {"event": "dropped", "until": 2}, link_of(lines[3]))
    assert checked([*lines[2:], dropped]).problems == []
    assert said(checked([*lines[3:], dropped])) == ["audit: begins with record 4: 1 to 3 are not there [PAL652]"]


def test_a_chain_that_begins_anew_does_not_hide_the_one_before() -> None:
    anew = chain(2, Link(3, BEGIN))
    result = checked(anew)
    assert said(result) == ["audit: begins with record 4: 1 to 3 are not there [PAL652]"]
    assert (result.problems[0].level, result.problems[0].hint) == (
        "error",
        "a new chain begins there, since the one before was changed or had another key: check its files too",
    )
    assert checked(anew, whole=False).problems[0].level == "warning"
    dropped, _ = audit_record.sealed(KEY, {"event": "dropped", "until": 3}, link_of(anew[1]))
    assert checked([*anew, dropped]).problems == []


def test_a_chain_goes_on_from_file_to_file() -> None:
    first = chain(3)
    second = chain(2, link_of(first[2]))
    assert audit_check.check([("a", first), ("b", second)], KEY, whole=True).problems == []
    (problem,) = audit_check.check([("a", first[:2]), ("b.jsonl", second)], KEY, whole=True).problems
    assert (problem.where.file, problem.where.line) == ("b.jsonl", 1)
