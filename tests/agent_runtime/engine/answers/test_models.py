"""Providers that answer with more than anybody wants, asked by the SDKs that fast-agent asks them with."""

from __future__ import annotations

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

from pallas_agent_runtime.engine.answers.limits import LEAST, MOST_VALUES
from pallas_agent_runtime.engine.answers.models import AnswerTooLarge, bounded
from tests.served import served

MIB = 1 << 20
LIMIT = 2 * MIB
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
    text = b"".join(b"event: message\ndata: " + body(size - 21 - len(end), values) + end for size in sizes)

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
        (whole(body(LIMIT + 1)), "2 MiB"),
        (whole(gzip.compress(body(LIMIT + 1)), content_encoding="gzip"), "2 MiB"),
        (whole(gzip.compress(b"{}") + b" " * LIMIT, content_encoding="gzip"), "2 MiB"),
        (whole(body(MIB, MOST_VALUES)), "250000 values"),
        (Response(body(LEAST + 1), 400, media_type="application/json"), "1 MiB"),
    ],
    ids=["bytes", "unpacked", "behind-the-end", "values", "error"],
)
async def test_a_body_that_is_too_large_fails(ask: Ask, answer: Response, said: str) -> None:
    with capture_logs() as lines:
        assert await refusal(ask, False, answer) == f"the model's provider answered with more than {said}"
    assert lines == [{"event": "answer_too_large", "log_level": "warning", "server": "127.0.0.1", "limit": said}]


@SDKS
@pytest.mark.parametrize("end", [b"\n\n", b"\r\r", b"\r\n\r\n"], ids=repr)
async def test_a_stream_has_twice_as_much_in_events_of_no_more_than_one(ask: Ask, end: bytes) -> None:
    most = events(LIMIT, LIMIT, end=end)
    assert len(await asked(ask, True, most)) == 2
    assert "4 MiB" in await refusal(ask, True, events(LIMIT, LIMIT - 100, 101, end=end))
    assert "2 MiB" in await refusal(ask, True, events(100, LIMIT + 1, end=end))
    assert "2 MiB" in await refusal(ask, True, events(LIMIT + 1, end=b"")), "one that has no end"


@SDKS
async def test_many_values_in_all_are_let_through_but_not_in_one_event(ask: Ask) -> None:
    size = 80 * PIECE + 1  # the end of the first event is in two pieces
    assert len(await asked(ask, True, events(size, size, size, values=MOST_VALUES // 2))) == 3
    assert "250000 values" in await refusal(ask, True, events(100, MIB, 100, values=MOST_VALUES))


@SDKS
async def test_what_comes_behind_the_last_event_is_one_too(ask: Ask) -> None:
    assert "250000 values" in await refusal(ask, True, events(MIB, end=b"", values=MOST_VALUES))


@SDKS
async def test_where_a_provider_sends_the_question_is_bounded_as_well(ask: Ask) -> None:
    async def moved(scope: Any, receive: Any, send: Any) -> None:
        there = scope["path"].endswith("/there")
        await (whole(body(LIMIT + 1)) if there else RedirectResponse("/there", 307))(scope, receive, send)

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
