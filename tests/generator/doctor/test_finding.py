"""Findings in words and as a document."""

from __future__ import annotations

from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Where
from pallas_gen.doctor import finding
from pallas_gen.doctor.finding import Finding

PROBLEM = Problem(Where("agents.yaml", 3, 5, "agents.a"), "is wrong", "mend it\nat once", code=Code.UNKNOWN_KEY)
FINDINGS = [
    Finding("machine", "ok", "helm", "4.3"),
    Finding("machine", "note", "kubectl", "is not here", "install it", Code.TOOL_MISSING),
    Finding.of("project", PROBLEM),
]
WRONG = f"""\
project
  error    agents.yaml:3:5 agents.a: is wrong [{Code.UNKNOWN_KEY}]
             mend it
             at once
"""


def test_each_topic_stands_once_above_its_findings() -> None:
    assert finding.text(FINDINGS) == (
        "machine\n  ok       helm: 4.3\n"
        f"  note     kubectl: is not here [{Code.TOOL_MISSING}]\n             install it\n{WRONG}1 error\n"
    )
    assert finding.text(FINDINGS[:2]).endswith("nothing stands in the way\n")
    assert finding.text([*FINDINGS, *FINDINGS]).endswith("2 errors\n")


def test_quiet_leaves_what_is_to_be_done() -> None:
    assert finding.text(FINDINGS, quiet=True) == WRONG
    assert finding.text(FINDINGS[:2], quiet=True) == ""


def test_verbose_says_where_it_is_explained() -> None:
    text = finding.text(FINDINGS, verbose=True)
    assert text.count("             see docs/problems.md#") == 2
    assert f"see docs/problems.md#{Code.UNKNOWN_KEY.lower()}-unknown-key\n" in text


def test_what_somebody_else_wrote_cannot_act_on_a_terminal() -> None:
    assert "\\x1b[2J" in finding.text([Finding("fleet", "error", "a", "says \x1b[2J")])


def test_programs_get_counts_and_no_empty_keys() -> None:
    document = finding.document(FINDINGS)
    assert (document["errors"], document["warnings"]) == (1, 0)
    assert document["findings"][0] == {"topic": "machine", "state": "ok", "subject": "helm", "message": "4.3"}  # type: ignore[index]
