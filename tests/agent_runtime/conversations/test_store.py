"""Conversations: whose they are, how long they are kept, one turn at a time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from pallas_agent_runtime.conversations.store import Conversations, MemoryStore, key, owner, surplus


@dataclass
class Said:
    role: str
    text: str
    tool_results: object = None


def user(text: str) -> Said:
    return Said("user", text)


def weigh(said: Said) -> int:
    return len(said.text)


def test_a_key_depends_on_handle_and_caller_and_shows_neither() -> None:
    keys = {key("a", ""), key("a", "token"), key("b", ""), key("", "a")}
    assert len(keys) == 4
    assert not any("token" in one for one in keys)
    assert key("\ud800", "") == key("\ud800", "")


async def test_a_turn_is_saved_unless_it_fails() -> None:
    talks = Conversations[Said](MemoryStore(weigh), weigh)
    async with talks.turn("k") as transcript:
        transcript["harper"] = [user("one")]
    with suppress(RuntimeError):
        async with talks.turn("k") as transcript:
            transcript["harper"].append(user("lost"))
            transcript["other"] = [user("lost")]
            raise RuntimeError
    async with talks.turn(None) as transcript:
        assert transcript == {}
        transcript["harper"] = [user("nobody")]
    assert [said.text for said in await talks.read("k", "harper")] == ["one"]
    assert await talks.read("other", "harper") == []


async def test_turns_of_one_conversation_wait_for_each_other() -> None:
    talks, order = Conversations[Said](MemoryStore(weigh), weigh), []

    async def turn(name: str, key: str) -> None:
        async with talks.turn(key):
            order.append(f"{name} in")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            order.append(f"{name} out")

    await asyncio.gather(turn("a", "1"), turn("b", "1"), turn("c", "2"))
    assert order.index("a out") < order.index("b in")
    assert order.index("c in") < order.index("a out")


async def test_the_least_recently_used_goes_first() -> None:
    store = MemoryStore[Said](weigh, limit=2)
    for name in ("a", "b"):
        await store.save(name, {"x": [user(name)]})
    await store.save("a", {"x": [user("a again")]})
    await store.save("c", {"x": [user("c")]})
    assert [bool(await store.load(name)) for name in ("a", "b", "c")] == [True, False, True]


async def test_an_idle_conversation_ages_out() -> None:
    now = [0.0]
    store = MemoryStore[Said](weigh, idle=10, clock=lambda: now[0])
    await store.save("a", {"x": [user("a")]})
    now[0] = 10
    assert await store.load("a")
    now[0] = 10.1
    assert not await store.load("a")


async def test_a_long_conversation_is_cut_where_a_user_speaks() -> None:
    talks = Conversations[Said](MemoryStore(weigh), weigh, length=4)
    result = Said("user", "", tool_results={"call": 1})
    said = [user("1"), Said("assistant", "calls"), result, Said("assistant", "done"), user("2"), Said("assistant", "x")]
    async with talks.turn("k") as transcript:
        transcript["harper"] = said
    assert await talks.read("k", "harper") == said[4:]
    async with talks.turn("k") as transcript:
        transcript["harper"] = [user("0"), user("1"), *[Said("assistant", "x")] * 9]
    assert [message.text for message in await talks.read("k", "harper")] == ["1", *"xxxxxxxxx"]


async def test_all_conversations_together_are_bounded_in_bytes() -> None:
    talks = Conversations[Said](MemoryStore(weigh, total=10), weigh)
    for name, text in (("a", "x" * 4), ("b", "x" * 4), ("a", "x" * 5), ("c", "x" * 4)):
        async with talks.turn(key(name, "")) as transcript:
            transcript["harper"] = [user(text)]
    assert [len(await talks.read(key(name, ""), "harper")) for name in "abc"] == [1, 0, 1]
    async with talks.turn(key("d", "")) as transcript:
        transcript["harper"] = [user("x" * 99)]
    kept = [len(await talks.read(key(name, ""), "harper")) for name in "acd"]
    assert kept == [0, 0, 1]  # the last one is kept as it is


async def test_one_callers_flood_leaves_anothers_conversation() -> None:
    store = MemoryStore[Said](weigh, limit=20, total=1000)
    await store.save(key("quiet", "bob", verified=True), {"x": [user("kept")]})
    for handle in range(60):
        name = key(f"flood {handle}", "mallory", verified=True)
        await store.save(name, {"x": [user("y" * (1 if handle < 30 else 300))]})
    assert await store.load(key("quiet", "bob", verified=True)) == {"x": [user("kept")]}
    left = [bool(await store.load(key(f"flood {handle}", "mallory", verified=True))) for handle in (56, 57, 59)]
    assert left == [False, True, True]


async def test_names_that_nobody_verified_share_one_share_the_oldest_going_first() -> None:
    store = MemoryStore[Said](weigh, limit=20, total=1000)
    await store.save(key("mine", "verified", verified=True), {"x": [user("kept")]})
    for number in range(40):
        await store.save(key("any", f"made up {number}"), {"x": [user("y")]})
        await store.save(key("honest", ""), {"x": [user("used")]})
    assert await store.load(key("mine", "verified", verified=True))
    assert await store.load(key("honest", "")) == {"x": [user("used")]}
    assert [bool(await store.load(key("any", f"made up {number}"))) for number in (21, 22)] == [False, True]


def test_a_key_is_its_callers_own() -> None:
    keys = {key("h", "a", verified=True), key("h", "b", verified=True), key("h", "a"), key("h", "b"), key("ah", "")}
    assert len(keys) == 5
    assert len({owner(known) for known in keys}) == 3


def test_above_their_share_who_has_most_conversations_loses_the_oldest_and_then_all_do() -> None:
    kept = [(f"{caller}-{number}", 1) for number in range(3) for caller in "cba"] + [("a-3", 1), ("z-0", 1)]
    assert surplus(kept, 11, 99) == []
    assert surplus(kept, 9, 99) == ["a-0", "c-0"]
    assert surplus(kept, 6, 99) == ["a-0", "c-0", "b-0", "a-1", "c-1"]
    many = [(f"{number}-0", 1) for number in range(20)] + [("a-0", 1), ("a-1", 1), ("a-2", 1), ("a-3", 1)]
    assert surplus(many, 23, 99) == ["a-0"]  # above two, the tenth part of 23, is a alone
    assert surplus(many, 20, 99) == ["a-0", "a-1", "0-0", "1-0"]
    assert surplus(kept, 0, 0)[-1] == "a-3"  # the last one is in use


def test_above_their_share_who_has_most_bytes_loses_the_oldest() -> None:
    kept = [("a-1", 6), ("b-1", 5), ("b-2", 5), ("c-1", 2), ("a-2", 3)]
    assert surplus(kept, 9, 21) == []
    assert surplus(kept, 9, 20) == ["b-1"]
    assert surplus(kept, 9, 15) == ["b-1", "a-1"]
    assert surplus([*kept, ("d-1", 99)], 9, 100) == ["a-1", "b-1", "b-2", "c-1", "a-2"]
    assert surplus(kept, 3, 10) == ["a-1", "b-1"]  # both bounds at once: the room that the first one makes counts


async def test_one_conversation_is_bounded_in_bytes_and_keeps_whole_turns() -> None:
    talks = Conversations[Said](MemoryStore(weigh), weigh, largest=10)
    async with talks.turn("k") as transcript:
        transcript["harper"] = [user("1234"), Said("assistant", "1234"), user("12"), Said("assistant", "1234")]
    assert [said.text for said in await talks.read("k", "harper")] == ["12", "1234"]
    async with talks.turn("k") as transcript:
        transcript["harper"].extend([user("x" * 99), Said("assistant", "y")])
    assert [len(said.text) for said in await talks.read("k", "harper")] == [99, 1]
