"""The server that ends when its last answer has."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from pallas_testing.model.prompt_server import PromptServer


class Slow:
    """An application that answers when it is let."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.ended = False
        self.app = Starlette(routes=[Route("/", self.answer)], lifespan=self.lifespan)

    async def answer(self, _: Request) -> Response:
        self.asked.set()
        await self.may_answer.wait()
        return PlainTextResponse("done")

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        self.ended = True


def server(app: Starlette, **options: int) -> PromptServer:
    return PromptServer(uvicorn.Config(app, log_config=None, ws="none", lifespan="on", **options))


async def test_an_answer_that_has_begun_is_finished_and_then_the_application_ends() -> None:
    slow = Slow()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = server(slow.app)
        serving = asyncio.create_task(one.serve([listener]))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=60) as web:
            answer = asyncio.create_task(web.get("/"))
            await slow.asked.wait()
            one.end()
            slow.may_answer.set()
            assert (await answer).text == "done"
            await asyncio.wait_for(serving, 60)
    assert slow.ended


async def test_one_that_goes_on_has_the_time_that_uvicorn_gives_it() -> None:
    slow = Slow()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = server(slow.app, timeout_graceful_shutdown=1)
        serving = asyncio.create_task(one.serve([listener]))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=60) as web:
            answer = asyncio.create_task(web.get("/"))
            await slow.asked.wait()
            one.end()
            await asyncio.wait_for(serving, 60)
            assert isinstance(
                (await asyncio.gather(answer, return_exceptions=True))[0], httpx.HTTPError | httpx.Response
            )
    assert slow.ended


async def test_the_end_may_be_asked_for_before_the_start() -> None:
    slow = Slow()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = server(slow.app)
        one.end()
        await asyncio.wait_for(one.serve([listener]), 60)
    assert slow.ended
