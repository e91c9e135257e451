"""Agents that registered, in a whole service: through silence and restarts, and as they come and go."""

from __future__ import annotations

import asyncio
import random
from contextlib import closing
from pathlib import Path

import pytest

from pallas_registry.registration.leases import Registration
from pallas_registry.registration.store import MemoryRegistrations
from pallas_registry.registration.store import opened as file_of
from pallas_service.http.reach import Reach
from tests.registry.fake_fleet import states
from tests.registry.registration_client import (
    REACH,
    REGISTRATION,
    Names,
    Open,
    admit,
    beat,
    get,
    leave,
    opened,
    register,
    written,
)

pytestmark = pytest.mark.usefixtures("no_threads")


async def test_silence_is_seen_and_a_heartbeat_heals(desk: Open, time) -> None:
    await desk.ask(register())
    seen = []
    for _ in range(5):
        await time.advance(60)
        seen.append(states(desk.service)["feature-extractor"][0])
    assert seen == ["ok", "degraded", "degraded", "error", "error"]
    await desk.ask(beat())
    await time.advance()
    assert states(desk.service)["feature-extractor"] == ("ok", "")
    await desk.ask(beat(status="degraded", message="exchange slow"))
    await time.advance()
    assert states(desk.service)["feature-extractor"] == ("degraded", "exchange slow")
    assert [change[2] for change in desk.changes if change[0] == "feature_extractor"] == [
        "ok",
        "degraded",
        "error",
        "ok",
        "degraded",
    ]


async def test_leaving_and_long_silence_are_changes_and_then_nothing_is_left(desk: Open, time) -> None:
    await desk.ask(register("goes"))
    await desk.ask(register("fades"))
    await time.advance(1)
    assert (await desk.ask(leave("goes"))).message == {"result": {"agent_id": "goes", "status": "deregistered"}}
    for seconds in (300, 3300):  # at once: an hour of seconds would take one
        time.seconds += seconds
        await time.advance(1)
    last = {
        each.agent: (each.old, each.new, each.reason.message)
        for _, each in desk.service.monitor.history.after(0).changes
    }
    assert last["goes"] == ("ok", "unknown", "deregistered")
    assert last["fades"] == ("error", "unknown", "registration ended: no heartbeat for 3600 s")
    assert list(states(desk.service)) == ["harper", "tech-research"]
    assert b"fades" not in (await desk.service.monitor.metrics.scrape(""))[0]
    assert get(desk, "/v0.1/servers", "include_deleted=true")["metadata"]["count"] == 4
    assert await desk.code(beat("fades")) == (404, -32012)


async def test_names_that_come_and_go_leave_nothing_to_count(desk: Open, time) -> None:
    for number in range(40):
        time.seconds += 1
        await desk.ask(register(f"agent-{number}"))
        await desk.ask(leave(f"agent-{number}"))
    await time.advance(1)
    assert b'agent="agent-' not in (await desk.service.monitor.metrics.scrape(""))[0]
    assert len(desk.service.monitor.metrics._changes) == 2
    assert len(desk.changes) == 2 + 2 * 40


async def test_the_file_has_the_first_right_to_a_name(desk: Open, folder: Path, time) -> None:
    await desk.ask(register("engineering"))
    file = folder / "agents.yaml"
    file.write_text(file.read_text().replace("\nregistry:", "\n  engineering: {module: a.b, port: 8260}\nregistry:"))
    await time.advance(3)
    last = [each for _, each in desk.service.monitor.history.after(0).changes if each.agent == "engineering"]
    assert last[1].reason.message == "registration ended: `engineering` is a name in agents.yaml"
    assert [(each.old, each.new) for each in last] == [("unknown", "ok"), ("ok", "unknown"), ("unknown", "error")]
    assert await desk.code(beat("engineering")) == (404, -32012)


PARTNERS = "      partners: {file: partners.token}\n"
WITHOUT = {
    "token": (REGISTRATION.replace(PARTNERS, ""), "agents.yaml no longer has the token `partners`"),
    "registration": ("", "agents.yaml lets nobody register"),
}


@pytest.mark.parametrize(("written", "reason"), WITHOUT.values(), ids=WITHOUT)
async def test_a_file_without_its_token_ends_what_was_registered_with_it(
    desk: Open, folder: Path, time, written: str, reason: str
) -> None:
    await desk.ask(register())
    await desk.ask(register("binance_agent"), "pricing")
    file = folder / "agents.yaml"
    admitted = file.read_text()
    file.write_text(admitted.replace(REGISTRATION, written))
    await time.advance(3)
    ended = [each for _, each in desk.service.monitor.history.after(0).changes if each.new == "unknown"]
    assert [each.agent for each in ended] == ["feature_extractor"] + ["binance_agent"] * (not written)
    assert {each.reason.message for each in ended} == {f"registration ended: {reason}"}
    assert list(states(desk.service)) == ["harper", "tech-research"] + ["binance-agent"] * bool(written)
    if written:
        assert await desk.code(beat()) == (401, -32010)
    file.write_text(admitted)
    await time.advance(3)
    assert await desk.code(beat()) == (404, -32012), "it does not come back by itself"


