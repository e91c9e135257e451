"""Every row of the table, held by those who keep the contract, and seen failing by those who break it."""

from __future__ import annotations

import pytest

from pallas_testing.conformance.rows import table
from pallas_testing.conformance.run import Question, check

from .breakable import META, OFFICIAL, Agent, Hosts, Registry, judged_agent, judged_registry, of, verdicts

BROKEN_AGENTS = {
    "no MCP": {"agent.mcp"},
    "keeps sessions": {"agent.tear-down"},
    "fails at DELETE": {"agent.tear-down"},
    "tool without schema": {"agent.tools"},
    "no message": {"chat.tool", "chat.send-message"},
    "other chat tool": {"chat.send-message"},
    "message optional": {"chat.send-message"},
    "images required": {"chat.images"},
    "one image": {"chat.images"},
    "other prompt": {"history.prompt"},
    "empty history": {"history.content"},
    "no health tool": {"health.tool"},
    "health takes arguments": {"health.arguments"},
    "health takes anything": {"health.arguments"},
    "health without description": {"health.description"},
    "health fails": {"health.result"},
    "health is an error": {"health.result"},
    "two blocks": {"health.block"},
    "health in prose": {"health.object"},
    "unknown status": {"health.status"},
    "time of day": {"health.timestamp"},
    "no explanation": {"health.message"},
    "ok with a number": {"health.message"},
    "slow health": {"health.quick"},
    "health asks the model": {"health.no-model"},
    "healthz without provider": {"page.healthz"},
    "metrics are a page": {"page.metrics"},
    "loud": {"turn.quiet"},
    "no answer": {"turn.answer"},
    "turn fails": {"turn.answer"},
    "other words": {"turn.reply"},
    "no steps": {"turn.progress"},
    "no stream": {"turn.answer"},
    "result first": {"turn.stream"},
    "other token": {"turn.token"},
    "progress in words": {"turn.fields"},
    "prose": {"turn.format"},
    "never ends": {"turn.pairs"},
    "total while it goes on": {"turn.total"},
    "ends without total": {"turn.total"},
    "total of hundred": {"turn.total"},
    "goes back": {"turn.increasing"},
}
"""Switch -> what of the contract it breaks, and nothing else."""
BROKEN_REGISTRIES: dict[str, tuple[Registry, set[str]]] = {
    "asks for credentials": (Registry(status=401), {"registry.open"}),
    "served as text": (Registry(media_type="text/plain"), {"registry.content-type"}),
    "a bare list": (Registry(whole=[]), {"registry.servers"}),
    "a list of words": (Registry(whole={"servers": ["tech-research"]}), {"registry.servers"}),
    "twice the same": (Registry(copies=2), {"registry.unique"}),
    "meta is a list": (Registry(meta=[]), {"registry.meta"}),
    "time in words": (Registry(meta={OFFICIAL: {**META, "updatedAt": "today"}}), {"registry.meta"}),
    "latest in words": (Registry(meta={OFFICIAL: {**META, "isLatest": "yes"}}), {"registry.meta"}),
    "no name": (Registry({"name": None}), {"registry.name"}),
    "a name without a domain": (Registry({"name": "research"}), {"registry.name"}),
    "an underscore": (Registry({"name": "com.example/tech_research"}), {"registry.slug"}),
    "title is a number": (Registry({"title": 1}), {"registry.texts"}),
    "description is a list": (Registry({"description": []}), {"registry.texts"}),
    "version in words": (Registry({"version": "first"}), {"registry.version"}),
    "an icon without source": (Registry({"icons": [{"sizes": "any"}]}), {"registry.icons"}),
    "no remotes": (Registry({"remotes": None}), {"registry.remotes"}),
    "a remote without URL": (Registry({"remotes": [{"type": "streamable-http"}]}), {"registry.remotes"}),
    "sse only": (Registry({"remotes": [{"type": "sse", "url": "http://a/sse"}]}), {"registry.streamable-http"}),
    "a relative URL": (
        Registry({"remotes": [{"type": "streamable-http", "url": "/mcp"}]}),
        {"registry.streamable-http"},
    ),
    "vision in words": (Registry({"capabilities": {"vision": "yes"}}), {"registry.capabilities"}),
    "context window is true": (Registry({"capabilities": {"context_window": True}}), {"registry.capabilities"}),
    "another schema": (Registry({"$schema": "https://example.com/schema.json"}), {"registry.schema"}),
}
"""Registry -> what of the contract it breaks, and nothing else."""


async def test_who_keeps_the_contract_breaks_nothing_and_is_asked_everything() -> None:
    for report in (await judged_agent(Agent()), await judged_registry(Registry(), Agent())):
        assert [finding for finding in report.findings if finding.verdict != "held"] == []


