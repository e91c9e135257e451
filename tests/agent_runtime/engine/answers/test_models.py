"""Providers that answer with more than anybody wants, asked by the SDKs that fast-agent asks them with."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, aclosing
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from starlette.responses import RedirectResponse, Response, StreamingResponse
from structlog.testing import capture_logs

from pallas_agent_runtime.engine.answers.limits import LEAST
from pallas_agent_runtime.engine.answers.models import MOST_LINES, MOST_VALUES, AnswerTooLarge, _Answer, bounded
from tests.served import served

MIB = 1 << 20
LIMIT = 4 * MIB
WHOLE = 2 * MIB
"""Of a body, or an event."""
PIECE = 9973
QUESTION: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    with bounded(LIMIT):
        yield


async def of_openai(url: str, stream: bool) -> list[Any]:
    async with openai.AsyncOpenAI(
        api_key="k", base_url=url, max_retries=0, http_client=openai.DefaultAioHttpClient()
    ) as sdk:
        asked = sdk.chat.completions.create(**QUESTION, stream=stream)
        return await everything(asked)


async def of_anthropic(url: str, stream: bool) -> list[Any]:
    async with anthropic.AsyncAnthropic(api_key="k", base_url=url, max_retries=0) as sdk:
        return await everything(sdk.messages.create(**QUESTION, max_tokens=9, stream=stream))


async def everything(asked: Awaitable[Any]) -> list[Any]:
    answer = await asked
    if not hasattr(answer, "__aiter__"):
        return [answer]
    async with aclosing(aiter(answer)) as events:
        return [event async for event in events]


class Pieces(httpx2.AsyncByteStream):
    """A body that has come already."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


SDKS = pytest.mark.parametrize("ask", [of_openai, of_anthropic], ids=["openai", "anthropic"])
Ask = Callable[[str, bool], Awaitable[list[Any]]]


async def asked(ask: Ask, stream: bool, answer: Response) -> list[Any]:
    """Ask a provider that gives this answer."""
    async with served(answer) as http:
        return await ask(str(http.base_url), stream)


async def refusal(ask: Ask, stream: bool, answer: Response) -> str:
    """What is said of the answer, by itself or as the cause of what the SDK says."""
    with pytest.raises((AnswerTooLarge, openai.APIConnectionError, anthropic.APIConnectionError)) as failure:
        await asked(ask, stream, answer)
    found = failure.value if isinstance(failure.value, AnswerTooLarge) else failure.value.__cause__
    assert isinstance(found, AnswerTooLarge)
    return str(found)


def body(size: int, values: int = 0) -> bytes:
    start = json.dumps({"id": "x", "type": "message", "more": [1] * values, "text": ""})[:-2].encode()
    return start + b"x" * (size - len(start) - 2) + b'"}'


def events(*sizes: int, end: bytes = b"\n\n", values: int = 0) -> StreamingResponse:
    """A stream of events of these sizes, in pieces."""
    return stream(b"".join(b"event: message\ndata: " + body(size - 21 - len(end), values) + end for size in sizes))


def stream(text: bytes) -> StreamingResponse:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(text), PIECE):
            yield text[start : start + PIECE]

    return StreamingResponse(pieces(), media_type="text/event-stream")


def whole(content: bytes, **headers: str) -> Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(content, headers=names, media_type="application/json")


@SDKS
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (whole(body(WHOLE + 1)), "2 MiB"),
        (whole(gzip.compress(body(WHOLE + 1)), content_encoding="gzip"), "2 MiB"),
        (whole(gzip.compress(b"{}") + b" " * WHOLE, content_encoding="gzip"), "2 MiB"),
        (whole(body(MIB, MOST_VALUES)), "20000 values"),
        (whole(json.dumps([chr(0x122)] + [[]] * MOST_VALUES, ensure_ascii=False).encode("utf-16")), "20000 values"),
        (Response(body(LEAST + 1), 400, media_type="application/json"), "1 MiB"),
    ],
    ids=["bytes", "unpacked", "behind-the-end", "values", "utf-16", "error"],
)
async def test_a_body_that_is_too_large_fails(ask: Ask, answer: Response, said: str) -> None:
    with capture_logs() as lines:
        assert await refusal(ask, False, answer) == f"the model's provider answered with more than {said}"
    assert lines == [{"event": "answer_too_large", "log_level": "warning", "server": "127.0.0.1", "limit": said}]


