"""What is outside of the fleet is in the graph too, as far as the agents speak of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_contract.documents.reason import OK, Code, Reason
from pallas_registry import fleet_file
from pallas_registry.fleet_file import FleetReading
from pallas_registry.state.status import Condition
from pallas_registry.status_page.graph import Graph, build

WELL = Condition("ok", OK)
CONFIG = """
default_model: {model}
mcp:
  servers:
    web_search: {{url: "https://search.example.com/mcp"}}
    tech_research: {{url: "http://localhost:8250/mcp"}}
    files: {{command: uvx, args: [files]}}
"""


@pytest.fixture
def reading(folder: Path) -> FleetReading:
    (folder / "fastagent.config.yaml").write_text(CONFIG.format(model="openai.gpt-4.1"))
    return fleet_file.load(folder / "agents.yaml")


def graph(reading: FleetReading, **conditions: Condition) -> Graph:
    everybody = {agent: conditions.get(agent, WELL) for agent in reading.fleet.agents}
    return build(reading, everybody, {"harper": ("tech_research",)}, set(), probed={})


def unwell(code: Code, *about: str) -> Condition:
    return Condition("degraded", Reason(code, "so it says", about))


def states(graph: Graph) -> dict[str, tuple[str, str]]:
    return {node.name: (node.kind, node.state) for node in graph.nodes}


def test_servers_and_the_model_outside_are_nodes(reading: FleetReading) -> None:
    drawn = graph(reading)
    assert states(drawn) == {
        "harper": ("agent", "ok"),
        "tech_research": ("agent", "ok"),
        "web_search": ("server", "service"),
        "openai.gpt-4.1": ("model", "ok"),
    }, "a server that an agent starts itself is not outside, nor is a member of the fleet"
    assert drawn.edges == (
        ("harper", "tech_research"),
        ("harper", "openai.gpt-4.1"),
        ("tech_research", "openai.gpt-4.1"),
    )


def test_a_server_that_an_agent_cannot_reach_is_the_suspect(reading: FleetReading) -> None:
    drawn = graph(reading, tech_research=unwell("Unreachable", "web-search", "web_search", "unheard-of"))
    assert states(drawn)["web_search"] == ("server", "suspect")
    assert ("tech_research", "web_search") in drawn.edges
    assert "unheard-of" not in states(drawn), "a name that only an agent knows is no node"


def test_a_remark_of_an_agent_that_is_well_is_no_trouble(reading: FleetReading) -> None:
    drawn = graph(reading, harper=Condition("ok", Reason("Ok", "by the way", ("web_search",))))
    assert states(drawn)["web_search"] == ("server", "service")


def test_a_model_whose_provider_is_down_is_the_suspect(reading: FleetReading) -> None:
    assert states(graph(reading, harper=unwell("ProviderDown")))["openai.gpt-4.1"] == ("model", "suspect")
    nobody = {agent: Condition("unknown") for agent in reading.fleet.agents}
    assert states(graph(reading, **nobody))["openai.gpt-4.1"] == ("model", "service")


def test_a_model_that_calls_nobody_is_not_outside(folder: Path) -> None:
    (folder / "fastagent.config.yaml").write_text(CONFIG.format(model="passthrough"))
    assert "passthrough" not in states(graph(fleet_file.load(folder / "agents.yaml")))


def test_a_fleet_that_brings_its_model_along_has_it_once() -> None:
    example = Path(__file__).parents[3] / "examples" / "02-pallas" / "agents.yaml"
    assert "model" not in {node.kind for node in graph(fleet_file.load(example)).nodes}
