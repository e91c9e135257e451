"""May a caller's token go to a server? Without a process: only the decision."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_agent_runtime.access.forward_policy import may_go_on
from pallas_agent_runtime.config import settings
from pallas_contract.fleet import source
from pallas_contract.validate import load
from pallas_service.access.caller import Caller

FLEET = """\
name: x
host: agents.example
access: {tokens: {ui: {file: s/ui}}, jwt: {issuer: https://id.example, jwks_file: keys.json}}
agents:
  harper: {module: m.harper, port: 8101, depends_on: [%s], access: {forward: [research]}}
  research: {module: m.research, port: 8102}
"""
RESEARCH, ELSEWHERE = "http://localhost:8102/mcp", "https://elsewhere.example/mcp"
AUDIENCE = "http://agents.example:8102/mcp"
UI = Caller("ui", "ui", "token")


def alice(audience: str) -> Caller:
    return Caller("alice", "alice", "token", "https://id.example", frozenset([audience]))


def harper(depends_on: str) -> settings.Settings:
    tree = source.parse(FLEET % depends_on, name="agents.yaml")
    return settings.resolve(load.parse(tree), tree, "harper", Path("/project"), environ={})


@pytest.mark.parametrize("caller", [UI, alice(AUDIENCE)], ids=["static", "jwt"])
def test_to_an_agent_it_depends_on_it_may(caller: Caller) -> None:
    assert may_go_on(harper("research"), "research", RESEARCH, caller)


@pytest.mark.parametrize("caller", [UI, alice(AUDIENCE)], ids=["static", "jwt"])
def test_another_server_with_the_name_of_an_agent_is_a_stranger(caller: Caller) -> None:
    """`research` of fast-agent's configuration: only a token that is for its URL may go there."""
    assert not may_go_on(harper(""), "research", ELSEWHERE, caller)
    assert may_go_on(harper(""), "research", ELSEWHERE, alice(ELSEWHERE))
