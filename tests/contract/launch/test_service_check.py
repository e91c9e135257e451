"""What the registry asks each service: the health of the fleet file, over the network, or the reason why not."""

from __future__ import annotations

import pytest

from pallas_contract.fleet import source
from pallas_contract.launch.service_check import ServiceCheck, checked_services, service_check
from pallas_contract.validate import load

FLEET = """
name: demo
agents: {scout: {card: scout.md, port: 8101}}
services:
  own: {module: tools.own, port: 8110}
  own_model: {module: tools.model, port: 8111, provides: openai}
  weather: {image: weather, port: 8112, command: [weather]}
  at_path: {image: weather, port: 8113, path: /api, command: [weather]}
  old: {image: weather, port: 8114, path: /sse, command: [weather]}
  model: {image: ollama, port: 8115, provides: openai, path: /api/v1, command: [ollama]}
  shy: {image: ollama, port: 8116, provides: openai, health: {command: [ollama, list]}, command: [ollama]}
  vectors: {image: qdrant, port: 8117, provides: other, health: {path: /readyz}, command: [qdrant]}
  cache: {image: redis, port: 8118, provides: other, url: "http://localhost:9118"}
"""
ASKED = {
    "own": ("mcp", "http://{}/mcp"),
    "own_model": ("get", "http://{}/v1/models"),
    "weather": ("mcp", "http://{}/mcp"),
    "at_path": ("mcp", "http://{}/api"),
    "old": ("sse", "http://{}/sse"),
    "model": ("get", "http://{}/api/v1/models"),
    "vectors": ("get", "http://{}/readyz"),
    "cache": ("tcp", "tcp://{}"),
}


@pytest.fixture(scope="module")
def fleet():
    return load.check(source.parse(FLEET, name="agents.yaml"))[0]


@pytest.mark.parametrize("service", ASKED)
def test_in_a_container_each_is_asked_what_it_provides(fleet, service: str) -> None:
    kind, url = ASKED[service]
    port = 8080 if fleet.services[service].module else fleet.services[service].port
    at = f"{service.replace('_', '-')}:{port}"
    assert service_check(fleet, service, "container") == ServiceCheck(kind, url.format(at))


@pytest.mark.parametrize("service", [name for name in ASKED if name != "cache"])
def test_as_a_process_at_its_own_port(fleet, service: str) -> None:
    kind, url = ASKED[service]
    at = f"127.0.0.1:{fleet.services[service].port}"
    assert service_check(fleet, service, "local") == ServiceCheck(kind, url.format(at))


def test_a_command_in_the_container_is_nothing_to_ask(fleet) -> None:
    check = service_check(fleet, "shy", "container")
    assert check.obstacle == "its health is a command in its container, `ollama list`"
    assert service_check(fleet, "shy", "local") == ServiceCheck("tcp", "tcp://127.0.0.1:8116")


def test_what_runs_elsewhere_is_not_asked(fleet) -> None:
    assert service_check(fleet, "cache", "local").obstacle == "it runs outside of the fleet, at localhost:9118"


def test_the_registry_has_a_way_to_those_it_asks(fleet) -> None:
    assert checked_services(fleet) == tuple(sorted(name.replace("_", "-") for name in ASKED))