@SDKS
@pytest.mark.parametrize("end", [b"\n\n", b"\r\r", b"\r\n\r\n"], ids=repr)
async def test_a_stream_has_as_much_text_as_a_body_and_as_much_again_around_it(ask: Ask, end: bytes) -> None:
    assert len(await asked(ask, True, events(WHOLE - 100, 300, end=end))) == 2
    assert "2 MiB" in await refusal(ask, True, events(WHOLE, 401, end=end))
    assert "2 MiB" in await refusal(ask, True, events(100, WHOLE + 201, end=end))
    assert "2 MiB" in await refusal(ask, True, events(WHOLE + 201, end=b"")), "one that has no end"
    assert "4 MiB" in await refusal(ask, True, stream((b":" + b"x" * 150 + end) * (LIMIT // 150)))


@SDKS
async def test_many_values_in_all_are_let_through_but_not_in_one_event(ask: Ask) -> None:
    size = 8 * PIECE + 1  # the end of the first event is in two pieces
    assert len(await asked(ask, True, events(size, size, size, values=MOST_VALUES // 2))) == 3
    assert "20000 values" in await refusal(ask, True, events(100, MIB, 100, values=MOST_VALUES))


@SDKS
async def test_no_comment_and_no_other_line_hides_values(ask: Ask) -> None:
    values = json.dumps([1] * (MOST_VALUES // 2)).encode()[1:-1]
    for data in (b':"\ndata: [%b,%b]', b'data: ["",%b,\ndata: %b]', b'event: "\rdata: [%b,%b]'):
        assert "20000 values" in await refusal(ask, True, stream(data % (values, b"1," + values) + b"\n\n"))


@SDKS
async def test_an_event_has_so_many_lines(ask: Ask) -> None:
    lines = b'event: message\ndata: {"id": "x", "type": "message"\n' + b"data:\n" * (MOST_LINES - 4)
    assert len(await asked(ask, True, stream(lines + b"data: }\n\n"))) == 1
    assert "1000 lines" in await refusal(ask, True, stream(lines + b":\ndata: }\n\n"))
    assert "2000 lines" in await refusal(ask, True, stream(b":a\r" * LIMIT))


async def test_what_has_come_at_once_is_not_read_at_once() -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0)
            beats += 1

    answer = _Answer(200, stream=Pieces([b"data: 1\n\n"] * 100))
    answer.limit = LIMIT
    beating = asyncio.create_task(beat())
    assert len([piece async for piece in answer.aiter_bytes()]) == 100
    beating.cancel()
    assert beats >= 99


@SDKS
async def test_what_comes_behind_the_last_event_is_one_too(ask: Ask) -> None:
    assert "20000 values" in await refusal(ask, True, events(MIB, end=b"", values=MOST_VALUES))


@SDKS
async def test_where_a_provider_sends_the_question_is_bounded_as_well(ask: Ask) -> None:
    async def moved(scope: Any, receive: Any, send: Any) -> None:
        there = scope["path"].endswith("/there")
        await (whole(body(WHOLE + 1)) if there else RedirectResponse("/there", 307))(scope, receive, send)

    assert "2 MiB" in await refusal(ask, False, moved)  # type: ignore[arg-type]


async def test_what_else_a_project_reads_is_not() -> None:
    async with served(whole(body(3 * LIMIT))) as http, AsyncExitStack() as stack:
        client = await stack.enter_async_context(httpx2.AsyncClient(timeout=60))
        assert len((await client.get(str(http.base_url))).content) == 3 * LIMIT


async def test_a_client_that_asks_again_is_bounded_once() -> None:
    async with served(whole(b"{}")) as http, openai.AsyncOpenAI(api_key="k", base_url=str(http.base_url)) as sdk:
        for _ in range(3):
            await sdk.chat.completions.create(**QUESTION)
        assert len(sdk._client.event_hooks["response"]) == 1
