"""Servers that answer with values of other shapes: each requirement has a verdict, and nothing is raised."""

from __future__ import annotations

import asyncio
from typing import Any
from xml.etree import ElementTree

from hypothesis import example, given
from hypothesis import strategies as st

from pallas_testing.conformance import report
from pallas_testing.conformance.rows import table
from pallas_testing.conformance.run import Report
from tests.examples import hostile
from tests.mutations import documents

from .breakable import META, OFFICIAL, SERVER, Agent, Registry, judged_agent, judged_registry

DOCUMENT = {"servers": [{"server": SERVER, "_meta": {OFFICIAL: META}}, {"server": {**SERVER, "name": "a.b/c"}}]}
AGENT = Agent()
UNPRINTABLE = "\x1b[2J\ud800\ufffe\uffff\u2028"
ANSWERS: dict[str, Any] = {
    "initialize": AGENT._initialize({}),
    "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "prompts": {}}},
    "tools/list": {"tools": AGENT._tools()},
    "prompts/list": {"prompts": [{"name": "jarvis_history"}]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}]},
    "get_health": AGENT._health(),
    "turn": [
        *AGENT._progress("pallas-testing-progress"),
        {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "x"}]}},
    ],
}
HUGE = {
    "method": "notifications/progress",
    "params": {"progress": 10**400, "message": "jarvis step 4 (llm)", "progressToken": "pallas-testing-progress"},
}


def encoded(judged: Report) -> bool:
    """Return True where each form of the report can be written, and acts on no terminal."""
    ElementTree.fromstring(report.junit(judged))
    texts = [form(judged).encode().decode() for form in report.FORMATS.values()]
    return all(line.isprintable() for text in texts for line in text.split("\n"))


@hostile(100)
@given(documents(ANSWERS))
@example({"tools/list": {"tools": [{"name": "send_message", "inputSchema": {"properties": [], "required": 1}}]}})
@example({**ANSWERS, "turn": [{"jsonrpc": "2.0", "id": 1, "result": {"content": 1}}]})
@example({"turn": [{"method": "notifications/progress", "params": []}, *ANSWERS["turn"]]})
@example({**ANSWERS, "turn": [*AGENT._progress("pallas-testing-progress"), HUGE, HUGE, *ANSWERS["turn"][-1:]]})
@example({**ANSWERS, "tools/list": {"tools": [{"name": UNPRINTABLE}]}})
def test_an_agent(answers: dict[str, Any]) -> None:
    judged = asyncio.run(judged_agent(Agent(replaced={name: answers[name] for name in ANSWERS if name in answers})))
    assert {finding.id for finding in judged.findings} == {row.id for row in (*table.PAGES, *table.AGENT)}
    assert encoded(judged)


@hostile(200)
@given(documents(DOCUMENT) | st.just({}))
@example({"servers": [{"server": {**SERVER, "remotes": [{"type": "streamable-http", "url": "http://["}]}}]})
@example({"servers": [{"server": {**SERVER, "name": f"a/{UNPRINTABLE}"}}] * 2})
@example({"servers": [{"server": {**SERVER, "remotes": [{"type": "streamable-http", "url": "http://a:99999/mcp"}]}}]})
def test_a_registry(document: dict[str, Any]) -> None:
    judged = asyncio.run(judged_registry(Registry(whole=document), Agent(), kind="registry"))
    assert {finding.id for finding in judged.findings} == {row.id for row in table.REGISTRY}
    assert encoded(judged)
