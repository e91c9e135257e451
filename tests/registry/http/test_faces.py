"""What a whole service shows: every face the same truth, every change in all of them, in a time of the tests' own."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pallas_contract.documents.reason import Reason
from pallas_contract.probe.probe import Result
from pallas_registry.service import Service
from tests.registry.fake_fleet import Fake, running, states

pytestmark = pytest.mark.usefixtures("no_threads")


async def test_every_face_tells_the_same(folder: Path, time, fake: Fake) -> None:
    fake.put("tech_research", "10.0.0.2", Result("degraded", Reason("SelfReported", "slow")))
    async with running(folder, time, fake, fake) as service:
        await time.advance(10)
        seen = {path: json.loads(service.publisher.find("GET", path, b"").body) for path in FACES}
        page = service.backend("run").page().decode()
    assert states(service)["tech-research"] == ("degraded", "slow")
    official = seen["/v0.1/servers"]["servers"][1]["_meta"]["io.pallas-kit/agent"]
    assert (official["status"], official["message"]) == ("degraded", "slow")
    assert seen["/prometheus/targets"][1] == {
        "targets": ["10.0.0.2:80"],
        "labels": {"fleet": "demo", "agent": "tech_research"},
    }
    assert seen["/.well-known/ai-catalog.json"]["entries"][1]["displayName"] == "Tech Research"
    assert "1 of 2 degraded" in page


async def test_what_is_kept_costs_no_work(folder: Path, time, fake: Fake) -> None:
    made = ("/v0.1/servers", "/v0.1/servers/demo/harper/versions", "/v0.1/nothing", "/livez", "/openapi.json")
    async with running(folder, time, fake, fake) as service:
        for path in ("/.well-known/mcp/server.json", "/server-cards/harper", "/prometheus/targets"):
            assert (
                service.publisher.ready(path)
                is service.publisher.ready(path)
                is service.publisher.find("GET", path, b"")
                is not None
            )
        assert [service.publisher.ready(path) for path in made] == [None] * len(made)


FACES = ("/v0.1/servers", "/.well-known/ai-catalog.json", "/prometheus/targets")


async def test_a_replica_that_moves_shows_among_the_targets(folder: Path, time, fake: Fake) -> None:
    async with running(folder, time, fake, fake) as service:
        await time.advance(10)
        fake.put("harper", "10.0.0.9")
        await time.advance(10)
        assert b'"10.0.0.9:80"' in service.publisher.find("GET", "/prometheus/targets", b"").body


async def test_a_recheck_does_not_wait_for_the_interval(folder: Path, time, fake: Fake) -> None:
    file = folder / "agents.yaml"
    file.write_text(file.read_text() + "registry: {probe_interval: 3600}\n")
    endpoint = fake.put("harper", "10.0.0.1")
    async with running(folder, time, fake, fake) as service:
        await time.advance(3600)
        fake.answers[endpoint] = Result("error", Reason("ConnectionRefused", "connection refused"))
        assert (await service.monitor.recheck("harper")).state == "error"
        await time.advance()
        assert states(service)["harper"] == ("error", "connection refused")
        with pytest.raises(KeyError):
            await service.monitor.recheck("nobody")


async def test_10000_changes_reach_log_counters_stream_and_page_alike(folder: Path, time, fake: Fake) -> None:
    """An independent recorder: it knows only what it made the agents say."""
    dice, recorded, streamed = random.Random(11), [], []
    agents = {name: fake.where[name][0] for name in ("harper", "tech_research")}
    last = dict.fromkeys(agents, "unknown")

    async def listen(service: Service) -> None:
        async for chunk in service.backend("run").streams.follow("run-0"):
            lines = chunk.decode().splitlines()
            streamed.extend(json.loads(line[6:]) for line in lines if line.startswith('data: {"time'))

    with capture_logs() as lines:
        async with running(folder, time, fake, fake) as service:
            listener = asyncio.create_task(listen(service))
            await time.advance()  # both are probed once
            recorded += [(agent, "unknown", "ok") for agent in agents]
            last = dict.fromkeys(agents, "ok")
            while len(recorded) < 10_000:
                agent = dice.choice(list(agents))
                state = dice.choice(["ok", "degraded", "error", "unauthenticated"])
                service.monitor.report(agent, agents[agent], Result(state, Reason("SelfReported", "why")))
                if state != last[agent]:
                    recorded.append((agent, last[agent], state))
                last[agent] = state
                if dice.random() < 0.05:
                    await asyncio.sleep(0)
            service.monitor.history.close()
            await listener
            page, metrics = (
                service.backend("run").page().decode(),
                (await service.monitor.metrics.scrape(""))[0].decode(),
            )
    logged = [(each["agent"], each["old"], each["new"]) for each in lines if each["event"] == "agent state changed"]
    assert logged == recorded
    assert [(each["agent"], each["old"], each["new"]) for each in streamed] == recorded
    for (agent, old, new), count in Counter(recorded).items():
        assert f'_changes_total{{agent="{agent}",new="{new}",old="{old}"}} {count}.0' in metrics
    shown = re.findall(r"<b>(\w+)</b> <span class=.quiet.>(\w+) →</span> <span class=.badge (\w+)", page)
    assert shown == recorded[:-21:-1]


async def test_who_is_in_no_file_is_shown_and_never_asked(folder: Path, time, fake: Fake) -> None:
    fake.undeclared = ("10.0.0.99",)
    with capture_logs() as lines:
        async with running(folder, time, fake, fake) as service:
            await time.advance(20)
            page, metrics = (
                service.backend("run").page().decode(),
                (await service.monitor.metrics.scrape(""))[0].decode(),
            )
            assert b"10.0.0.99" not in service.publisher.catalogue.document.body
    assert "at 10.0.0.99 something answers" in page
    assert "pallas_registry_undeclared_addresses 1.0" in metrics
    assert [line["address"] for line in lines if line["event"].startswith("undeclared")] == ["10.0.0.99"]
