"""Problems are told in the order of the file, all at once, and only errors refuse."""

from __future__ import annotations

import pytest

from pallas_contract.codes import Code
from pallas_contract.problems import MOST, Level, Problem, Refused, Where, more, refuse_errors

LATE = Problem(Where("agents.yaml", 12, 3, "agents.b"), "is wrong", "write it differently", code=Code.WRONG_VALUE)
LATE_IN_A = Problem(Where("a.yaml", 9000), "is wrong", code=Code.WRONG_VALUE)
EARLY = Problem(Where("agents.yaml", 2, 1), "looks odd", level="warning", code=Code.LOW_PORT)


def test_the_text_has_place_message_and_hint() -> None:
    assert str(LATE) == "agents.yaml:12:3 agents.b: is wrong [PAL103]\n    write it differently"
    assert str(EARLY) == "warning: agents.yaml:2:1: looks odd [PAL108]"
    assert str(Where("agents.yaml", field="name")) == "agents.yaml name"


def test_warnings_come_back_once_and_in_order() -> None:
    later = Problem(Where("agents.yaml", 10), "looks odd too", level="warning", code=Code.LOW_PORT)
    assert refuse_errors([later, EARLY, later]) == [EARLY, later]


def test_one_error_refuses_with_everything() -> None:
    with pytest.raises(Refused) as refused:
        refuse_errors([LATE, EARLY])
    assert refused.value.problems == [EARLY, LATE]
    assert str(refused.value) == f"{EARLY}\n{LATE}"


def crowd(file: str, count: int, level: Level = "error") -> list[Problem]:
    return [Problem(Where(file, line), "is wrong", level=level, code=Code.WRONG_VALUE) for line in range(1, count + 1)]


def test_of_very_many_the_first_of_each_file_are_named_and_the_others_counted() -> None:
    said = Refused(reversed([*crowd("a.yaml", MOST), *crowd("b.yaml", MOST + 7)])).problems
    assert [problem.where for problem in said[:-1]] == [
        Where(file, line) for file in ("a.yaml", "b.yaml") for line in range(1, MOST + 1)
    ]
    assert str(said[-1]) == f"b.yaml:{MOST}:0: and 7 more problems [PAL012]\n    mend those above, then look again"


def test_those_that_were_counted_stay_counted_among_others() -> None:
    once = Refused(crowd("a.yaml", MOST + 7)).problems
    assert Refused(once).problems == once
    twice = Refused([*once, Problem(Where("a.yaml", 0), "is wrong too", code=Code.WRONG_VALUE)]).problems
    assert (len(twice), twice[0].message, twice[-1].message) == (MOST + 1, "is wrong too", "and 8 more problems")


def test_errors_are_named_before_warnings_are() -> None:
    (*named, rest) = Refused([*crowd("a.yaml", MOST, "warning"), LATE_IN_A]).problems
    assert (LATE_IN_A in named, len(named), rest.message, rest.level) == (True, MOST, "and 1 more problem", "warning")


def test_very_many_warnings_refuse_nothing_and_one_error_among_them_does() -> None:
    assert [problem.level for problem in refuse_errors(crowd("a.yaml", MOST + 7, "warning"))] == ["warning"] * (
        MOST + 1
    )
    with pytest.raises(Refused):
        refuse_errors([*crowd("a.yaml", MOST + 7, "warning"), LATE_IN_A])
    with pytest.raises(Refused):
        refuse_errors([*crowd("a.yaml", 3, "warning"), more(Where("a.yaml"), 5)])


def test_no_name_of_the_users_acts_on_the_terminal() -> None:
    problem = Problem(
        Where("a\x1b[2J", field="mcp.servers.\x07"),
        "no server `\x1b[31m`\nbut ünï ☃ 🦊",
        "take \u202e away",
        code=Code.NO_MODEL,
    )
    assert str(problem) == (
        "a\\x1b[2J mcp.servers.\\x07: no server `\\x1b[31m`\nbut ünï ☃ 🦊 [PAL217]\n    take \\u202e away"
    )
