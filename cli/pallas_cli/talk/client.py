"""One question to an agent over MCP, in the era that it prefers, with its progress as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from pallas_cli.talk.inputs import Token
from pallas_cli.trouble import Trouble
from pallas_contract import names

_SEND = "send_message"
_HEALTH = "get_health"
_CONNECT = 30.0
"""Seconds for a connection. How long the agent thinks is bounded by the deadline of the whole call alone."""


@dataclass(frozen=True, slots=True)
class Question:
    """A message with images (`{"data": base64, "mime_type": ...}`), as part of a conversation where one is named."""

    message: str
    images: Sequence[Mapping[str, str]] = ()
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The text of an agent's answer; `is_error` where it could not do what it was asked."""

    text: str
    is_error: bool
    progress: tuple[str, ...]


async def ask(
    url: str,
    question: Question,
    *,
    token: Token | None = None,
    timeout: float,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Answer:
    """Return the answer of the agent at `url`, which ends with /mcp; `timeout` in seconds is for the whole of it.

    Raises:
        Trouble: nobody answers, or no agent, or a token is needed or refused.
    """
    lines: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        if message:
            lines.append(message)
            on_progress(message)

    arguments: dict[str, object] = {"message": question.message}
    if question.images:
        arguments["images"] = list(question.images)
    if question.session:
        arguments["session_id"] = question.session
    headers = {"authorization": f"Bearer {token.text}"} if token else {}
    statuses: list[int] = []

    async def note_status(response: httpx2.Response) -> None:
        if response.is_error:
            statuses.append(response.status_code)

    http = httpx2.AsyncClient(
        headers=headers,
        timeout=httpx2.Timeout(_CONNECT, read=timeout),
        event_hooks={"response": [note_status]},
        # a proxy of the environment is for the world, and need not be told of this machine
        trust_env=urlsplit(url).hostname not in names.LOCAL_HOSTS,
    )
    try:
        async with asyncio.timeout(timeout), http, Client(streamable_http_client(url, http_client=http)) as client:
            tool = choose([tool.name for tool in (await client.list_tools()).tools])
            result = await client.call_tool(tool, arguments, progress_callback=note)
    except TimeoutError:
        raise Trouble(f"{url}: no answer in {timeout:g} s") from None
    except Trouble:
        raise
    except Exception as error:  # the SDK raises whatever its transport does, alone or in groups
        # the SDK says that there was an error status, and not which
        words = _status(statuses[-1], token) if statuses and isinstance(root(error), MCPError) else reason(error)
        raise Trouble(f"{url}: {words}") from None
    text = "\n".join(block.text for block in result.content if block.type == "text")
    return Answer(text, bool(result.is_error), tuple(lines))


def choose(tools: Sequence[str]) -> str:
    """Return the tool to ask with: `send_message`, else the first that is not `get_health`.

    Raises:
        Trouble: there is none.
    """
    others = [tool for tool in tools if tool != _HEALTH]
    if not others:
        raise Trouble("it is an MCP server, but has no tool to be asked with")
    return _SEND if _SEND in others else others[0]


def root(error: BaseException) -> BaseException:
    """Return what went wrong first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def reason(error: BaseException) -> str:
    """Return what went wrong first, in words."""
    first = root(error)
    if isinstance(first, Trouble):
        return str(first)
    if isinstance(first, MCPError):
        return first.message
    return str(first).strip().lower() or type(first).__name__


def _status(code: int, token: Token | None) -> str:
    if code in (401, 403) and not token:
        return f"it asks for a token: --token-file FILE, or ${names.ENV_TOKEN}"
    if token and code == 401:
        return f"it does not accept the token in {token.source}: see that it is one of those in its `access`, and valid"
    if token and code == 403:
        return f"the token in {token.source} does not allow this: see the scopes in its `access`"
    return f"HTTP {code}{'; is the path /mcp right?' if code == 404 else ''}"
