"""A scripted model on a port, and the official clients of the three APIs, all with one face."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from pallas_testing.model import ScriptedModel
from pallas_testing.model_fixture import scripted_model  # noqa: F401 - the fixture

if TYPE_CHECKING:
    import openai

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SCHEMA = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
LOOK = {"type": "object", "properties": {"at": {"type": "string"}}}


@dataclass
class Got:
    """What a client made of an answer."""

    text: str
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    reason: str = ""


@dataclass
class Client:
    """An official client; `ask` is one message, with two tools unless there is a schema."""

    api: str
    stream: bool
    url: str
    key: str = "a-key"
    timeout: float = 60

    async def ask(
        self,
        text: str = "hello",
        *,
        instruction: str = "You are Harper",
        image: bytes = b"",
        schema: dict[str, Any] | None = None,
        result: str = "",
    ) -> Got:
        ask = {"chat": self._chat, "responses": self._responses, "messages": self._messages}[self.api]
        return await ask(text, instruction, base64.b64encode(image).decode(), schema, result)

    @contextlib.asynccontextmanager
    async def openai(self) -> AsyncIterator[openai.AsyncOpenAI]:
        import openai  # noqa: PLC0415 - a second of import, which each worker would pay that only reads this room

        http = openai.DefaultAsyncHttpxClient(verify=False)  # reading certificates takes longer than most tests
        options: dict[str, Any] = {"api_key": self.key, "base_url": f"{self.url}/v1", "http_client": http}
        async with openai.AsyncOpenAI(max_retries=0, timeout=self.timeout, **options) as client:
            yield client

    async def _chat(self, text: str, instruction: str, image: str, schema: Any, result: str) -> Got:
        parts: list[Any] = [{"type": "text", "text": text}]
        if image:
            parts.append({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}})
        messages: list[Any] = [{"role": "system", "content": instruction}, {"role": "user", "content": parts}]
        if result:
            call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "it"}'}}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": "c1", "content": result})
        tools = [{"type": "function", "function": {"name": n, "parameters": LOOK}} for n in ("look", "listen")]
        form = {"type": "json_schema", "json_schema": {"name": "form", "schema": schema}}
        options: dict[str, Any] = {"response_format": form} if schema else {"tools": tools}
        async with self.openai() as client:
            if self.stream:
                async with client.chat.completions.stream(model="scripted", messages=messages, **options) as stream:
                    completion = await stream.get_final_completion()
            else:
                completion = await client.chat.completions.create(model="scripted", messages=messages, **options)
        choice = completion.choices[0]
        calls = [(c.function.name, json.loads(c.function.arguments)) for c in choice.message.tool_calls or ()]
        return Got(choice.message.content or "", calls, choice.finish_reason)

    async def _responses(self, text: str, instruction: str, image: str, schema: Any, result: str) -> Got:
        parts: list[Any] = [{"type": "input_text", "text": text}]
        if image:
            parts.append({"type": "input_image", "image_url": f"data:image/png;base64,{image}", "detail": "auto"})
        items: list[Any] = [{"role": "user", "content": parts}]
        if result:
            items.append({"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": "it"}'})
            items.append({"type": "function_call_output", "call_id": "c1", "output": result})
        tools = [{"type": "function", "name": name, "parameters": LOOK, "strict": False} for name in ("look", "listen")]
        form = {"format": {"type": "json_schema", "name": "form", "schema": schema}}
        options: dict[str, Any] = {"text": form} if schema else {"tools": tools}
        asked: dict[str, Any] = {"model": "scripted", "instructions": instruction, "input": items, **options}
        async with self.openai() as client:
            if self.stream:
                async with client.responses.stream(**asked) as stream:
                    deltas = [event.delta async for event in stream if event.type == "response.output_text.delta"]
                    response = await stream.get_final_response()
                assert "".join(deltas) == response.output_text
            else:
                response = await client.responses.create(**asked)
        calls = [(i.name, json.loads(i.arguments)) for i in response.output if i.type == "function_call"]
        return Got(response.output_text, calls, response.status)

    async def _messages(self, text: str, instruction: str, image: str, schema: Any, result: str) -> Got:
        parts: list[Any] = [{"type": "text", "text": text}]
        if image:
            source = {"type": "base64", "media_type": "image/png", "data": image}
            parts.append({"type": "image", "source": source})
        messages: list[Any] = [{"role": "user", "content": parts}]
        if result:
            call = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "it"}}
            messages.append({"role": "assistant", "content": [call]})
            answer = {"type": "tool_result", "tool_use_id": "c1", "content": result}
            messages.append({"role": "user", "content": [answer]})
        tools = [{"name": name, "input_schema": LOOK} for name in ("look", "listen")]
        form = {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
        options: dict[str, Any] = form if schema else {"tools": tools}
        asked: dict[str, Any] = {"model": "scripted", "system": instruction, "max_tokens": 99, "messages": messages}
        import anthropic  # noqa: PLC0415 - as openai

        http = anthropic.DefaultAsyncHttpxClient(verify=False)
        given: dict[str, Any] = {"api_key": self.key, "base_url": self.url, "http_client": http}
        async with anthropic.AsyncAnthropic(max_retries=0, timeout=self.timeout, **given) as client:
            if self.stream:
                async with client.messages.stream(**asked, **options) as stream:
                    message = await stream.get_final_message()
            else:
                message = await client.messages.create(**asked, **options)
        texts = [block.text for block in message.content if block.type == "text"]
        calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
        return Got("".join(texts), calls, message.stop_reason or "")


@pytest.fixture(params=["chat", "responses", "messages"])
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def client(request: pytest.FixtureRequest, api: str, scripted_model: ScriptedModel) -> Client:  # noqa: F811
    return Client(api, request.param, scripted_model.url)


@pytest.fixture
def clients() -> type[Client]:
    return Client
