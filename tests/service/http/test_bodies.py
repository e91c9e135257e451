"""One budget for the bodies of all open calls; tests/agent_runtime/web/test_body_limits.py fills it over HTTP."""

from __future__ import annotations

import pytest
from starlette.types import Message, Receive

from pallas_service.http.bodies import AT_ONCE, SMALL, BodyBudget, OverBudget, UploadAborted

LIMIT = 4 * SMALL


def sender(*pieces: bytes | None) -> Receive:
    """Return what gives `pieces` of a body; None stands for a caller that hangs up."""
    rest = list(pieces)

    async def receive() -> Message:
        piece = rest.pop(0)
        if piece is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": bool(rest)}

    return receive


async def test_a_large_body_takes_what_has_come_until_its_call_ends() -> None:
    budget = BodyBudget(LIMIT, 2 * LIMIT)
    async with budget.read(sender(b"x" * SMALL, b"x")) as upload:
        assert budget.left == AT_ONCE * LIMIT - SMALL - 1
        assert sum(len(piece["body"]) for piece in upload.pieces) == SMALL + 1
    async with budget.read(sender(b"x" * SMALL)):
        assert budget.left == AT_ONCE * LIMIT


async def test_a_body_that_is_no_longer_in_memory_is_given_back_once() -> None:
    budget = BodyBudget(LIMIT, LIMIT)
    async with budget.read(sender(b"x" * LIMIT)) as upload:
        budget.release(upload)
        assert budget.left == AT_ONCE * LIMIT
    assert budget.left == AT_ONCE * LIMIT


async def test_a_body_that_is_in_memory_more_than_once_is_charged_so() -> None:
    budget = BodyBudget(LIMIT, LIMIT, weight=2)
    assert budget.admits(AT_ONCE * LIMIT)
    async with budget.read(sender(b"x" * LIMIT)), budget.read(sender(b"x" * LIMIT)):
        assert budget.left == (AT_ONCE - 4) * LIMIT
        assert not budget.admits(LIMIT)
    assert budget.left == AT_ONCE * LIMIT


async def test_what_is_beyond_all_limits_is_read_no_further_and_charged_once() -> None:
    budget = BodyBudget(LIMIT, 2 * LIMIT)
    async with budget.read(sender(b"x" * (3 * LIMIT), b"never read")) as upload:
        assert len(upload.pieces) == 1
        assert budget.left == (AT_ONCE - 1) * LIMIT


async def test_where_there_is_no_room_or_no_end_nothing_stays_taken() -> None:
    budget = BodyBudget(LIMIT, LIMIT)
    budget.left = LIMIT - 1
    assert not budget.admits(LIMIT)
    assert budget.admits(SMALL)
    with pytest.raises(OverBudget):
        async with budget.read(sender(b"x" * (LIMIT - 1), b"x")):
            raise AssertionError
    with pytest.raises(UploadAborted):
        async with budget.read(sender(b"x" * (LIMIT - 1), None)):
            raise AssertionError
    assert budget.left == LIMIT - 1


async def test_an_owner_holds_one_body_of_any_size_and_else_no_more_than_is_left_for_others() -> None:
    budget = BodyBudget(LIMIT, LIMIT)
    whole = b"x" * LIMIT
    async with budget.read(sender(whole), "acme"), budget.read(sender(whole), "acme"):
        assert not budget.admits(SMALL + 1, "acme")
        assert budget.admits(SMALL, "acme")
        with pytest.raises(OverBudget):
            async with budget.read(sender(whole), "acme"):
                raise AssertionError
        assert budget.left == 2 * LIMIT
        async with budget.read(sender(whole), "home"):
            assert not budget.admits(LIMIT, "home")
            assert budget.admits(LIMIT, "third")
            assert budget.admits(LIMIT)
    assert budget.left == AT_ONCE * LIMIT
    async with budget.read(sender(whole), "acme"):
        assert budget.admits(LIMIT, "acme")


async def test_what_an_owner_wants_more_counts_as_taken_from_the_others() -> None:
    budget = BodyBudget(LIMIT, LIMIT)
    whole, half = b"x" * LIMIT, b"x" * (LIMIT // 2)
    async with budget.read(sender(whole), "home"), budget.read(sender(whole), "acme"):
        assert not budget.admits(len(half) + 1, "acme")
        with pytest.raises(OverBudget):
            async with budget.read(sender(half + b"x"), "acme"):
                raise AssertionError
        async with budget.read(sender(half), "acme"):
            assert budget.left == LIMIT + LIMIT // 2, "as much as acme has"


async def test_a_body_that_comes_in_pieces_is_held_to_its_owners_share() -> None:
    budget = BodyBudget(LIMIT, LIMIT, weight=2)
    whole = b"x" * LIMIT
    async with budget.read(sender(whole), "acme"):
        with pytest.raises(OverBudget):
            async with budget.read(sender(b"x" * SMALL, b"x" * SMALL, b"x"), "acme"):
                raise AssertionError
        assert budget.left == 2 * LIMIT
    async with budget.read(sender(b"x" * SMALL, b"x" * (LIMIT - SMALL)), "acme"):
        assert budget.left == 2 * LIMIT
