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
