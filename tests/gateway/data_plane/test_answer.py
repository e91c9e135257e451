"""Answers to clients that stop reading, and what is kept for one that is refused."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message

from pallas_gateway.data_plane.answer import Answer, Refused
from tests.gateway.door import opened

LATE = Refused("timeout", "late", status=200, request_id=1)


class Client:
    """ASGI's `send` as uvicorn has it: what the client reads no longer is not written."""

    def __init__(self) -> None:
        self.reads = asyncio.Event()
        self.reads.set()
        self.got: list[bytes] = []

    async def send(self, message: Message) -> None:
        await self.reads.wait()
        self.got.append(message.get("body", b""))


@pytest.fixture
async def client() -> Client:
    return Client()


async def test_an_error_does_not_stand_in_the_middle_of_an_event(client: Client) -> None:
    answer = Answer(client.send)
    await answer.begin(200, [], stream=True)
    await answer.piece(b'data: {"half":')
    client.reads.clear()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await answer.piece(b"1}\n\n")
    client.reads.set()
    await answer.refuse(LATE)
    assert b"".join(client.got) == b'data: {"half":'


@pytest.mark.parametrize("begun", [False, True])
async def test_who_does_not_read_an_error_is_not_waited_for(client: Client, begun: bool) -> None:
    answer = Answer(client.send)
    if begun:
        await answer.begin(200, [], stream=True)
    client.reads.clear()
    async with asyncio.timeout(30):
        await answer.refuse(LATE, seconds=0)
    assert b"".join(client.got) == b""


async def test_a_refusal_does_not_keep_the_body(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(answer: Answer, refused: Refused) -> None:
        assert refused.__context__ is not None
        # the frames of a traceback have all that was read
        tracebacks.extend([refused.__traceback__, refused.__context__.__traceback__])
        await answer.whole(400, [], b"")

    tracebacks: list[object] = []
    monkeypatch.setattr(Answer, "refuse", refuse)
    async with opened({"scout": "http://127.0.0.1:1/mcp"}) as door:
        assert (await door.web.post(door.url(), content=b"{")).status_code == 400
    assert tracebacks == [None, None]
