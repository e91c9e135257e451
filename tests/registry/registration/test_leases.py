"""Silence: what it is worth, and when it ends a registration."""

from __future__ import annotations

import pytest

from pallas_registry.registration import messages
from pallas_registry.registration.leases import Leases, Registration, expiry
from pallas_registry.registration.messages import Heartbeat, Register
from tests.registry.registration_client import SEED, beat


@pytest.fixture
def leases(time) -> Leases:
    return Leases(clock=time.clock, now=time.now)


def registration(time, **more: object) -> Registration:
    said = messages.read(Register, {**SEED["params"], "heartbeat_interval": 10, **more})
    return Registration(said.agent_id, "partners", time.now(), said)


def heartbeat(status: str = "active", **more: str) -> Heartbeat:
    return messages.read(Heartbeat, beat(status=status, **more)["params"])


async def test_missed_heartbeats_lower_the_state_step_by_step(leases: Leases, time) -> None:
    leases.put(registration(time))
    seen = []
    for _ in range(6):
        seen.append(leases.condition("feature_extractor").state)
        await time.advance(10)
    assert seen == ["ok", "ok", "degraded", "degraded", "error", "error"]
    reason = leases.condition("feature_extractor").reason.message
    assert reason == "no heartbeat since 2026-03-12T10:00:00Z", "the same for as long as it lasts"
    leases.beat(heartbeat())
    assert leases.condition("feature_extractor").state == "ok"


@pytest.mark.parametrize(
    ("status", "message", "state", "reason"),
    [
        ("active", "", "ok", ""),
        ("ok", "warming up", "ok", "warming up"),
        ("degraded", "exchange slow", "degraded", "exchange slow"),
        ("error", "", "error", "says error"),
    ],
)
def test_an_agents_own_word(leases: Leases, time, status: str, message: str, state: str, reason: str) -> None:
    leases.put(registration(time))
    leases.beat(heartbeat(status, message=message))
    assert (leases.condition("feature_extractor").state, leases.condition("feature_extractor").reason.message) == (
        state,
        reason,
    )


async def test_after_a_restart_an_agent_is_unknown_until_it_is_heard_of(leases: Leases, time) -> None:
    kept = registration(time)
    await time.advance(5)
    leases.recall(kept)
    assert leases.condition("feature_extractor").state == "unknown"
    assert leases.last_signal("feature_extractor") is None
    await time.advance(20)
    assert leases.condition("feature_extractor").state == "degraded"
    leases.beat(heartbeat())
    assert leases.condition("feature_extractor").state == "ok"


@pytest.mark.parametrize(("interval", "seconds"), [(1, 3600), (60, 3600), (600, 14400), (3600, 86400)])
async def test_a_long_silence_ends_a_registration(leases: Leases, time, interval: int, seconds: int) -> None:
    leases.put(registration(time, heartbeat_interval=interval))
    assert expiry(interval) == seconds
    await time.advance(seconds - 1)
    assert leases.expired() == []
    await time.advance(1)
    assert [each.agent for each in leases.expired()] == ["feature_extractor"]


def test_the_list_is_another_one_after_each_change_and_only_then(leases: Leases, time) -> None:
    leases.put(registration(time))
    first = leases.all
    leases.beat(heartbeat())
    assert leases.all is first
    leases.put(registration(time, description="more"))
    assert leases.all is not first
    leases.remove("feature_extractor")
    assert leases.all == ()
