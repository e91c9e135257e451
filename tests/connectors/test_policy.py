"""agents.full.yaml: who may call the connectors, and what a parent has to confirm."""

from __future__ import annotations

from pathlib import Path

import pytest
from connectors import serving
from connectors.calendar import server as calendar
from connectors.mail import server as mail
from connectors.smart_home import server as smart_home
from mcp.server import MCPServer

from pallas_contract.validate import load
from pallas_gateway.policy.policy import Policy
from pallas_service.access.caller import Caller
from tests.installed import ROOT

FILE = ROOT / "examples" / "05-atlas" / "agents.full.yaml"
FLEET, _, WARNINGS = load.load(FILE)
ASKS = {"send_mail", "delete_mail", "delete_event", "switch_device"}
SERVERS = {"mail": mail, "calendar": calendar, "smart-home": smart_home}


def caller(name: str) -> Caller:
    """Return the caller with the static token of that name."""
    return Caller(name, name, "")


def offered(name: str) -> MCPServer:
    """Return the server that runs by the file's own variables."""
    service = FLEET.services[name.replace("-", "_")]
    return serving.server(name, SERVERS[name].tools(service.env))


@pytest.mark.parametrize("name", SERVERS)
async def test_what_cannot_be_undone_wants_a_parent_and_nobody_else_calls_it(name: str) -> None:
    assert FLEET.gateway is not None
    policy = Policy(FLEET.gateway, FLEET.agents)
    tools = {tool.name for tool in await offered(name).list_tools()}
    assert tools
    for tool in tools:
        decision = policy.decide(caller("family"), name, tool, {})
        assert (decision.verdict == "confirm") == (tool in ASKS), tool
        assert decision.by == (frozenset({"parent"}) if tool in ASKS else frozenset())
        for stranger in ("phone", "parent", "work", "desk"):
            assert policy.decide(caller(stranger), name, tool, {}).verdict == "refused"


def test_passwords_are_named_and_written_nowhere() -> None:
    for name in SERVERS:
        service = FLEET.services[name.replace("-", "_")]
        assert [Path(secret.file).parent.name for secret in service.secrets.values()] == ["secrets"]
        assert not any("PASSWORD" in variable for variable in service.env)
