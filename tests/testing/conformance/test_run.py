"""What is at a URL, which eras an agent has to speak, and what is left unasked."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from pallas_testing.conformance.run import NobodyThere, Question, check, endpoint
from pallas_testing.conformance.session import LEGACY, MODERN

from .breakable import SERVER, Agent, Hosts, Registry, judged_agent, judged_registry, of, verdicts


async def kind(url: str, **apps: Starlette) -> str:
    return (await check(Question(url), transport=Hosts(**apps))).kind


def own_entry(port: int) -> Starlette:
    """An agent as the kit's are: its own entry, as a registry would have it, stands beside its endpoint."""
    entry = {"server": {**SERVER, "remotes": [{"type": "streamable-http", "url": f"http://localhost:{port}/mcp"}]}}
    app = Agent().app
    app.routes.append(Route("/.well-known/mcp/server.json", lambda _: JSONResponse({"servers": [entry]})))
    return app


async def test_it_finds_out_what_the_url_is() -> None:
    assert await kind("http://registry.example", registry=Registry().app) == "registry"
    assert await kind("http://registry.example/.well-known/mcp/server.json", registry=Registry().app) == "registry"
    assert await kind("http://registry.example", registry=Registry(whole={"servers": []}).app) == "registry"
    assert await kind("http://agent.example", agent=Agent().app) == "agent"
    assert await kind("http://agent.example/mcp", agent=Agent().app) == "agent"
    assert await kind("http://agent.example:8201", agent=own_entry(8201)) == "agent"
    assert await kind("http://agent.example:8200", agent=own_entry(8201)) == "registry"
    assert await kind("http://agent.example", agent=Agent(frozenset({"asks for a token"})).app) == "agent"


async def test_nobody_there_is_told_with_what_came_back() -> None:
    with pytest.raises(NobodyThere, match=r"neither a registry nor an agent .*\n +GET \S+: no answer: connection ref"):
        await kind("http://nobody.example")
    with pytest.raises(NobodyThere, match="HTTP 404"):
        await kind("http://other.example", other=Starlette())
    escape = Starlette(routes=[Route("/.well-known/mcp/server.json", lambda _: PlainTextResponse("\x1b[2J"))])
    with pytest.raises(NobodyThere, match=r"HTTP 200 text/plain \\x1b\[2J\n"):
        await kind("http://escape.example", escape=escape)


def test_the_endpoint_of_an_agent() -> None:
    assert endpoint("http://a:1") == endpoint("http://a:1/") == endpoint("http://a:1/mcp") == "http://a:1/mcp"
    assert endpoint("http://a:1/other") == "http://a:1/other"


@pytest.mark.parametrize(("switch", "absent"), [("legacy only", MODERN), ("modern only", LEGACY)])
async def test_one_era_is_enough_unless_both_are_demanded(switch: str, absent: str) -> None:
    agent = Agent(frozenset({switch}))
    report = await judged_agent(agent)
    assert report.conformant
    assert {finding.era for finding in report.of("not asked")} == {absent}
    assert {finding.remark for finding in report.of("not asked")} == {
        f"does not speak {absent}; the seeds name no version"
    }
    demanded = await judged_agent(agent, eras=[LEGACY, MODERN])
    assert [(finding.id, finding.era) for finding in demanded.of("broken")] == [("agent.mcp", absent)]


async def test_without_a_message_no_model_is_asked() -> None:
    agent = Agent()
    report = await judged_agent(agent, None)
    assert agent.asked == 0
    assert report.conformant
    asked = {name for name in verdicts(report, "not asked") if not name.startswith("turn.")}
    assert asked == {"history.content"}
    assert {finding.remark for finding in report.of("not asked")} == {"needs --message"}


async def test_an_agent_that_remembers_nothing_has_no_prompt() -> None:
    report = await judged_agent(Agent(frozenset({"no prompts", "no sessions"})))
    assert report.conformant
    assert verdicts(report, "not asked") == {"history.prompt", "history.content"}
    assert {finding.remark for finding in of(report, "agent.tear-down")} == {"it has no session"}


async def test_a_token_goes_to_the_endpoint_and_into_no_report() -> None:
    agent = Agent(frozenset({"asks for a token"}))
    assert verdicts(await judged_agent(agent), "broken") == {"agent.mcp"}
    report = await judged_agent(agent, token="planted-0815")
    assert report.conformant
    assert "planted" not in str(report)
    registry = await judged_registry(Registry(), agent, token="planted-0815")
    (closed,) = of(registry, "registry.endpoints")
    assert closed.remark  # the token is the agent's that was named, and of nobody whom a registry names


async def test_no_session_is_left_with_whom_it_asked() -> None:
    agent = Agent()
    await judged_agent(agent)
    await judged_registry(Registry(), agent)
    assert agent.sessions == set()
