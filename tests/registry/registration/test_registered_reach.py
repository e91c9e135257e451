"""Agents that registered, probed where the file allows and nowhere else."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from pallas_contract.documents.reason import Reason
from pallas_contract.probe.probe import Result
from pallas_registry.discovery.sighting import Endpoint
from tests.registry.fake_fleet import Fake, states
from tests.registry.registration_client import REACH, Names, Open, admit, get, opened, register

pytestmark = pytest.mark.usefixtures("no_threads")


async def test_an_agent_is_probed_where_the_file_allows_and_the_worse_word_counts(folder: Path, time) -> None:
    admit(folder, REACH)
    names = Names(agents_example_com={"203.0.113.5", "169.254.169.254", "127.0.0.1"})
    url = "https://agents.example.com/mcp"
    async with opened(folder, time, resolve=names) as desk:
        answers = desk.service._dependencies.check.__self__.answers
        answers[Endpoint(url, "203.0.113.5")] = Result("degraded", Reason("SelfReported", "db slow"), name="whoever")
        await desk.ask(register(url=url))
        await time.advance()
        assert states(desk.service)["feature-extractor"] == ("degraded", "db slow")
        assert desk.service.monitor.agent_states.endpoints("feature_extractor") == (Endpoint(url, "203.0.113.5"),)
        (target,) = [
            each for each in get(desk, "/prometheus/targets") if each["labels"]["agent"] == "feature_extractor"
        ]
        assert target == {
            "targets": ["203.0.113.5:443"],
            "labels": {"fleet": "demo", "agent": "feature_extractor", "__scheme__": "https"},
        }
        answers[Endpoint(url, "203.0.113.5")] = Result("ok", name="whoever")
        await time.advance(5)
        assert states(desk.service)["feature-extractor"] == ("ok", "")
        await desk.ask(register(url=url, description="again"))
        await time.advance()
        assert states(desk.service)["feature-extractor"] == ("ok", ""), "saying it again makes nothing unknown"
        await time.advance(120)
        assert states(desk.service)["feature-extractor"][0] == "degraded"
        del names.records["agents.example.com"]
        await time.advance(10)
        state, reason = states(desk.service)["feature-extractor"]
        assert (state, reason.split(";")[0]) == ("error", "name not found")
        asked = len(names.asked)
        await desk.ask(register())
        await time.advance(30)
        assert states(desk.service)["feature-extractor"] == ("ok", ""), "without an address only its word counts"
        assert len(names.asked) == asked


async def test_agents_outside_that_hang_do_not_delay_those_of_the_file(folder: Path, time) -> None:
    """More addresses than are probed at once accept and never answer; that harper is gone shows within an interval."""
    admit(folder, REACH)

    class Hanging(Fake):
        hung = 0

        async def check(self, endpoint: Endpoint, before: Result | None) -> Result:
            if "agents.example.com" in endpoint.url:
                self.hung += 1
                await asyncio.Event().wait()
            return await super().check(endpoint, before)

    fake, names = Hanging(), Names(agents_example_com={f"10.20.1.{number}" for number in range(200)})
    async with opened(folder, time, fake, resolve=names) as desk:
        await desk.ask(register(url="http://agents.example.com/mcp"))
        await time.advance(10)
        assert fake.hung == 16
        fake.put("harper", "10.0.0.1", Result("error", Reason("ConnectionRefused", "connection refused")))
        await time.advance(5)
        assert states(desk.service)["harper"] == ("error", "connection refused")


async def test_one_outside_that_never_answered_is_asked_once_a_second_at_most(folder: Path, time) -> None:
    """Those of the file are asked four times as often: but what somebody registers may be anybody's host."""
    admit(folder, REACH)
    at: list[float] = []

    class Refusing(Fake):
        async def check(self, endpoint: Endpoint, before: Result | None) -> Result:
            if "agents.example.com" not in endpoint.url:
                return await super().check(endpoint, before)
            at.append(time.seconds)
            return Result("error", Reason("ConnectionRefused", "connection refused"))

    async with opened(folder, time, Refusing(), resolve=Names(agents_example_com={"10.20.1.1"})) as desk:
        await desk.ask(register(url="http://agents.example.com/mcp"))
        await time.advance(20)
    assert len(at) > 10
    assert min(later - before for before, later in pairwise(at)) == 1.0


@pytest.mark.parametrize("url", ["http://169.254.169.254/mcp", "http://10.99.0.1/mcp", "http://[fe80::1]/mcp"])
async def test_an_address_out_of_bounds_is_refused(folder: Path, time, url: str) -> None:
    admit(folder, REACH)
    async with opened(folder, time, resolve=Names()) as desk:
        reply = await desk.ask(register(url=url))
        assert (reply.status, reply.message["error"]["data"]["problems"][0]["field"]) == (400, "url")


async def test_a_name_that_leads_out_of_bounds_is_shown_and_not_asked(folder: Path, time) -> None:
    admit(folder, REACH)
    async with opened(folder, time, resolve=Names(evil_example={"10.99.0.1"})) as desk:
        await desk.ask(register(url="http://evil.example/mcp"))
        await time.advance(10)
        state, reason = states(desk.service)["feature-extractor"]
        assert (state, reason) == ("error", "its addresses are not among those that registry.registration.reach allows")
        assert desk.service.monitor.agent_states.endpoints("feature_extractor") == ()


async def test_an_address_is_published_and_not_asked_where_the_file_allows_none(desk: Open, time) -> None:
    await desk.ask(register(url="http://169.254.169.254/mcp"))
    await time.advance(30)
    assert states(desk.service)["feature-extractor"] == ("ok", "")
    assert desk.service.monitor.agent_states.endpoints("feature_extractor") == ()


async def test_a_new_reach_begins_and_ends_the_probing(folder: Path, time) -> None:
    admit(folder)
    file, url = folder / "agents.yaml", "http://10.20.0.7/mcp"
    before = file.read_text()
    names = Names()
    names.records["10.20.0.7"] = {"10.20.0.7"}
    async with opened(folder, time, resolve=names) as desk:
        desk.service._dependencies.check.__self__.answers[Endpoint(url, "10.20.0.7")] = Result(
            "error", Reason("ConnectionRefused", "connection refused")
        )
        await desk.ask(register(url=url))
        file.write_text(before + "    reach: [10.20.0.0/16]\n")
        await time.advance(5)
        assert states(desk.service)["feature-extractor"] == ("error", "connection refused")
        file.write_text(before)
        await time.advance(5)
        assert states(desk.service)["feature-extractor"] == ("ok", "")
