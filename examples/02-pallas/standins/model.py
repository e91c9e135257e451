"""A model that needs no key: an OpenAI-compatible server that answers by the script in model.yaml."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from standins import script

MODEL = "scripted"


def create_app(rules: Sequence[script.Rule]) -> Starlette:
    """`GET /v1/models` and `POST /v1/chat/completions`, answering by `rules`."""

    async def models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "pallas-kit"}]})

    async def chat(request: Request) -> Response:
        try:
            body = await request.json()
            turn = script.answer(rules, script.read(body, request.client.host if request.client else ""))
        except (ValueError, KeyError, TypeError, LookupError) as error:
            return JSONResponse({"error": {"message": repr(error), "type": "invalid_request_error"}}, status_code=400)
        round_ = len(body["messages"])
        if body.get("stream"):
            return StreamingResponse(_events(turn, round_), media_type="text/event-stream")
        return JSONResponse(_completion(turn, round_))

    return Starlette(
        routes=[Route("/v1/models", models), Route("/v1/chat/completions", chat, methods=["POST"])],
    )


def _completion(turn: script.Turn, round_: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": turn.text or None}
    if turn.calls:
        message["tool_calls"] = _tool_calls(turn, round_)
    choice = {"index": 0, "message": message, "finish_reason": _finish(turn)}
    return {**_head("chat.completion", round_), "choices": [choice], "usage": _usage(turn)}


def _events(turn: script.Turn, round_: int) -> Iterator[str]:
    """The answer as server-sent events, in pieces as a real model sends them."""
    head = _head("chat.completion.chunk", round_)
    for delta in _deltas(turn, round_):
        yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish(turn)}]})
    yield _event({**head, "choices": [], "usage": _usage(turn)})
    yield "data: [DONE]\n\n"


def _deltas(turn: script.Turn, round_: int) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": "" if turn.text else None}
    for line in turn.text.splitlines(keepends=True):
        yield {"content": line}
    for index, call in enumerate(_tool_calls(turn, round_)):
        arguments = call["function"]["arguments"]
        yield {"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": ""}}]}
        yield {"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}


def _tool_calls(turn: script.Turn, round_: int) -> list[dict[str, Any]]:
    """Ids count messages: unique within a conversation, and the same whenever the same conversation is repeated."""
    return [
        {
            "id": f"call_{round_}_{index}",
            "type": "function",
            "function": {"name": call.tool, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
        }
        for index, call in enumerate(turn.calls)
    ]


def _head(kind: str, round_: int) -> dict[str, Any]:
    return {"id": f"scripted-{round_}", "object": kind, "created": 0, "model": MODEL}


def _finish(turn: script.Turn) -> str:
    return "tool_calls" if turn.calls else "stop"


def _usage(turn: script.Turn) -> dict[str, int]:
    words = len(turn.text.split())
    return {"prompt_tokens": 0, "completion_tokens": words, "total_tokens": words}


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"


def main() -> None:
    """Listen on PALLAS_BIND, `address:port`."""
    address, _, port = os.environ["PALLAS_BIND"].rpartition(":")
    app = create_app(script.load(Path(__file__).with_name("model.yaml")))
    uvicorn.run(app, host=address, port=int(port), log_level="warning", lifespan="off", timeout_graceful_shutdown=3)


if __name__ == "__main__":
    main()
