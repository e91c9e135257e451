"""No input ends a running registry: at each edge something is raised that nobody has thought of, and it goes on."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from pallas_contract.launch import service_check
from pallas_contract.probe.probe import Result
from pallas_registry import loops, timing
from pallas_registry.fleet_file import FleetWatcher
from pallas_registry.registration.reach import UrlDiscovery
from pallas_registry.registration.store import MemoryRegistrations
from tests.registry.conftest import FLEET
from tests.registry.fake_fleet import Fake, running, states

pytestmark = pytest.mark.usefixtures("no_threads")


class Unthought(Exception):
    """No part of the registry knows it."""


def fail(*_: Any, **__: Any) -> Any:
    raise Unthought


class Kept(MemoryRegistrations):
    """A place for the uptime that lasts."""

    async def save_uptime(self, records: Callable[[], Mapping[str, bytes]]) -> None:
        records()


EDGES = {
    "reading the file": (FleetWatcher, "poll"),
    "using a reading": ("monitor", "apply"),
    "what discovery finds": ("monitor", "sight"),
    "what a probe finds": ("monitor.agent_states", "add_result"),
    "leases": ("monitor.registrar", "tick"),
    "documents": ("publisher.catalogue", "publish"),
    "where registered agents are": (UrlDiscovery, "sweep"),
    "where services are": (service_check, "followed"),
    "the uptime": ("monitor.uptime", "records"),
}


@pytest.mark.parametrize(("owner", "method"), EDGES.values(), ids=EDGES)
async def test_whatever_is_raised_it_goes_on(
    folder: Path, time, fake: Fake, monkeypatch, owner: Any, method: str
) -> None:
    file = folder / "agents.yaml"
    monkeypatch.setattr(loops, "KEEP_UPTIME", 3.0)
    async with running(folder, time, fake, fake, store=Kept()) as service:
        await time.advance(6)
        broken = operator.attrgetter(owner)(service) if isinstance(owner, str) else owner
        with capture_logs() as lines, monkeypatch.context() as patch:
            patch.setattr(broken, method, fail)
            fake.put("harper", "10.0.0.1", Result("degraded"))
            file.write_text(file.read_text() + "  engineering: {module: agents.engineering, port: 8260}\n")
            await time.advance(12)
        assert any(line.get("exc_info") for line in lines), "the log says where"
        fake.put("harper", "10.0.0.1", Result("ok"))
        fake.put("engineering", "10.0.0.9")
        file.write_text(file.read_text() + "  other: {module: agents.other, port: 8261}\n")
        fake.put("other", "10.0.0.8")
        await time.advance(12)
        assert {name: state for name, (state, _) in states(service).items()} == dict.fromkeys(
            ("harper", "tech-research", "engineering", "other"), "ok"
        )
        assert "pallas_registry_config_ok 1.0" in (await service.monitor.metrics.scrape(""))[0].decode()


class Mute:
    """A log that fails: a line may be too long for the memory that is left, or the disk full."""

    def __getattr__(self, _: str) -> Any:
        return self._fail

    def _fail(self, *_: Any, **__: Any) -> None:
        raise MemoryError


@pytest.mark.parametrize("refused", [True, False])
async def test_what_is_said_of_a_file_may_fail_too(
    folder: Path, time, fake: Fake, monkeypatch, *, refused: bool
) -> None:
    file = folder / "agents.yaml"
    async with running(folder, time, fake, fake) as service:
        await time.advance(6)
        with monkeypatch.context() as patch:
            patch.setattr(loops, "_log", Mute())
            patch.setattr(timing, "_log", Mute())
            if not refused:
                patch.setattr(service.monitor, "apply", fail)
            rings = service.monitor.history.rings
            file.write_text("name: [unclosed\n" if refused else file.read_text().replace("8201", "8209"))
            await time.advance(6)
            assert service.monitor.history.rings > rings, "pages say so none the less"
        assert "pallas_registry_config_ok 0.0" in (await service.monitor.metrics.scrape(""))[0].decode()
        (folder / "agents.yaml").write_text(FLEET + "  other: {module: agents.other, port: 8261}\n")
        fake.put("other", "10.0.0.8")
        await time.advance(12)
        assert states(service)["other"] == ("ok", "")


async def test_a_reading_that_cannot_be_used_lowers_config_ok(folder: Path, time, fake: Fake, monkeypatch) -> None:
    file = folder / "agents.yaml"
    async with running(folder, time, fake, fake) as service:
        await time.advance(6)
        monkeypatch.setattr(service.monitor, "apply", fail)
        file.write_text(file.read_text().replace("8201", "8209"))
        await time.advance(3)
        assert "pallas_registry_config_ok 0.0" in (await service.monitor.metrics.scrape(""))[0].decode()
        assert states(service)["harper"] == ("ok", "")
