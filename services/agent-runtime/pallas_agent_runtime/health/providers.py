"""One question to a model provider: can it be reached, is the key good, is the model there (seed 001)?

The providers stand in `pallas_contract.fleet.providers`, one row each; here is a function per shape of their APIs.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping

import httpx

from pallas_agent_runtime.health.preflight import ProviderTarget
from pallas_contract.fleet import fastagent
from pallas_contract.fleet.providers import Api

TIMEOUT = 5.0
"""Seconds per provider (seed 001)."""
ANTHROPIC_VERSION = "2023-06-01"
ANTHROPIC_MODEL = "claude-sonnet-4-5"
"""The model asked for when Anthropic is not the active provider (seed 001)."""
LARGEST = 8 << 20
"""Bytes of an answer that are read; the longest list of models today has half a megabyte."""

_CAUSES = ((ssl.SSLError, "TLS error"), (socket.gaierror, "name not found"))


def client() -> httpx.AsyncClient:
    return httpx.AsyncClient(timeout=TIMEOUT)


async def check(http: httpx.AsyncClient, target: ProviderTarget) -> str:
    """Return the reason a provider cannot be used, empty when it can. One request, `TIMEOUT` in all; never raises."""
    if flaw := fastagent.flaw(target.base_url):
        return f"base_url {flaw}"  # not asked: uvloop takes port 70000 for 4464, and the key would go there
    try:
        async with asyncio.timeout(TIMEOUT):
            return await CHECKS[target.api](http, target)
    except TimeoutError:
        return f"no answer in {TIMEOUT:g} s"
    except httpx.ConnectError as error:
        return f"{_cause(error)} ({target.address})"
    except httpx.TransportError:
        return "connection lost"
    except Exception:  # whatever else an answer, or a header that cannot be sent, leads to: it must not end the agent
        return "gave no valid answer"


async def _anthropic(http: httpx.AsyncClient, target: ProviderTarget) -> str:
    if not target.key:
        return "no API key"
    model = target.model or ANTHROPIC_MODEL
    headers = {"x-api-key": target.key, "anthropic-version": ANTHROPIC_VERSION}
    # Users write the address with `/v1` and without.
    status, _ = await _get(http, f"{target.base_url.removesuffix('/v1')}/v1/models/{model}", headers)
    return f"model '{model}' not found" if status == 404 else _refusal(status)


async def _openai(http: httpx.AsyncClient, target: ProviderTarget) -> str:
    """Read the list of models. A server of one's own needs no key: its list says whether it is there."""
    if not target.key and target.needs_key:
        return "no API key"
    headers = {"authorization": f"Bearer {target.key}"} if target.key else {}
    status, body = await _get(http, f"{target.base_url}/models", headers)
    if refusal := _refusal(status):
        return refusal
    # Without a model to look for, an answer is all that was asked.
    listed = {model["id"] for model in json.loads(body)["data"]} if target.model else {""}
    return "" if target.model in listed else f"model '{target.model}' not found"


CHECKS: Mapping[Api, Callable[[httpx.AsyncClient, ProviderTarget], Awaitable[str]]] = {
    "anthropic": _anthropic,
    "openai": _openai,
}
"""Shape of the API -> the check, which gives the reason a provider cannot be used, empty when it can."""


async def _get(http: httpx.AsyncClient, url: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Return the status, and the body of a success; no other one is waited for."""
    async with http.stream("GET", url, headers=headers) as reply:
        if not reply.is_success:
            return reply.status_code, b""
        body = bytearray()
        async for piece in reply.aiter_bytes():
            body += piece
            if len(body) > LARGEST:
                raise ValueError("too long for a list of models")
        return reply.status_code, bytes(body)


def _refusal(status: int) -> str:
    if status in (401, 403):
        return f"API key rejected (HTTP {status})"
    return "" if 200 <= status < 300 else f"HTTP {status}"


def _cause(error: BaseException | None) -> str:
    """Return why there is no connection: httpx says it of every reason alike, the errors below it do not."""
    while error is not None:
        for kind, words in _CAUSES:
            if isinstance(error, kind):
                return words
        error = error.__cause__ or error.__context__
    return "connection refused"
