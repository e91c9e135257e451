"""Who can be reached from outside, where, and who asks for a token."""

from __future__ import annotations

import pytest

from pallas_contract.fleet import source
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.validate import load
from pallas_gen.clients import entries
from pallas_gen.clients.entries import Entry

FLEET = """\
name: x
agents:
  my_scout: {card: a.md, port: 8101, description: Looks around, access: {tokens: {ann: {file: k}}}}
  other: {card: b.md, port: 8102}
  inner: {card: c.md, port: 8103, publish: false}
  hidden: {card: d.md, port: 8104, publish: false}
gateway: {agents: [inner], access: {tokens: {bob: {file: b}}}}
"""


def fleet(text: str = FLEET) -> ResolvedFleet:
    return load.parse(source.parse(text, name="agents.yaml"))


def test_agents_are_reached_at_their_address_or_through_the_gateway() -> None:
    listed = entries.of_fleet(fleet())
    assert listed.reached == (
        Entry("my-scout", "http://localhost:8101/mcp", "Looks around", True),
        Entry("other", "http://localhost:8102/mcp", "Other", False),
        Entry("inner", "http://localhost:24190/agents/inner/mcp", "Inner", True),
    )
    assert listed.hidden == ("hidden",)
    assert entries.asking(listed.reached) == ["my-scout", "inner"]


@pytest.mark.parametrize(
    "gateway", ["gateway: {agents: [inner], publish: false}", "gateway: {agents: [inner], access: {}}"]
)
def test_a_gateway_that_is_not_there_for_them_leads_nowhere(gateway: str) -> None:
    listed = entries.of_fleet(fleet(FLEET[: FLEET.index("gateway")] + gateway))
    tokens = {entry.name: entry.token for entry in listed.reached}
    assert tokens.get("inner", "hidden") == ("hidden" if "publish: false" in gateway else False)


@pytest.mark.parametrize(
    ("access", "through"),
    [
        ("tokens: {gateway: {file: g}}", True),
        ("tokens: {gateway: {file: g}, my_scout: {file: s}}", True),
        ("tokens: {gateway: {file: g}, bob: {file: b}}", False),
        ("tokens: {gateway: {file: g}}, jwt: {issuer: 'https://i.example', jwks_file: k}", False),
        ("tokens: {}", False),
    ],
)
def test_an_agent_that_takes_tokens_of_members_alone_is_reached_through_the_gateway(access: str, through: bool) -> None:
    """No client has such a token, or it could call the agent as any of the gateway's callers."""
    text = FLEET.replace(
        "{card: c.md, port: 8103, publish: false}", f"{{card: c.md, port: 8103, access: {{{access}}}}}"
    )
    (inner,) = (entry for entry in entries.of_fleet(fleet(text)).reached if entry.name == "inner")
    assert inner.url == f"http://localhost:{'24190/agents/inner' if through else '8103'}/mcp"
    (alone,) = (
        entry
        for entry in entries.of_fleet(fleet(text.partition("gateway: {agents")[0])).reached
        if entry.name == "inner"
    )
    assert alone.url == "http://localhost:8103/mcp"


def test_a_gateway_with_tools_of_its_own_is_one_more() -> None:
    tenants = FLEET.replace("{bob: {file: b}}}", "{bob: {file: b}}}, tenants: {team: {callers: [bob]}}")
    *agents, gateway = entries.of_fleet(fleet(tenants)).reached
    assert tuple(agents) == entries.of_fleet(fleet()).reached
    assert (gateway.name, gateway.url, gateway.token) == ("gateway", "http://localhost:24190/mcp", True)
    hidden = tenants.replace("gateway: {", "gateway: {publish: false, ")
    assert all(entry.name != "gateway" for entry in entries.of_fleet(fleet(hidden)).reached)


def test_one_that_is_reached_through_the_gateway_alone_has_its_address_there() -> None:
    text = FLEET.replace("port: 8103, publish: false", "port: 8103, through: gateway")
    listed = entries.of_fleet(fleet(text.replace("port: 8104, publish: false", "port: 8104, through: gateway")))
    assert listed.reached[-1] == Entry("inner", "http://localhost:24190/agents/inner/mcp", "Inner", True)
    assert listed.hidden == ("hidden",)  # the gateway leads to it for those who depend on it


def item(name: str, *urls: str, status: str = "ok", **meta: object) -> dict[str, object]:
    server = {"name": f"local.x/{name}", "title": name.title(), "remotes": [{"url": url} for url in urls]}
    return {"server": server, "_meta": {"io.pallas-kit/health": {"status": status}, **meta}}


def test_a_registry_has_them_by_their_public_address() -> None:
    inside = "http://{}:8080/mcp"
    document = {
        "servers": [
            item("two", "https://a.example/two", inside.format("two"), status="unauthenticated"),
            item("one", "http://localhost:8101/mcp"),
            item("inner", inside.format("inner")),
            item("through", "http://gateway:8080/agents/through/mcp"),
            item("guest", "http://b.example/", status="unauthenticated", **{"io.pallas-kit/registration": {}}),
        ]
    }
    listed = entries.of_registry(document)
    assert listed.reached == (
        Entry("guest", "http://b.example/", "Guest", False, registered=True),
        Entry("one", "http://localhost:8101/mcp", "One", False),
        Entry("two", "https://a.example/two", "Two", True),
    )
    assert listed.hidden == ("inner", "through")
    assert entries.asking(entries.with_token(listed, True).reached) == ["one", "two"], "a guest would get the token"
    assert entries.asking(entries.with_token(listed, False).reached) == []
