"""Startup Preflight of seed 001: can the model providers be reached, is the key good, is the model there?

Warn-only, and repeated in the background, so that a provider that comes back is noticed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import structlog

from pallas_agent_runtime.config import fastagent_yaml, interpolation

log = structlog.get_logger(__name__)

INTERVAL = 60.0
"""Seconds between two checks of a provider that is well."""
SOON, LATE = 1.0, 30.0
"""Seconds after a first failure, doubled with each one that follows, and the most they become."""
ANTHROPIC_BASE_URL = "https://api.anthropic.com"

Name = Literal["anthropic", "openai"]


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider to check. `model` is empty where only access is verified; `key` is empty when there is none."""

    name: Name
    base_url: str
    key: str
    model: str = ""
    active: bool = False


type Check = Callable[[Provider], Awaitable[str]]
"""Gives the reason a provider cannot be used, empty when it can."""


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
    defaults: dict[Name, str] = {"anthropic": ANTHROPIC_BASE_URL, "openai": fastagent_yaml.OPENAI_BASE_URL}
    for name, default in defaults.items():
        section = data.get(name) or {}
        key = interpolation.expand(str(section.get("api_key") or environ.get(fastagent_yaml.KEYS[name], "")), environ)
        key = "" if key == fastagent_yaml.NO_KEY else key
        url = fastagent_yaml.url_of(data, name, environ) or default
        if key or name == prefix:
            found.append(Provider(name, url.rstrip("/"), key, model if name == prefix else "", name == prefix))
    return found


@asynccontextmanager
async def preflight(checked: Sequence[Provider]) -> AsyncIterator[Preflight]:
    """The checks of an agent, with a client of their own where there is anything to ask."""
    if not checked:
        yield Preflight((), _never)
        return
    # An HTTP client and the certificates it trusts are 5 MB, which an agent without a provider need not hold.
    from pallas_agent_runtime.health import provider_check  # noqa: PLC0415

    async with provider_check.client() as http:
        yield Preflight(checked, partial(provider_check.check, http))


async def _never(provider: Provider) -> str:
    raise LookupError(provider.name)


class Preflight:
    """The last outcome per provider."""

    def __init__(self, checked: Sequence[Provider], check: Check, clock: Callable[[], float] = time.monotonic) -> None:
        self._providers, self._check, self._clock = checked, check, clock
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
        wait = SOON
        while True:
            outcome = await self.refresh(provider)
            await asyncio.sleep(INTERVAL if outcome.ok else wait)
            wait = SOON if outcome.ok else min(2 * wait, LATE)

    async def refresh(self, provider: Provider) -> Outcome:
        """Check one provider now; a change of its state is logged once."""
        reason = await self._check(provider)
        before = self.outcomes.get(provider.name)
        if before is None or before.reason != reason:
            event = log.warning if reason else log.info
            event("preflight", provider=provider.name, active=provider.active, reason=reason or "ok")
        self.outcomes[provider.name] = Outcome(reason, self._clock())
        return self.outcomes[provider.name]
