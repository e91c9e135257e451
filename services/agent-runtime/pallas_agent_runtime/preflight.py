"""Startup Preflight of seed 001: can the model providers be reached, is the key good, is the model there?

Warn-only, and repeated in the background, so that a provider that comes back is noticed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import httpx
import structlog

from pallas_agent_runtime import config, variables
from pallas_contract import names

log = structlog.get_logger(__name__)

TIMEOUT = 5.0
"""Seconds per provider (seed 001)."""
INTERVAL, INTERVAL_FAILED = 60.0, 30.0
"""Seconds between two checks of a provider, after a good and after a bad one."""
ANTHROPIC_BASE_URL = "https://api.anthropic.com"
ANTHROPIC_VERSION = "2023-06-01"
ANTHROPIC_MODEL = "claude-sonnet-4-5"
"""The model asked for when Anthropic is not the active provider (seed 001)."""

Name = Literal["anthropic", "openai"]


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider to check. `model` is empty where only access is verified; `key` is empty when there is none."""

    name: Name
    base_url: str
    key: str
    model: str = ""
    active: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check found; `reason` is empty when all is well. `checked` is a time of the injected clock."""

    reason: str
    checked: float

    @property
    def ok(self) -> bool:
        return not self.reason


def providers(data: Mapping[str, Any], default_model: str, environ: Mapping[str, str]) -> list[Provider]:
    """The active provider, and those with a key (seed 001, the table of Startup Preflight)."""
    prefix, _, model = default_model.partition(".")
    model = model.partition("?")[0]
    found: list[Provider] = []
    defaults: dict[Name, tuple[str, str]] = {
        "anthropic": ("ANTHROPIC_BASE_URL", ANTHROPIC_BASE_URL),
        "openai": (names.ENV_OPENAI_BASE_URL, config.OPENAI_BASE_URL),
    }
    for name, (variable, default) in defaults.items():
        section = data.get(name) or {}
        key = variables.expand(str(section.get("api_key") or environ.get(config.KEYS[name], "")), environ)
        key = "" if key == config.NO_KEY else key
        url = variables.expand(str(section.get("base_url") or ""), environ) or environ.get(variable) or default
        if key or name == prefix:
            found.append(Provider(name, url.rstrip("/"), key, model if name == prefix else "", name == prefix))
    return found


async def check(provider: Provider, http: httpx.AsyncClient) -> str:
    """The reason a provider cannot be used, empty when it can. One request, `TIMEOUT` in all; never raises."""
    try:
        async with asyncio.timeout(TIMEOUT):
            return await (_anthropic if provider.name == "anthropic" else _openai)(provider, http)
    except TimeoutError:
        return f"no answer in {TIMEOUT:g} s"
    except httpx.TransportError as error:
        return "connection refused" if isinstance(error, httpx.ConnectError) else "connection lost"
    except (httpx.InvalidURL, ValueError, LookupError, TypeError):
        return "gave no valid answer"


async def _anthropic(provider: Provider, http: httpx.AsyncClient) -> str:
    if not provider.key:
        return "no API key"
    model = provider.model or ANTHROPIC_MODEL
    headers = {"x-api-key": provider.key, "anthropic-version": ANTHROPIC_VERSION}
    reply = await http.get(f"{provider.base_url.removesuffix('/v1')}/v1/models/{model}", headers=headers)
    return f"model '{model}' not found" if reply.status_code == 404 else _refusal(reply)


async def _openai(provider: Provider, http: httpx.AsyncClient) -> str:
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


class Preflight:
    """The last outcome per provider."""

    def __init__(
        self, checked: Sequence[Provider], http: httpx.AsyncClient, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._providers, self._http, self._clock = checked, http, clock
        self.outcomes: dict[str, Outcome] = {}

    @property
    def active_failure(self) -> str:
        """`openai: model 'bad-model' not found` for the active provider; empty when it is well or not checked yet."""
        active = next((provider.name for provider in self._providers if provider.active), "")
        outcome = self.outcomes.get(active)
        return f"{active}: {outcome.reason}" if outcome and outcome.reason else ""

    def age(self, outcome: Outcome) -> float:
        return self._clock() - outcome.checked

    async def run(self) -> None:
        """Check every provider again and again, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for provider in self._providers:
                group.create_task(self._watch(provider))

    async def _watch(self, provider: Provider) -> None:
        while True:
            outcome = await self.refresh(provider)
            await asyncio.sleep(INTERVAL if outcome.ok else INTERVAL_FAILED)

    async def refresh(self, provider: Provider) -> Outcome:
        """Check one provider now; a change of its state is logged once."""
        reason = await check(provider, self._http)
        before = self.outcomes.get(provider.name)
        if before is None or before.reason != reason:
            event = log.warning if reason else log.info
            event("preflight", provider=provider.name, active=provider.active, reason=reason or "ok")
        self.outcomes[provider.name] = Outcome(reason, self._clock())
        return self.outcomes[provider.name]
