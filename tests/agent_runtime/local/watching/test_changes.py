"""What lies between two snapshots."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pallas_agent_runtime.local.programs import Member
from pallas_agent_runtime.local.watching import changes
from pallas_agent_runtime.local.watching.snapshot import Mark, Snapshot
from pallas_contract import names

Make = Callable[..., Snapshot]


@pytest.fixture
def fleet(member: Callable[..., Member]) -> Make:
    """Make a snapshot of members by name: what each is made of, and where it listens."""

    def make(**members: tuple[str, int]) -> Snapshot:
        made = {name: member(name) for name in members}
        for name, (_, port) in members.items():
            made[name].env[names.ENV_BIND] = f"127.0.0.1:{port}"  # type: ignore[index]
        return Snapshot(made, {name: Mark(mark) for name, (mark, _) in members.items()}, frozenset())

    return make


def test_nothing_lies_between_two_that_are_alike(fleet: Make) -> None:
    assert not changes.between(fleet(a=("x", 1), b=("y", 2)), fleet(a=("x", 1), b=("y", 2)))


def test_each_change_concerns_its_own_member(fleet: Make) -> None:
    old = fleet(same=("x", 1), edited=("x", 2), old=("x", 3), moved=("x", 4))
    new = fleet(same=("x", 1), edited=("y", 2), new=("x", 5), moved=("x", 6))
    between = changes.between(old, new)
    assert between == changes.Changes(gone=("old", "moved"), come=("new", "moved"), restarted=("edited",))
    assert str(between) == "stopping old; starting new; moving moved; restarting edited"


def test_two_that_change_places_both_move(fleet: Make) -> None:
    between = changes.between(fleet(a=("x", 1), b=("x", 2)), fleet(a=("x", 2), b=("x", 1)))
    assert (between.gone, between.come, between.restarted) == (("a", "b"), ("a", "b"), ())
