"""One question to a model provider: can it be reached, is the key good, is the model there (seed 001)?"""

from __future__ import annotations

import asyncio

import httpx

from pallas_agent_runtime import config
from pallas_agent_runtime.preflight import Provider

TIMEOUT = 5.0
"""Seconds per provider (seed 001)."""
ANTHROPIC_VERSION = "2023-06-01"
ANTHROPIC_MODEL = "claude-sonnet-4-5"
"""The model asked for when Anthropic is not the active provider (seed 001)."""


def client() -> httpx.AsyncClient:
    return httpx.AsyncClient(timeout=TIMEOUT)


async def check(http: httpx.AsyncClient, provider: Provider) -> str:
    """The reason a provider cannot be used, empty when it can. One request, `TIMEOUT` in all; never raises."""
    try:
        async with asyncio.timeout(TIMEOUT):
            return await (_anthropic if provider.name == "anthropic" else _openai)(http, provider)
    except TimeoutError:
        return f"no answer in {TIMEOUT:g} s"
    except httpx.TransportError as error:
        return "connection refused" if isinstance(error, httpx.ConnectError) else "connection lost"
    except (httpx.InvalidURL, ValueError, LookupError, TypeError):
        return "gave no valid answer"


async def _anthropic(http: httpx.AsyncClient, provider: Provider) -> str:
    if not provider.key:
        return "no API key"
    model = provider.model or ANTHROPIC_MODEL
    headers = {"x-api-key": provider.key, "anthropic-version": ANTHROPIC_VERSION}
    reply = await http.get(f"{provider.base_url.removesuffix('/v1')}/v1/models/{model}", headers=headers)
    return f"model '{model}' not found" if reply.status_code == 404 else _refusal(reply)


async def _openai(http: httpx.AsyncClient, provider: Provider) -> str:
    """A server of one's own needs no key: its model list says whether it is there."""
    if not provider.key and provider.base_url == config.OPENAI_BASE_URL:
        return "no API key"
    headers = {"authorization": f"Bearer {provider.key}"} if provider.key else {}
    reply = await http.get(f"{provider.base_url}/models", headers=headers)
    if refusal := _refusal(reply):
        return refusal
    listed = {model["id"] for model in reply.json()["data"]} if provider.model else {""}
    return "" if provider.model in listed else f"model '{provider.model}' not found"


def _refusal(reply: httpx.Response) -> str:
    if reply.status_code in (401, 403):
        return f"API key rejected (HTTP {reply.status_code})"
    return "" if reply.is_success else f"HTTP {reply.status_code}"
