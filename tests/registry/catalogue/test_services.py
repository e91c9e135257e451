"""The services of the file in the registry's own document, its metrics and its log, over the parts as they run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pallas_contract.documents.reason import Reason
from pallas_contract.fleet import source
from pallas_contract.launch import run_files, service_check
from pallas_contract.launch.addresses import Placement
from pallas_contract.probe.probe import Result
from pallas_contract.validate import load
from pallas_registry.catalogue import services
from pallas_registry.discovery.sighting import Endpoint
from pallas_registry.service import Service
from tests.registry.fake_fleet import Fake, running

pytestmark = pytest.mark.usefixtures("no_threads")

SERVICES = "services:\n  weather: {module: tools.weather, port: 8301}\n"
REFUSED = Result("error", Reason("ConnectionRefused", "connection refused"))


@pytest.fixture
def served(folder: Path, fake: Fake) -> Path:
    """The fleet with a service, which answers."""
    (folder / "agents.yaml").write_text((folder / "agents.yaml").read_text() + SERVICES)
    fake.put("weather", "10.0.0.9")
    return folder


def documented(service: Service) -> list[tuple[str, str, str]]:
    document = service.publisher.ready(services.PATH)
    assert document
    entries = json.loads(document.body)["services"]
    return [(entry["name"], entry["status"], entry.get("reason", "")) for entry in entries]


async def test_a_service_is_followed_beside_the_agents(served: Path, time, fake: Fake) -> None:
    async with running(served, time, fake, fake, services=fake) as service:
        assert documented(service) == [("weather", "unknown", "NotProbedYet")]
        await time.advance(10)
        assert documented(service) == [("weather", "ok", "")]
        first = service.publisher.ready(services.PATH)
        with capture_logs() as logs:
            fake.put("weather", "10.0.0.9", REFUSED)
            await time.advance(5)
        assert documented(service) == [("weather", "error", "ConnectionRefused")]
        assert service.publisher.ready(services.PATH) is not first
        (logged,) = [entry for entry in logs if entry["event"] == "service state changed"]
        assert (logged["name"], logged["new"], logged["log_level"]) == ("weather", "error", "warning")
        exposition = (await service.monitor.metrics.scrape(""))[0].decode()
        for line in (
            'pallas_service_health{name="weather"} 0.0',
            'pallas_service_reason{code="ConnectionRefused",name="weather"} 1.0',
            'pallas_service_state_changes_total{name="weather",new="error",old="ok"} 1.0',
        ):
            assert line in exposition
        assert 'agent="weather"' not in exposition


async def test_the_document_says_whose_registry_it_is(served: Path, time, fake: Fake) -> None:
    async with running(served, time, fake, fake, services=fake) as service:
        reading, states = service.monitor.reading, service.monitor.service_states

    def fleet(placement: Placement) -> object:
        return json.loads(services.document(reading, states, placement).body)["fleet"]

    name = reading.fleet.name
    project = run_files.project_id(served / "agents.yaml")
    assert fleet("local") == {"name": name, "placement": "local", "project": project}
    assert fleet("container") == {"name": name, "placement": "container"}
    assert str(served) not in services.document(reading, states, "local").body.decode()


async def test_a_service_that_leaves_the_file_is_forgotten_and_asked_no_more(served: Path, time, fake: Fake) -> None:
    async with running(served, time, fake, fake, services=fake) as service:
        await time.advance(10)
        path = served / "agents.yaml"
        path.write_text(path.read_text().replace(SERVICES, ""))
        await time.advance(3)
        assert documented(service) == []
        (endpoint,) = fake.where["weather"]
        del fake.answers[endpoint]  # to be asked now fails the test
        await time.advance(10)
        assert "pallas_service_health{" not in (await service.monitor.metrics.scrape(""))[0].decode()


async def test_what_cannot_be_asked_is_no_metric_and_no_warning(served: Path, time, fake: Fake) -> None:
    path = served / "agents.yaml"
    path.write_text(path.read_text() + "  shy: {image: shy, port: 8302, health: {command: [check]}}\n")
    names: list[str] = []

    async def resolve(host: str) -> frozenset[str]:
        names.append(host)
        return frozenset({"10.0.0.9"})

    fake.answers[Endpoint("http://weather:8080/mcp", "10.0.0.9", "mcp")] = Result("ok")
    with capture_logs() as logs:
        async with running(served, time, fake, fake, resolve=resolve) as service:
            await time.advance(1)
            assert names == ["weather"]
            assert ("shy", "unknown", "NotProbed") in documented(service)
            exposition = (await service.monitor.metrics.scrape(""))[0].decode()
    assert 'pallas_service_reason{code="NotProbed",name="shy"} 1.0' in exposition
    assert 'pallas_service_health{name="shy"}' not in exposition
    assert not [entry for entry in logs if entry.get("name") == "shy" and entry["log_level"] != "info"]


async def test_the_gateway_is_followed_like_a_service_and_drawn_before_its_agents(
    folder: Path, time, fake: Fake
) -> None:
    path = folder / "agents.yaml"
    agent = next(iter(load.load(path)[0].agents))
    path.write_text(path.read_text() + f"gateway: {{agents: [{agent}]}}\n")
    fake.put("gateway", "10.0.0.8")
    async with running(folder, time, fake, fake, services=fake) as service:
        await time.advance(10)
        assert documented(service) == [("gateway", "ok", "")]
        view = service.monitor.overview()
        assert (view.nodes[0].name, view.nodes[0].state) == ("gateway", "ok")
        assert ("gateway", agent) in view.edges
        assert [(row.name, row.provides) for row in view.services] == [("gateway", "gateway")]


def test_the_gateway_is_asked_whether_it_is_ready() -> None:
    text = "{name: x, gateway: {agents: [a], port: 8300}, agents: {a: {card: a.md, port: 8101}}}"
    fleet = load.parse(source.parse(text, name="agents.yaml"))
    for placement, url in (("local", "http://127.0.0.1:8300/readyz"), ("container", "http://gateway:8080/readyz")):
        assert service_check.service_check(fleet, "gateway", placement) == service_check.ServiceCheck("get", url)
    assert service_check.checked_services(fleet) == ("gateway",)
