"""The three forms of a report."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from pallas_testing.conformance import report
from pallas_testing.conformance.requirement import Finding
from pallas_testing.conformance.run import Report

from .breakable import Agent, judged_agent

HELD = Finding("agent.mcp", "seed 000, 5 Why MCP", "it is one", "2025-11-25", "held", "so it is")
OPEN = Finding("turn.quiet", "seed 000, 4", "it is quiet", "2025-11-25", "not asked", "needs --message")
BROKEN = Finding(
    id="turn.total",
    source="seed 000, 4 Handling",
    sentence="total is null",
    era="2026-07-28",
    verdict="broken",
    decision="0010",
    sent="tools/call {}",
    received="HTTP 200 <b>\x00\x1b[2J\ud800\uffff\u202e",
    right="null",
)
REPORT = Report("http://a/mcp", "agent", [HELD, OPEN, BROKEN])
TEXT = """\
agent http://a/mcp

held       agent.mcp 2025-11-25: so it is
not asked  turn.quiet 2025-11-25: needs --message
BROKEN     turn.total 2026-07-28
           seed 000, 4 Handling: total is null (the kit differs by decision 0010)
           sent      tools/call {}
           received  HTTP 200 <b>\\x00\\x1b[2J\\ud800\\uffff\\u202e
           right     null

1 held, 1 broken, 1 not asked
"""


def test_text() -> None:
    assert report.text(REPORT) == TEXT
    assert report.broken(REPORT).splitlines()[0] == (
        "agent http://a/mcp does not keep the contract: 1 held, 1 broken, 1 not asked"
    )
    assert report.broken(REPORT).splitlines()[1:] == TEXT.splitlines()[4:9]


def test_json() -> None:
    document = json.loads(report.as_json(REPORT))
    assert (document["kind"], document["url"], document["conformant"]) == ("agent", "http://a/mcp", False)
    assert [finding["verdict"] for finding in document["findings"]] == ["held", "not asked", "broken"]
    assert document["findings"][2]["decision"] == "0010"
    assert "sent" not in document["findings"][0]


def test_junit() -> None:
    suite = ElementTree.fromstring(report.junit(REPORT))[0]
    assert {key: suite.get(key) for key in ("tests", "failures", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "skipped": "1",
    }
    held, skipped, broken = suite
    assert (held.get("classname"), held.get("name"), len(held)) == ("conformance.agent", "agent.mcp 2025-11-25", 0)
    assert skipped[0].get("message") == "needs --message"
    assert str(broken[0].get("message")).startswith("seed 000, 4 Handling: total is null")
    assert (
        broken[0].text == "sent: tools/call {}\nreceived: HTTP 200 <b>\\x00\\x1b[2J\\ud800\\uffff\\u202e\nright: null"
    )


async def test_the_same_server_gives_the_same_bytes() -> None:
    once, again = [await judged_agent(Agent(frozenset({"prose"}))) for _ in range(2)]
    for form in report.FORMATS.values():
        assert form(once) == form(again)
