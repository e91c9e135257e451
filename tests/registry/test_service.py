"""All parts together in a time of the tests' own: the set follows the file, the states follow the world."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pallas_contract.documents import absence
from pallas_contract.documents.reason import NOT_FOUND, Reason
from pallas_contract.probe.probe import Result
from pallas_registry.discovery.sighting import Endpoint
from pallas_registry.discovery.static import StaticDiscovery
from pallas_registry.loops import KEEP_UPTIME
from pallas_registry.registration.store import MemoryRegistrations
from pallas_registry.service import Service
from pallas_service.sqlite_file import CannotStore
from tests.registry.fake_fleet import Fake, running, states

pytestmark = pytest.mark.usefixtures("no_threads")


async def test_every_agent_is_listed_before_the_first_probe(folder: Path, time, fake: Fake) -> None:
    async with running(folder, time, fake, fake) as service:
        assert states(service) == {
            "harper": ("unknown", "not probed yet"),
            "tech-research": ("unknown", "not probed yet"),
        }
        assert service.monitor.waiting() == "2 of 2 agents not probed yet"


async def test_ready_after_the_first_sweep(folder: Path, time, fake: Fake) -> None:
    async with running(folder, time, fake, fake) as service:
        await time.advance()
        assert service.monitor.waiting() == ""
        assert states(service) == {"harper": ("ok", ""), "tech-research": ("ok", "")}


async def test_uptime_follows_the_states_and_forgets_who_is_gone(folder: Path, time, fake: Fake) -> None:
    async with running(folder, time, fake, fake) as service:
        await time.advance(30)
        fake.put("harper", "10.0.0.1", Result("error", Reason("ConnectionRefused", "connection refused")))
        await time.advance(30)
        time.jumped = -3600.0
        hour = service.monitor.uptime.of("harper").hour
        assert 30 <= hour.up < hour.known == 60, "the clock of the day does not count"
        path = folder / "agents.yaml"
        path.write_text("\n".join(line for line in path.read_text().splitlines() if "harper" not in line))
        await time.advance(10)
        assert set(service.monitor.uptime.document()["agents"]) == {"tech_research"}


async def test_a_lock_that_is_written_beside_the_file_is_compared_with_and_one_that_goes_is_not(
    folder: Path, time, fake: Fake
) -> None:
    async with running(folder, time, fake, fake) as service:
        await time.advance()
        (folder / "agents.lock").write_text('{"lock": 1, "name": "x", "version": "9.0.0", "agents": {}}')
        await time.advance(2)
        drifted = ("degraded", "drift: agents.lock has no such agent")
        assert states(service) == {"harper": drifted, "tech-research": drifted}
        assert b'pallas_agent_reason{agent="harper",code="Drift"} 1.0' in (await service.monitor.metrics.scrape(""))[0]
        (folder / "agents.lock").unlink()
        await time.advance(2)
        assert states(service) == {"harper": ("ok", ""), "tech-research": ("ok", "")}


class Lasting(MemoryRegistrations):
    """A store that a second registry finds again; full once told so."""

    def __init__(self) -> None:
        self.uptime: dict[str, bytes] = {}
        self.full = False

    def load_uptime(self) -> dict[str, bytes]:
        return self.uptime

    async def save_uptime(self, records: Callable[[], Mapping[str, bytes]]) -> None:
        if self.full:
            raise CannotStore("disk full")
        self.uptime = dict(records())


async def test_uptime_outlives_a_registry_that_has_a_store(folder: Path, time, fake: Fake) -> None:
    store = Lasting()
    async with running(folder, time, fake, fake, store=store):
        await time.advance(KEEP_UPTIME + 60)
    await time.advance(600)
    store.uptime["gone"] = store.uptime["harper"]
    store.uptime["tech_research"] = b"no record"
    with capture_logs() as logs:
        async with running(folder, time, fake, fake, store=store) as service:
            assert service.monitor.uptime.of("harper").hour.known == KEEP_UPTIME, "as of the last time it was saved"
            assert set(service.monitor.uptime.document()["agents"]) == {"harper"}
            store.full = True
            await time.advance(KEEP_UPTIME + 60)
            store.full = False
            await time.advance(KEEP_UPTIME)
    assert [entry["agent"] for entry in logs if entry["event"] == "a kept uptime is not usable"] == ["tech_research"]
    assert [entry["reason"] for entry in logs if entry["event"] == "uptime cannot be stored"] == ["disk full"]
    assert set(store.uptime) == {"harper", "tech_research"}, "it goes on after a time that failed"


async def test_ready_after_five_seconds_whatever_the_agents_do(folder: Path, time, fake: Fake) -> None:
    async def hang(_endpoint: Endpoint, _before: Result | None) -> Result:
        await asyncio.Event().wait()
        raise AssertionError

    fake.check = hang
    async with running(folder, time, fake, fake) as service:
        await time.advance(4.9)
        assert service.monitor.waiting() == "2 of 2 agents not probed yet"
        await time.advance(0.1)
        assert service.monitor.waiting() == ""


REFUSED = Result("error", Reason("ConnectionRefused", "connection refused"))
START = {"start_period": 120.0, "patience": 120.0}
"""As in containers."""


async def test_a_fleet_that_starts_is_starting_and_the_registry_is_ready_after_it(
    folder: Path, time, fake: Fake
) -> None:
    up = fake.where.pop("harper")
    fake.put("tech_research", "10.0.0.2", REFUSED)
    async with running(folder, time, fake, fake, **START) as service:
        await time.advance(50)
        assert states(service) == {
            "harper": ("starting", "not up yet: name not found"),
            "tech-research": ("starting", "not up yet: connection refused"),
        }
        assert service.monitor.waiting() == "2 of 2 starting"
        fake.put("tech_research", "10.0.0.2")
        await time.advance(1)
        assert states(service)["tech-research"] == ("ok", "")
        fake.where["harper"] = up
        assert service.monitor.waiting() == "1 of 2 starting"
        await time.advance(1)
        assert service.monitor.waiting() == ""
        assert states(service)["harper"] == ("ok", "")


async def test_an_agent_that_does_not_come_up_is_an_error_when_its_time_is_over(folder: Path, time, fake: Fake) -> None:
    del fake.where["harper"]
    fake.put("tech_research", "10.0.0.2", REFUSED)
    async with running(folder, time, fake, fake, **START) as service:
        with capture_logs() as logs:
            await time.advance(119)
            assert {entry["log_level"] for entry in logs} == {"info"}
            assert {entry["new"] for entry in logs if "new" in entry} == {"starting"}
            await time.advance(7)
        assert states(service) == {
            "harper": ("error", "name not found"),
            "tech-research": ("error", "connection refused"),
        }
        assert [entry["log_level"] for entry in logs if entry.get("new") == "error"] == ["warning"] * 2
        assert service.monitor.waiting() == ""


async def test_a_registry_that_was_ready_stays_ready_when_an_agent_is_added(folder: Path, time, fake: Fake) -> None:
    async with running(folder, time, fake, fake, **START) as service:
        await time.advance(10)
        assert service.monitor.waiting() == ""
        path = folder / "agents.yaml"
        path.write_text(path.read_text().replace("  harper:", "  late: {module: late, port: 1}\n  harper:"))
        await time.advance(10)
        assert states(service)["late"] == ("starting", "not up yet: name not found")
        assert service.monitor.waiting() == ""


async def test_a_process_is_ready_without_the_agents_that_start_after_it(folder: Path, time, fake: Fake) -> None:
    async def refuse(_endpoint: Endpoint, _before: Result | None) -> Result:
        return REFUSED

    fake.check = refuse
    async with running(folder, time, fake, start_period=60.0) as service:
        await time.advance()
        assert {state for state, _ in states(service).values()} == {"starting"}
        assert service.monitor.waiting() == ""


async def test_the_reason_of_one_that_refused_its_input_is_in_the_documents(folder: Path, time, fake: Fake) -> None:
    async def refuse(_endpoint: Endpoint, _before: Result | None) -> Result:
        return REFUSED

    fake.check = refuse
    path = folder / "absences.json"
    path.write_text(absence.dump({"harper": Reason("InputRefused", "agents.yaml:4:3: no module named `pandas`")}))
    discovery = StaticDiscovery({}, lambda _: "127.0.0.1:9", path)
    async with running(folder, time, fake, discovery, **START) as service:
        await time.advance()
        assert states(service) == {
            "harper": ("error", "agents.yaml:4:3: no module named `pandas`"),
            "tech-research": ("starting", "not up yet: connection refused"),
        }


async def test_a_dead_agent_is_red_within_an_interval_and_stays_listed(folder: Path, time, fake: Fake) -> None:
    async with running(folder, time, fake, fake) as service:
        await time.advance(20)
        fake.put("harper", "10.0.0.1", Result("error", Reason("ConnectionRefused", "connection refused")))
        await time.advance(5)
        assert states(service)["harper"] == ("error", "connection refused")
        fake.put("harper", "10.0.0.1")
        await time.advance(5)
        assert states(service)["harper"] == ("ok", "")


async def test_a_removed_container_is_not_found_within_an_interval(folder: Path, time, fake: Fake) -> None:
    async with running(folder, time, fake, fake) as service:
        await time.advance(20)
        del fake.where["harper"]
        await time.advance(5)
        assert states(service)["harper"] == ("error", "name not found")


async def test_a_container_with_a_new_address_is_found_within_an_interval(folder: Path, time, fake: Fake) -> None:
    async with running(folder, time, fake, fake) as service:
        await time.advance(20)
        fake.answers[fake.where["harper"][0]] = Result("error", Reason("ConnectionFailed", "no route to host"))
        fake.put("harper", "10.0.0.7")
        await time.advance(5)
        assert states(service)["harper"] == ("ok", "")


async def test_changes_are_logged_and_counted(folder: Path, time, fake: Fake) -> None:
    with capture_logs() as lines:
        async with running(folder, time, fake, fake) as service:
            await time.advance()
            fake.put("harper", "10.0.0.1", Result("degraded", Reason("SelfReported", "neo4j slow")))
            await time.advance(5)
            text = (await service.monitor.metrics.scrape(""))[0].decode()
    changes = [line for line in lines if line["event"] == "agent state changed" and line["agent"] == "harper"]
    assert changes[-1] == {
        "event": "agent state changed",
        "log_level": "warning",
        "agent": "harper",
        "old": "ok",
        "new": "degraded",
        "code": "SelfReported",
        "reason": "neo4j slow",
    }
    assert 'pallas_agent_state_changes_total{agent="harper",new="degraded",old="ok"} 1.0' in text


async def test_an_agent_added_to_the_file_is_found(folder: Path, time, fake: Fake) -> None:
    file = folder / "agents.yaml"
    async with running(folder, time, fake, fake) as service:
        await time.advance(10)
        fake.put("engineering", "10.0.0.3")
        file.write_text(file.read_text() + "  engineering: {module: agents.engineering, port: 8260}\n")
        await time.advance(2)
        assert list(states(service)) == ["harper", "tech-research", "engineering"]
        assert states(service)["engineering"] == ("ok", "")


async def test_an_agent_added_to_the_file_is_published_once_it_has_been_asked(folder: Path, time, fake: Fake) -> None:
    file, check = folder / "agents.yaml", fake.check

    async def slow(endpoint: Endpoint, before: Result | None) -> Result:
        await time.sleep(0.5)
        return await check(endpoint, before)

    fake.check = slow
    async with running(folder, time, fake, fake) as service:
        await time.advance(10)
        fake.put("engineering", "10.0.0.3")
        tags = [service.publisher.catalogue.document.etag]
        file.write_text(file.read_text() + "  engineering: {module: agents.engineering, port: 8260}\n")
        for _ in range(40):
            await time.advance(0.1)
            if tags[-1] != (tag := service.publisher.catalogue.document.etag):
                tags.append(tag)
        assert states(service)["engineering"] == ("ok", "")
        assert len(tags) == 2, "one document for one change"


async def test_an_agent_removed_from_the_file_is_gone(folder: Path, time, fake: Fake) -> None:
    file = folder / "agents.yaml"
    async with running(folder, time, fake, fake) as service:
        await time.advance(10)
        file.write_text(file.read_text().replace(", depends_on: [tech_research]", "").split("  tech_research")[0])
        await time.advance(2)
        assert list(states(service)) == ["harper"]
        assert "tech_research" not in (await service.monitor.metrics.scrape(""))[0].decode()
        before = await _probes(service)
        await time.advance(50)
        assert await _probes(service) - before == 10, "one agent is left to probe"


async def test_a_broken_file_changes_nothing_but_is_said_once(folder: Path, time, fake: Fake) -> None:
    file = folder / "agents.yaml"
    whole = file.read_text()
    with capture_logs() as lines:
        async with running(folder, time, fake, fake) as service:
            await time.advance(10)
            before = service.publisher.catalogue.document
            file.write_text("name: demo\nagents: {harper: {port: x}}\n")
            await time.advance(10)
            assert service.publisher.catalogue.document is before
            assert "pallas_registry_config_ok 0.0" in (await service.monitor.metrics.scrape(""))[0].decode()
            file.write_text(whole)
            await time.advance(3)
            assert "pallas_registry_config_ok 1.0" in (await service.monitor.metrics.scrape(""))[0].decode()
            assert service.publisher.catalogue.document is before
    (line,) = [line for line in lines if line["event"].startswith("fleet file refused")]
    assert any("agents.harper.port" in problem for problem in line["problems"])


async def test_a_new_interval_is_used(folder: Path, time, fake: Fake) -> None:
    file = folder / "agents.yaml"
    async with running(folder, time, fake, fake) as service:
        await time.advance(10)
        file.write_text(file.read_text() + "registry: {probe_interval: 60}\n")
        await time.advance(10)
        before = await _probes(service)
        await time.advance(55)
        assert await _probes(service) - before <= 2


async def _probes(service: Service) -> float:
    text = (await service.monitor.metrics.scrape(""))[0].decode()
    return float(text.partition("pallas_registry_probe_duration_seconds_count ")[2].split()[0])


async def test_processes_added_to_the_file_are_asked_on_the_files_port(folder: Path, time, fake: Fake) -> None:
    asked: list[str] = []

    async def check(endpoint: Endpoint, _before: Result | None) -> Result:
        asked.append(endpoint.url)
        return Result("ok")

    fake.check = check
    file = folder / "agents.yaml"
    async with running(folder, time, fake) as service:
        await time.advance()
        assert asked == ["http://127.0.0.1:9001/mcp", "http://127.0.0.1:8250/mcp"]
        file.write_text(file.read_text() + "  engineering: {module: agents.engineering, port: 8260}\n")
        await time.advance(2)
        assert "http://127.0.0.1:8260/mcp" in asked
        assert states(service)["engineering"] == ("ok", "")


async def test_a_fleet_that_starts_is_no_reason_for_warnings(folder: Path, time, fake: Fake) -> None:
    down = fake.put("harper", "10.0.0.1", Result("error", Reason("ConnectionRefused", "connection refused")))
    with capture_logs() as lines:
        async with running(folder, time, fake, fake):
            await time.advance(10)
            fake.answers[down] = Result("ok")
            await time.advance(10)
            fake.answers[down] = Result("error", Reason("ConnectionRefused", "connection refused"))
            await time.advance(10)
    said = [(line["new"], line["log_level"]) for line in lines if line.get("agent") == "harper"]
    assert said == [("error", "info"), ("ok", "info"), ("error", "warning")]


async def test_an_agent_added_to_a_running_fleet_is_warned_of(folder: Path, time, fake: Fake) -> None:
    file = folder / "agents.yaml"
    with capture_logs() as lines:
        async with running(folder, time, fake, fake):
            await time.advance(100)
            file.write_text(file.read_text() + "  engineering: {module: agents.engineering, port: 8260}\n")
            await time.advance(10)
    (line,) = [line for line in lines if line.get("agent") == "engineering"]
    assert (line["new"], line["reason"], line["log_level"]) == ("error", NOT_FOUND.message, "warning")