@pytest.mark.parametrize(
    "written",
    [
        REGISTRATION.replace("file: partners.token", "file: partners.token, agents: [other]"),
        REGISTRATION.replace("[binance_agent]", "[binance_agent, feature-extractor]"),
    ],
    ids=["bound elsewhere", "bound to another token"],
)
async def test_a_token_that_no_longer_admits_an_agent_ends_it(desk: Open, folder: Path, time, written: str) -> None:
    for agent in ("feature_extractor", "other"):
        await desk.ask(register(agent))
    await desk.ask(register("binance_agent"), "pricing")
    file = folder / "agents.yaml"
    file.write_text(file.read_text().replace(REGISTRATION, written))
    await time.advance(3)
    ended = [
        (each.agent, each.reason.message)
        for _, each in desk.service.monitor.history.after(0).changes
        if each.new == "unknown"
    ]
    reason = "registration ended: agents.yaml does not let the token `partners` speak for it"
    assert ended == [("feature_extractor", reason)]
    assert list(states(desk.service)) == ["harper", "tech-research", "other", "binance-agent"]
    assert await desk.code(register()) == (403, -32011)


async def test_a_token_that_goes_while_its_agent_is_being_kept_registers_nothing(folder: Path, time) -> None:
    admit(folder)
    file = folder / "agents.yaml"

    class Slow(MemoryRegistrations):
        async def save(self, registration: Registration) -> None:
            file.write_text(file.read_text().replace(PARTNERS, ""))
            await time.sleep(5)

    async with opened(folder, time, store=Slow()) as desk:
        asking = asyncio.create_task(desk.code(register()))
        await time.advance(6)
        assert await asking == (403, -32011)
        assert list(states(desk.service)) == ["harper", "tech-research"]


async def test_what_was_kept_and_may_not_stay_ends_without_a_change_nobody_saw(
    folder: Path, time, tmp_path: Path
) -> None:
    """An agent kept from before is unknown: when the file takes its name, or its token is gone, it is so still."""
    admit(folder)
    with closing(file_of(tmp_path / "kept.db")) as store:
        async with opened(folder, time, store=store) as first:
            for name in ("engineering", "fades", "leaves"):
                await first.ask(register(name))
        file = folder / "agents.yaml"
        before = file.read_text()
        file.write_text(before.replace("\nregistry:", "\n  engineering: {module: a.b, port: 8260}\nregistry:"))
        async with opened(folder, time, store=store) as second:
            assert ("engineering", "unknown", "error") in second.changes
            await second.ask(leave("leaves"))
            time.seconds += 3600  # at once, so that nobody is called silent before
            await time.advance(1)
            assert list(states(second.service)) == ["harper", "tech-research", "engineering"]
            assert [change for change in second.changes if change[1] == change[2]] == []
            await written(store)
        assert store.load() == []


async def test_what_was_counted_goes_with_an_agent_that_leaves_unknown(folder: Path, time) -> None:
    admit(folder, REACH)
    async with opened(folder, time, resolve=Names()) as desk:
        await desk.ask(register())
        await desk.ask(register(url="http://agents.example.com/mcp"))  # not looked up yet
        await desk.ask(leave())
        assert [change[2] for change in desk.changes if change[0] == "feature_extractor"] == ["ok", "unknown"]
        assert {agent for agent, _, _ in desk.service.monitor.metrics._changes} == {"harper", "tech_research"}


async def test_a_sweep_looks_at_each_registration_a_few_times(folder: Path, time, monkeypatch) -> None:
    """Counted, not timed: once to know who is probed, once when its addresses are told."""
    admit(folder, REACH.replace("max_agents: 3", "max_agents: 100"))
    looked = 0
    host = Reach.host

    def count(reach: Reach, url: str) -> bool:
        nonlocal looked
        looked += 1
        return host(reach, url)

    names, agents = Names(agents_example_com=set()), 40
    async with opened(folder, time, resolve=names) as desk:
        for number in range(agents):
            await desk.ask(register(f"agent-{number}", url="http://agents.example.com/mcp"))
        await time.advance(1)
        monkeypatch.setattr(Reach, "host", count)
        asked = len(names.asked)
        await time.advance(5)
        assert len(names.asked) - asked == agents, "one sweep"
        assert looked == 2 * agents


