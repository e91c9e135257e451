"""The background view of downstream servers, and the one status made of it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.testing import capture_logs

from pallas_agent_runtime.health.downstream import INTERVAL, Downstream, combine
from pallas_contract.documents.reason import Reason, reported
from pallas_contract.probe.probe import Result, Target

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("unreachable", "llm", "failure", "status", "message"),
    [
        ([], "", "", "ok", ""),
        (["neo4j_cypher"], "", "", "degraded", "Unreachable: neo4j_cypher"),
        (["a", "b"], "", "", "degraded", "Unreachable: a, b"),
        ([], "openai: no API key", "", "degraded", "LLM: openai: no API key"),
        (
            ["neo4j_cypher"],
            "openai: model 'bad-model' not found",
            "",
            "degraded",
            "Unreachable: neo4j_cypher; LLM: openai: model 'bad-model' not found",
        ),
        (["a"], "", "no model", "error", "Cannot process requests: no model; Unreachable: a"),
    ],
)
def test_the_status_is_that_of_the_seed(
    unreachable: list[str], llm: str, failure: str, status: str, message: str
) -> None:
    health = combine(dict.fromkeys(unreachable, ""), llm, failure, NOW)
    assert (health.status, health.message) == (status, message)


def test_tokens_that_do_not_work_degrade() -> None:
    health = combine({}, "", "", NOW, refusing=["research"], access="keys: HTTP 500")
    assert (health.status, health.message) == ("degraded", "Refused by: research; Access: keys: HTTP 500")


def test_who_was_not_asked_yet_degrades() -> None:
    health = combine({"b": ""}, "", "", NOW, unchecked=["argos", "openai"])
    assert (health.status, health.message) == ("degraded", "Unreachable: b; Not checked yet: argos, openai")


async def test_a_server_is_unchecked_until_a_probe_of_it_is_over() -> None:
    """And the round is over with the slowest of them."""
    entered, released = asyncio.Event(), asyncio.Event()

    async def probe(target: Target, *, era: str, timeout: float) -> Result:
        if target.url == "slow":
            entered.set()
            await released.wait()
        return Result("ok")

    downstream = Downstream({name: Target(name) for name in ("slow", "b")}, probe)
    assert downstream.unchecked() == ["b", "slow"]
    begun = downstream.refreshed
    refreshing = asyncio.create_task(downstream.refresh())
    await entered.wait()
    await asyncio.sleep(0)
    assert (downstream.unchecked(), downstream.checked.is_set()) == (["slow"], False)
    assert downstream.refreshed == begun
    released.set()
    await refreshing
    assert (downstream.unchecked(), downstream.checked.is_set()) == ([], True)
    assert downstream.refreshed > begun


async def test_with_nobody_to_ask_the_first_round_is_over_at_once() -> None:
    """And the next one comes by the clock that was handed in."""
    waits = []

    async def sleep(seconds: float) -> None:
        waits.append((seconds, downstream.checked.is_set()))
        raise asyncio.CancelledError

    downstream = Downstream({}, sleep=sleep)
    with pytest.raises(asyncio.CancelledError):
        await downstream.run()
    assert waits == [(5.0, True)]


def test_conversations_that_are_not_kept_degrade() -> None:
    health = combine({}, "", "", NOW, access="no keys", conversations="disk is full")
    assert (health.status, health.message) == ("degraded", "Access: no keys; Conversations: not kept: disk is full")


class Servers:
    def __init__(self, **states: str) -> None:
        self.states, self.eras = states, []

    async def __call__(self, target: Target, *, era: str, timeout: float) -> Result:
        self.eras.append(era)
        state: Any = self.states[target.url]
        if state == "raises":
            raise RuntimeError("header with a newline")
        if state == "nonsense":
            return None  # type: ignore[return-value] # what no probe should ever find
        reason = Reason() if state == "ok" else Reason("ConnectionRefused", "connection refused")
        return Result(state, reason, era="2026-07-28")


async def test_only_a_failed_probe_makes_a_server_unreachable() -> None:
    servers = Servers(a="ok", b="error", c="unauthenticated", d="raises")
    downstream = Downstream({name: Target(name) for name in "bacd"}, servers, clock=lambda: 5.0)
    assert downstream.unreachable() == []
    assert downstream.worth_trying("b")
    await downstream.refresh()
    assert downstream.unreachable() == ["b", "d"]
    assert downstream.refusing(frozenset("abce")) == ["c"]
    assert downstream.last_probes["d"].result.reason.message == "RuntimeError"
    servers.states["b"] = "ok"
    await downstream.refresh()
    assert downstream.unreachable() == ["d"]


@pytest.mark.parametrize("state", ["raises", "nonsense"])
async def test_whatever_is_raised_about_a_server_the_rounds_go_on(state: str) -> None:
    """In the probe, and in what is made of its result: no answer of a server ends the agent."""
    servers = Servers(a="ok", b="ok")
    rounds = []

    async def sleep(seconds: float) -> None:
        if seconds != INTERVAL:
            return
        rounds.append(combine(downstream.unreachable_why(), "", "", NOW).message)
        if len(rounds) == 4:
            raise asyncio.CancelledError
        servers.states["a"] = state if len(rounds) < 3 else "ok"

    downstream = Downstream({name: Target(name) for name in "ab"}, servers, clock=lambda: 5.0, sleep=sleep)
    with pytest.raises(asyncio.CancelledError), capture_logs() as lines:
        await downstream.run()
    assert rounds == ["", "Unreachable: a", "Unreachable: a", ""]
    warnings = [line for line in lines if line["log_level"] != "info"]
    assert [line["server"] for line in warnings] == ["a"]


@pytest.mark.parametrize(("usual", "patience"), [(0.1, 1.0), (1.5, 2.25), (2.9, 3.0)])
async def test_one_lost_answer_changes_nothing_and_two_in_a_row_do(usual: float, patience: float) -> None:
    """A server that restarts refuses for a moment; one that always takes long is given as long."""
    well, hanging, refusing = (
        Result("ok", latency=usual),
        Result("error", Reason("NoAnswer", "hangs")),
        Result("error", Reason("ConnectionRefused", "refuses")),
    )
    answers, happened = [well, hanging, well, hanging, refusing, refusing], list[Any]()

    async def probe(target: Target, *, era: str, timeout: float) -> Result:
        happened.append(("probe", timeout))
        return answers.pop(0)

    async def sleep(seconds: float) -> None:
        happened.append(("sleep", seconds))

    downstream = Downstream({"a": Target("a")}, probe, sleep=sleep)
    found = []
    for _ in range(4):
        await downstream.refresh()
        found.append((downstream.last_probes["a"].result.reason.message, downstream.unreachable()))
    assert found == [("", []), ("", []), ("hangs", ["a"]), ("refuses", ["a"])]
    confirmed = [("probe", 3.0), ("sleep", 0.25), ("probe", patience)]
    assert happened == [("probe", 3.0), *confirmed, *confirmed, ("probe", 3.0)]


@pytest.mark.parametrize(
    ("state", "latency", "worth"), [("ok", 2.9, True), ("error", 0.1, True), ("error", 3.0, False)]
)
async def test_only_a_server_that_hangs_is_not_worth_trying(state: Any, latency: float, worth: bool) -> None:
    async def probe(target: Target, *, era: str, timeout: float) -> Result:
        return Result(state, latency=latency)

    downstream = Downstream({"a": Target("a")}, probe)
    await downstream.refresh()
    assert downstream.worth_trying("a") is worth
    assert downstream.worth_trying("another")


async def test_those_that_answered_are_connected_before_those_that_nobody_has_heard_of() -> None:
    """A server that let the last probe wait is not connected at all."""
    results = {"b": Result("ok"), "hangs": Result("error", latency=3.0), "a": Result("error"), "z": Result("ok")}

    async def probe(target: Target, *, era: str, timeout: float) -> Result:
        return results[target.url]

    downstream = Downstream({name: Target(name) for name in results}, probe)
    assert downstream.promising({*results, "new"}) == ["a", "b", "hangs", "new", "z"]
    await downstream.refresh()
    assert downstream.promising({*results, "new"}) == ["b", "z", "a", "new"]
    assert downstream.promising({"new"}) == ["new"]


async def test_the_era_found_is_asked_first_the_next_time_and_the_age_is_known() -> None:
    now, servers = [5.0], Servers(a="ok")
    downstream = Downstream({"a": Target("a")}, servers, clock=lambda: now[0])
    await downstream.refresh()
    await downstream.refresh()
    assert servers.eras == ["", "2026-07-28"]
    now[0] = 7.5
    assert downstream.age(downstream.last_probes["a"]) == 2.5


class Listing:
    """A server that shakes hands and answers `refused` to lists; `lists` has the seconds of each probe for these."""

    def __init__(self) -> None:
        self.refused = Result("ok")
        self.lists: list[float] = []

    async def __call__(self, target: Target, *, era: str, timeout: float) -> Result:
        self.lists.append(target.lists)
        return self.refused if target.lists else Result("ok")


FIVE_HUNDRED = Result("error", Reason("HttpError", "tools/list: HTTP 500"), failed="tools/list")


async def no_sleep(seconds: float) -> None:
    pass


async def test_tools_are_asked_for_at_first_and_once_a_minute() -> None:
    server, now = Listing(), [0.0]
    downstream = Downstream({"a": Target("a", lists=5.0)}, server, clock=lambda: now[0])
    for now[0] in (0.0, 5.0, 59.0, 60.0, 65.0):
        await downstream.refresh()
    assert server.lists == [5.0, 0.0, 0.0, 5.0, 0.0]


async def test_a_server_that_refuses_its_tools_is_asked_for_them_until_it_is_well() -> None:
    server = Listing()
    server.refused = FIVE_HUNDRED
    downstream = Downstream({"a": Target("a", lists=5.0)}, server, clock=lambda: 5.0, sleep=no_sleep)
    for _ in range(2):
        await downstream.refresh()
    assert combine(downstream.unreachable_why(), "", "", NOW).message == "Unreachable: a; a: tools/list: HTTP 500"
    server.refused = Result("unauthenticated", failed="tools/list")
    with capture_logs() as lines:
        await downstream.refresh()
        await downstream.refresh()
    assert (downstream.unreachable(), downstream.refusing({"a"})) == ([], ["a"])
    assert [line["state"] for line in lines] == ["unauthenticated"]
    server.refused = Result("ok")
    await downstream.refresh()
    assert (downstream.unreachable(), downstream.refusing({"a"})) == ([], [])
    assert server.lists == [5.0] * 5


async def test_a_turn_that_could_not_connect_has_the_next_probe_ask_for_tools() -> None:
    server = Listing()
    downstream = Downstream({"a": Target("a", lists=5.0)}, server, clock=lambda: 5.0, sleep=no_sleep)
    await downstream.refresh()
    downstream.attached("a", None)
    await downstream.refresh()
    server.refused = FIVE_HUNDRED
    downstream.attached("a", "")
    await downstream.refresh()
    assert server.lists == [5.0, 0.0, 5.0, 5.0]  # twice, as each change for the worse
    assert downstream.unreachable_why() == {"a": "tools/list: HTTP 500"}
    server.refused = Result("ok")
    await downstream.refresh()
    assert downstream.unreachable() == []


async def test_a_failure_that_no_probe_sees_counts_until_a_turn_connects_or_nobody_tries() -> None:
    server, now = Listing(), [0.0]
    server.refused = Result("ok", latency=2.0)
    downstream = Downstream({"a": Target("a", lists=5.0)}, server, clock=lambda: now[0])
    downstream.attached("a", "its answers cannot be read: ValidationError")
    found = []
    for now[0] in (5.0, 59.0, 60.0):
        await downstream.refresh()
        found.append(downstream.unreachable_why())
        assert downstream.worth_trying("a")
    assert found == [{"a": "its answers cannot be read: ValidationError"}] * 2 + [{}]
    downstream.attached("a", "its answers cannot be read: ValidationError")
    await downstream.refresh()
    assert downstream.unreachable() == ["a"]
    downstream.attached("a", None)
    await downstream.refresh()
    assert downstream.unreachable() == []


async def test_a_call_that_is_refused_counts_until_one_is_not_or_nobody_calls() -> None:
    server, now = Listing(), [0.0]
    server.refused = Result("ok")
    downstream = Downstream({"a": Target("a", lists=5.0)}, server, clock=lambda: now[0])
    downstream.answered("a", 401)
    found = []
    for now[0] in (5.0, 59.0, 60.0):
        await downstream.refresh()
        found.append(downstream.refusing({"a"}))
    assert found == [["a"], ["a"], []]
    assert downstream.unreachable() == []
    for status in (403, 307, 500, 200):
        downstream.answered("a", status)
        await downstream.refresh()
        found.append(downstream.refusing({"a"}))
    assert found[3:] == [["a"], ["a"], ["a"], []]


def test_a_server_that_the_agent_starts_itself_has_its_reason_in_the_message() -> None:
    downstream = Downstream({})
    downstream.program("notes", "not started: there is no program `uvx` here")
    downstream.program("other", "")
    health = combine({"argos": ""} | downstream.unreachable_why(), "", "", NOW)
    assert health.message == "Unreachable: argos, notes; notes: not started: there is no program `uvx` here"
    assert reported(health.message, well=False).about == ("argos", "notes")
    downstream.program("notes", "")
    assert combine(downstream.unreachable_why(), "", "", NOW).status == "ok"
