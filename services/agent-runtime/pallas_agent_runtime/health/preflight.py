"""Startup Preflight of seed 001: can the model providers be reached, is the key good, is the model there?

Warn-only, and repeated in the background, so that a provider that comes back is noticed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence, Set
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import structlog

from pallas_agent_runtime.config import fastagent_yaml, interpolation
from pallas_contract.fleet import fastagent, providers
from pallas_contract.fleet.providers import Api

log = structlog.get_logger(__name__)

INTERVAL = 60.0
"""Seconds between two checks of a provider that is well."""
SOON, LATE = 1.0, 30.0
"""Seconds after a first failure, doubled with each one that follows, and the most they become."""


@dataclass(frozen=True, slots=True)
class ProviderTarget:
    """One provider to check. `model` is empty where only access is verified; `key` is empty when there is none."""

    name: str
    api: Api
    base_url: str
    key: str = field(repr=False)
    model: str = ""
    active: bool = False
    named: bool = False
    """Whether a definition names a model of it itself."""
    needs_key: bool = False
    """Whether the address is the provider's own, where nobody gets in without a key."""

    @property
    def address(self) -> str:
        """Host and port, empty where the URL has none; a key may stand in the rest."""
        return "" if fastagent.flaw(self.base_url) else urlsplit(self.base_url).netloc.rpartition("@")[2]


type Check = Callable[[ProviderTarget], Awaitable[str]]
"""Gives the reason a provider cannot be used, empty when it can."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a check; `reason` is empty when all is well. `checked` is a time of the injected clock."""

    reason: str
    checked: float

    @property
    def ok(self) -> bool:
        return not self.reason


def targets(
    data: Mapping[str, Any], prefix: str, model: str, environ: Mapping[str, str], *, named: Set[str] = frozenset()
) -> list[ProviderTarget]:
    """List the active provider, and those with a key (seed 001, the table of Startup Preflight).

    `data` is the configuration for fast-agent; `prefix` and `model` are those of the model that turns run on; `named`
    are the prefixes of all models that definitions name.
    """
    checks: list[ProviderTarget] = []
    for provider in providers.CHECKED:
        active = prefix in provider.prefixes
        sections = (prefix, provider.name) if active else (provider.name,)
        key = fastagent_yaml.setting(data, sections, "api_key") or environ.get(provider.key_variable, "")
        key = "" if key == fastagent_yaml.NO_KEY else interpolation.expand(key, environ)
        url = (fastagent_yaml.url_of(data, provider, environ, sections) or provider.default_url).rstrip("/")
        if provider.api and (key or active):
            checks.append(
                ProviderTarget(
                    name=provider.name,
                    api=provider.api,
                    base_url=url,
                    key=key,
                    # The rest are options for fast-agent, which are in no provider's list.
                    model=model.partition("?")[0] if active else "",
                    active=active,
                    named=not named.isdisjoint(provider.prefixes),
                    needs_key=url == provider.default_url,
                )
            )
    return checks


def keyless(prefixes: Iterable[str], data: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return `hf: no API key` for the providers that agents run on without one; empty where each needs none.

    `prefixes` are those of their models. Of the providers that are checked, a server of one's own needs no key.
    """
    names = []
    for prefix in sorted(prefixes):
        provider = providers.find(prefix)
        url = fastagent_yaml.url_of(data, provider, environ, (prefix, provider.name)) if provider else ""
        if provider is None or not url or url.rstrip("/") == provider.default_url:
            names.append(prefix)
    return f"{', '.join(names)}: no API key" if names else ""


@asynccontextmanager
async def preflight(checked: Sequence[ProviderTarget], *, secretive: bool = False) -> AsyncIterator[Preflight]:
    """Yield the checks of an agent, with a client of their own where there is anything to ask.

    `secretive` keeps addresses to the log, as of an agent that asks its callers for a token.
    """
    if not checked:
        yield Preflight((), _never)
        return
    # An HTTP client and the certificates it trusts are 5 MB, which an agent without a provider need not hold.
    from pallas_agent_runtime.health.providers import check, client  # noqa: PLC0415

    async with client() as http:
        yield Preflight(checked, partial(check, http), secretive=secretive)


async def _never(provider: ProviderTarget) -> str:
    raise LookupError(provider.name)


class Preflight:
    """The last outcome per provider."""

    def __init__(
        self,
        checked: Sequence[ProviderTarget],
        check: Check,
        clock: Callable[[], float] = time.monotonic,
        *,
        secretive: bool = False,
    ) -> None:
        self._providers = checked
        self._check = check
        self._clock = clock
        self._secretive = secretive
        self.outcomes: dict[str, Outcome] = {}
        self._doubting = asyncio.Lock()
        self._doubted = asyncio.Event()
        self.checked = asyncio.Event()
        """Set once there is an outcome of the active provider, or none to wait for."""

    @property
    def unchecked(self) -> list[str]:
        """Name of the active provider as long as nothing is known of it."""
        return [entry.name for entry in self._providers if entry.active and entry.name not in self.outcomes]

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
        self._take_note()
        async with asyncio.TaskGroup() as group:
            for provider in self._providers:
                group.create_task(self._watch(provider))

    async def _watch(self, provider: ProviderTarget) -> None:
        wait = SOON
        while True:
            outcome = await self.refresh(provider)
            await self._rest(provider, INTERVAL if outcome.ok else wait)
            wait = SOON if outcome.ok else min(2 * wait, LATE)

    async def _rest(self, provider: ProviderTarget, seconds: float) -> None:
        if not provider.active:
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._doubted.wait()
        self._doubted.clear()

    async def doubt(self) -> None:
        """Check the active provider now, as a turn has failed on it, where the last check was well and not just now."""
        async with self._doubting:  # many turns may fail at once
            for provider in self._providers:
                outcome = self.outcomes.get(provider.name)
                if provider.active and outcome and outcome.ok and self.age(outcome) >= SOON:
                    outcome = await self.refresh(provider)
                    if not outcome.ok:  # from now on it is checked as one that is not well
                        self._doubted.set()

    async def refresh(self, provider: ProviderTarget) -> Outcome:
        """Check one provider now; a change of its state is logged once."""
        try:
            reason = await self._check(provider)
        except Exception as error:  # whatever a provider answers, the agent goes on and says that it is not well
            reason = f"the check failed by itself: {type(error).__name__}"
            log.exception("preflight_failed", provider=provider.name)
        public = reason.removesuffix(f" ({provider.address})") if self._secretive else reason
        before = self.outcomes.get(provider.name)
        if before is None or before.reason != public:
            used = provider.active or provider.named
            event = log.warning if reason and used else log.info
            note = {} if used else {"note": "its key is set, but no agent here runs on it"}
            event("preflight", provider=provider.name, reason=reason or "ok", **note)
        self.outcomes[provider.name] = Outcome(public, self._clock())
        self._take_note()
        return self.outcomes[provider.name]

    def _take_note(self) -> None:
        if not self.unchecked:
            self.checked.set()
