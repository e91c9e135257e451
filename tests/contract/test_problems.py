"""Problems are told in the order of the file, all at once, and only errors refuse."""

from __future__ import annotations

import pytest

from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Refused, Where, refuse_errors

LATE = Problem(Where("agents.yaml", 12, 3, "agents.b"), "is wrong", "write it differently", code=Code.WRONG_VALUE)
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
