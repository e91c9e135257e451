"""The pool of instances."""

from __future__ import annotations

import asyncio

import pytest

from pallas_agent_runtime.engine.pool import Instances


class Shop:
    def __init__(self) -> None:
        self.made, self.cleaned, self.discarded = 0, [], []
        self.keep, self.broken = True, False
        self.pool = Instances(self.make, self.clean, self.discard, limit=2)

    async def make(self) -> int:
        if self.broken:
            raise ValueError("no more")
        self.made += 1
        return self.made

    async def clean(self, instance: int) -> bool:
        self.cleaned.append(instance)
        return self.keep

    async def discard(self, instance: int) -> None:
        self.discarded.append(instance)


async def test_an_instance_is_used_again_after_cleaning() -> None:
    shop = Shop()
    for _ in range(3):
        async with shop.pool.one() as instance:
            assert instance == 1
    assert (shop.made, shop.cleaned, shop.discarded) == (1, [1, 1, 1], [])


async def test_an_instance_that_saw_an_exception_is_not_lent_again() -> None:
    shop = Shop()
    with pytest.raises(RuntimeError):
        async with shop.pool.one():
            raise RuntimeError
    async with shop.pool.one() as instance:
        assert instance == 2
    assert (shop.discarded, shop.cleaned) == ([1], [2])


async def test_a_cancellation_that_is_left_over_does_not_reach_the_end_of_an_instance() -> None:
    shop = Shop()
    ended: list[int] = []

    async def discard(instance: int) -> None:
        await asyncio.sleep(0)
        ended.append(instance)

    pool = Instances(shop.make, shop.clean, discard, limit=1)
    borrowed = asyncio.Event()

    async def turn() -> None:
        async with pool.one():
            borrowed.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:  # as fast-agent's runner of tools does
                task = asyncio.current_task()
                assert task is not None
                task.uncancel()
                task.cancel()
                raise

    cancelled = asyncio.create_task(turn())
    await borrowed.wait()
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert ended == [1]
    async with asyncio.timeout(10), pool.one() as instance:  # its place is free
        assert instance == 2


async def test_who_is_cancelled_while_an_instance_ends_hears_of_it_afterwards() -> None:
    shop = Shop()
    shop.keep = False
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def discard(instance: int) -> None:
        begun.set()
        await may_end.wait()
        shop.discarded.append(instance)

    pool = Instances(shop.make, shop.clean, discard, limit=1)

    async def turn() -> None:
        async with pool.one():
            pass

    ending = asyncio.create_task(turn())
    await begun.wait()
    ending.cancel()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert shop.discarded == [1]


async def test_a_worn_out_instance_is_replaced() -> None:
    shop = Shop()
    shop.keep = False
    async with shop.pool.one():
        pass
    assert shop.discarded == [1]


async def test_no_more_than_the_limit_at_once() -> None:
    shop = Shop()
    async with shop.pool.one(), shop.pool.one():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0), shop.pool.one():
                pass
    async with shop.pool.one(), shop.pool.one():
        assert shop.made == 2


async def test_a_failure_to_make_one_is_remembered_until_it_works() -> None:
    shop = Shop()
    shop.broken = True
    for _ in range(3):  # more often than there are slots: none is lost
        with pytest.raises(ValueError, match="no more"):
            async with shop.pool.one():
                pass
    assert str(shop.pool.failure) == "no more"
    shop.broken = False
    async with shop.pool.one():
        assert shop.pool.failure is None


async def test_an_end_that_takes_too_long_keeps_no_place_and_goes_on() -> None:
    shop = Shop()
    shop.keep = False
    may_end = asyncio.Event()

    async def discard(instance: int) -> None:
        await may_end.wait()
        shop.discarded.append(instance)

    pool = Instances(shop.make, shop.clean, discard, limit=1, patience=0.01)
    async with asyncio.timeout(10):
        async with pool.one():
            pass
        async with pool.one() as instance:
            assert instance == 2
        assert shop.discarded == []
        may_end.set()
        await asyncio.wait(pool.endings)
    assert shop.discarded == [1, 2]


async def test_all_that_are_not_lent_are_ended_and_their_places_stay() -> None:
    shop = Shop()
    async with shop.pool.one():
        async with shop.pool.one():
            pass
        shop.pool.end()
        await asyncio.wait(shop.pool.endings)
        assert shop.discarded == [2]
        async with shop.pool.one() as instance:
            assert instance == 3