async def test_a_registered_agent_does_not_keep_the_registry_from_being_ready(desk: Open, time) -> None:
    await desk.ask(register())
    assert desk.service.monitor.waiting() == ""


async def test_after_a_restart_it_is_there_and_unknown_until_heard_of(folder: Path, time, tmp_path: Path) -> None:
    admit(folder)
    path = tmp_path / "kept.db"
    with closing(file_of(path)) as store:
        async with opened(folder, time, store=store) as first:
            for name in ("stays", "leaves", "fades"):
                await first.ask(register(name, heartbeat_interval=1 if name == "fades" else 3600))
            await first.ask(leave("leaves"))
            time.seconds += 3600
            await time.advance(1)
            await written(store)
            assert [each.agent for each in store.load()] == ["stays"]
    with closing(file_of(path)) as store:
        async with opened(folder, time, store=store) as second:
            assert states(second.service)["stays"] == ("unknown", "not heard of since the registry started")
            assert second.service.monitor.waiting() == ""
            assert await second.code(beat("stays")) == (200, 0)
            await time.advance()
            assert states(second.service) == {
                "harper": ("ok", ""),
                "tech-research": ("ok", ""),
                "stays": ("ok", ""),
            }


async def test_what_cannot_be_kept_is_not_acknowledged(folder: Path, time, tmp_path: Path) -> None:
    admit(folder)
    with closing(file_of(tmp_path / "kept.db")) as store:
        async with opened(folder, time, store=store) as desk:
            store._connection.execute("DROP TABLE registrations")
            assert await desk.code(register()) == (503, -32015)
            assert await desk.code(beat()) == (404, -32012)


class Recorder:
    """What must become of agents, told from the documented rules alone: twice and four times the interval."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str, str]] = []
        self.known: dict[str, tuple[float, float, str, str]] = {}
        """Agent -> last sign of life, interval, its own word, state."""

    def _to(self, agent: str, state: str) -> None:
        heard, interval, word, old = self.known[agent]
        if state != old:
            self.changes.append((agent, old, state))
        self.known[agent] = heard, interval, word, state

    def heard(self, agent: str, at: float, interval: float | None, word: str) -> None:
        _, promised, _, old = self.known.get(agent, (0.0, 0.0, "", "unknown"))
        self.known[agent] = at, interval or promised, word, old
        self._to(agent, word)

    def left(self, agent: str) -> None:
        self.changes.append((agent, self.known.pop(agent)[3], "unknown"))

    def pass_second(self, now: float) -> None:
        for agent in list(self.known):
            at, interval, word, _ = self.known[agent]
            missed = (now - at) / interval
            if now - at >= max(3600, 24 * interval):
                self.left(agent)
            else:
                self._to(agent, "error" if missed >= 4 else "degraded" if missed >= 2 else word)


@pytest.mark.slow
async def test_an_independent_recorder_hears_what_was_published(desk: Open, time) -> None:
    """Registering, heartbeats, silence and leaving, at random for two hours: nothing lost, invented or reordered."""
    dice, recorder = random.Random(5), Recorder()
    agents, words = ["alpha", "beta", "gamma"], ["active", "ok", "degraded", "error"]
    quiet: dict[str, int] = {}
    published: list[tuple[str, str, str]] = []
    seen = desk.service.monitor.history.number

    def heard() -> list[tuple[str, str, str]]:
        nonlocal seen
        news = desk.service.monitor.history.after(seen)
        seen = news.number
        return [(each.agent, each.old, each.new) for _, each in news.changes]

    for second in range(1, 7201):
        await time.advance(1)
        recorder.pass_second(time.seconds)
        published += heard()
        agent = dice.choice(agents)
        if quiet.get(agent, 0) > second:
            continue
        roll = dice.random()
        if agent not in recorder.known and roll < 0.3:
            interval = dice.choice([5, 20, 60])
            assert (await desk.ask(register(agent, heartbeat_interval=interval))).status == 200
            recorder.heard(agent, time.seconds, interval, "ok")
        elif agent in recorder.known and roll < 0.2:
            word = dice.choice(words)
            assert (await desk.ask(beat(agent, word))).status == 200
            recorder.heard(agent, time.seconds, None, "ok" if word == "active" else word)
        elif agent in recorder.known and roll < 0.205:
            assert (await desk.ask(leave(agent))).status == 200
            recorder.left(agent)
        elif roll < 0.23:
            quiet[agent] = second + dice.choice([15, 90, 300, 3700])
    published += heard()
    assert published == recorder.changes
    kinds = {(old, new) for _, old, new in published}
    assert {("degraded", "error"), ("error", "ok"), ("error", "unknown"), ("unknown", "ok")} <= kinds
    assert len(published) > 200
