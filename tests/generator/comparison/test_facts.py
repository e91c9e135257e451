"""Facts of a fleet: what callers see, and every key of the file; of a registry what it has of them."""

from __future__ import annotations

from pallas_contract.documents import server_json
from pallas_contract.fleet import source
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.validate import load
from pallas_gen.comparison import facts

TEXT = """\
name: x
host: puck.example.com
agents:
  my_scout:
    {module: agents.scout, port: 8101, access: {tokens: {ann: {file: keys/ann}}}, icons: [{src: https://a.example/a}]}
  other: {card: other.md, port: 8102, publish: false}
"""


def fleet(text: str = TEXT) -> ResolvedFleet:
    return load.parse(source.parse(text, name="agents.yaml"))


def test_each_key_has_its_value_and_each_section_itself() -> None:
    values = facts.of_fleet(fleet(), "container").values
    assert values["agents.my_scout"] is True
    assert values["agents.my_scout.url"] == "http://puck.example.com:8101/mcp"
    assert values["agents.other.url"] == ""
    assert (values["agents.my_scout.access.protected"], values["agents.other.access.protected"]) == (True, False)
    assert values["agents.my_scout.access.tokens.ann.file"] == "keys/ann"
    assert values["registry.url"] == "http://puck.example.com:24200"
    assert "gateway" not in values
    assert values["telemetry"] is None


def test_a_registry_has_the_part_that_callers_see() -> None:
    for placement in ("container", "local"):
        one = facts.of_fleet(fleet(), placement)
        servers = [{"server": server_json.server(fleet(), name, None, placement)} for name in fleet().agents]
        registry = facts.of_registry({"servers": servers})
        assert (registry.whole, registry.placement) == (False, placement)
        assert registry.values == facts.callers_part(one).values
        assert registry.values["agents.my-scout.title"] == "My Scout"


def test_agents_that_registered_themselves_are_in_no_fleet_file() -> None:
    """One may have the last part of its name from an agent of the file, too."""
    server = server_json.server(fleet(), "other", None, "container")
    guest = {"server": server | {"name": "elsewhere/other"}, "_meta": {server_json.REGISTRATION_META: {}}}
    assert facts.of_registry({"servers": [guest]}).values == {"agents": True}
    whole = facts.of_registry({"servers": [{"server": server}, guest]})
    assert whole.values["agents.other.registry_name"] == server["name"]


def test_a_gateway_is_a_section_with_its_url() -> None:
    text = TEXT + "gateway: {agents: [my_scout], access: {tokens: {bob: {file: keys/bob}}}, tenants: {team: {}}}\n"
    values = facts.of_fleet(fleet(text), "container").values
    assert (values["gateway"], values["gateway.agents.my_scout"]) == (True, True)
    assert values["gateway.url"] == "http://puck.example.com:24190"
    assert values["gateway.tenants.team.requests"] == "100/minute"
    assert values["gateway.access.protected"] is True