@pytest.mark.parametrize("switch", BROKEN_AGENTS)
async def test_an_agent_that_breaks_a_sentence(switch: str) -> None:
    report = await judged_agent(Agent(frozenset({switch})))
    assert verdicts(report, "broken") == BROKEN_AGENTS[switch]
    assert all(finding.sent and finding.received and finding.right for finding in report.of("broken"))


@pytest.mark.parametrize("name", BROKEN_REGISTRIES)
async def test_a_registry_that_breaks_a_sentence(name: str) -> None:
    registry, broken = BROKEN_REGISTRIES[name]
    report = await judged_registry(registry, Agent(), kind="registry")
    assert verdicts(report, "broken") == broken
    assert all(finding.sent and finding.received and finding.right for finding in report.of("broken"))


async def test_an_endpoint_that_is_no_mcp_breaks_the_registry_and_one_that_is_down_does_not() -> None:
    assert verdicts(await judged_registry(Registry(), Agent(frozenset({"no MCP"}))), "broken") == {"registry.endpoints"}
    (down,) = (await judged_registry(Registry())).of("not asked")
    assert (down.id, down.remark.partition(":")[0]) == ("registry.endpoints", "nobody answers at http")
    (closed,) = of(await judged_registry(Registry(), Agent(frozenset({"asks for a token"}))), "registry.endpoints")
    assert (closed.verdict, closed.remark) == ("held", "a token is asked for at http://agent.example:8080/mcp")
    urls = ["http://agent.example:8080/mcp", "http://inside:8080/mcp"]
    registry = Registry({"remotes": [{"type": "streamable-http", "url": url} for url in urls]})
    (inside,) = of(await judged_registry(registry, Agent()), "registry.endpoints")
    assert (inside.verdict, inside.remark) == ("held", "nobody answers at http://inside:8080/mcp")


def test_every_row_was_seen_failing() -> None:
    agents = set().union(*BROKEN_AGENTS.values())
    registries = set().union(*(broken for _, broken in BROKEN_REGISTRIES.values())) | {"registry.endpoints"}
    assert {row.id for row in (*table.PAGES, *table.AGENT)} == agents
    assert {row.id for row in table.REGISTRY} == registries


@pytest.mark.parametrize("rows", [table.REGISTRY, table.PAGES, table.AGENT], ids=["registry", "pages", "agent"])
def test_a_row_comes_after_the_one_that_it_needs(rows) -> None:
    ids = [row.id for row in rows]
    assert len(ids) == len(set(ids))
    assert [row.id for row in rows if row.after and row.after not in ids[: ids.index(row.id)]] == []


@pytest.mark.parametrize("row", [*table.REGISTRY, *table.PAGES, *table.AGENT], ids=lambda row: row.id)
def test_a_row_says_where_it_stands(row) -> None:
    assert row.source.startswith(("seed 000, ", "seed 001, "))
    assert row.sentence


@pytest.mark.parametrize(("switches", "remark"), [(set(), "decision 0010"), ({"as the seed"}, "1 of 1, as the seed's")])
async def test_where_the_kit_differs_both_behaviours_hold(switches: set[str], remark: str) -> None:
    report = await judged_agent(Agent(frozenset(switches)))
    assert report.conformant
    for requirement in ("turn.total", "turn.increasing"):
        assert [remark in finding.remark for finding in of(report, requirement)] == [True, True]
        assert {finding.decision for finding in of(report, requirement)} == {"0010"}


@pytest.mark.parametrize(
    ("switch", "requirement", "remark"),
    [
        ("slow probes", "health.quick", "a probe of what it uses may take 3 s"),
        ("refuses DELETE", "agent.tear-down", "it lets no client end a session"),
        ("ends unasked", "turn.pairs", "no start of argos/search_web"),
    ],
)
async def test_what_the_seeds_leave_open_holds_with_a_remark(switch: str, requirement: str, remark: str) -> None:
    report = await judged_agent(Agent(frozenset({switch})))
    assert report.conformant
    assert remark in of(report, requirement)[0].remark  # of 2025-11-25, which has sessions


async def test_a_page_that_is_not_the_agents_is_not_asked() -> None:
    (absent,) = of(await judged_agent(Agent(frozenset({"no healthz"}))), "page.healthz")
    assert (absent.verdict, absent.remark) == ("not asked", "GET /healthz is no page of the agent: HTTP 404 text/plain")
    behind = Question("http://agent.example/agents/jarvis/mcp/")
    pages = (await check(behind, transport=Hosts(agent=Agent(frozenset({"metrics are a page"})).app))).findings[:2]
    assert [(page.verdict, page.remark.partition(" is ")[0]) for page in pages] == [
        ("not asked", "GET /agents/jarvis/healthz"),
        ("not asked", "GET /agents/jarvis/metrics"),
    ]
