"""`get_health` of seed 000 section 2, answered from a view that is refreshed in the background."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import urlsplit

import structlog

from pallas_contract.documents import reason
from pallas_contract.documents.health import Health, Status
from pallas_contract.documents.reason import Reason, unauthorized
from pallas_contract.probe import probe
from pallas_contract.probe.probe import Result, Target

log = structlog.get_logger(__name__)

INTERVAL = 5.0
"""Seconds between two rounds of probes."""

LISTING = 60.0
"""Seconds after which a server that is well is asked for its tools and prompts once more, beyond the handshake."""
UNUSABLE = 60.0
"""Seconds that a failure which no probe sees counts, where nobody tries again: it may be mended."""

HANGING = 1.0
"""Seconds after which a probe that found nothing is taken for a server that hangs."""

Probe = Callable[..., Awaitable[Result]]
"""The contract's `probe(target, *, era, timeout)`."""


@dataclass(frozen=True, slots=True)
class LastProbe:
    """The last probe of one server; `checked` is a time of the injected clock."""

    result: Result
    checked: float


class Downstream:
    """The last probes of the MCP servers and sub-agents this agent depends on."""

    def __init__(
        self,
        targets: Mapping[str, Target],
        probe_one: Probe = probe.probe,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._targets = targets
        self._probe = probe_one
        self._clock = clock
        self._sleep = sleep
        self.last_probes: dict[str, LastProbe] = {}
        self._listed: dict[str, float] = {}
        """When the tools of each server were last listed without a failure, by the injected clock."""
        self._unusable: dict[str, tuple[str, float]] = {}
        """Why a turn could not connect to a server whose probes are good, and when."""
        self._refused: dict[str, tuple[int, float]] = {}
        """The status with which a server whose probes are good refused a call, and when."""
        self._not_started: dict[str, str] = {}
        """Reasons by name of the servers that the agent starts itself and that are not there."""
        self.refreshed = datetime.now(UTC)
        self.checked = asyncio.Event()
        """Set once the first round is over."""

    def unchecked(self) -> list[str]:
        """Names of the servers that no probe has asked yet, sorted."""
        return sorted(self._targets.keys() - self.last_probes.keys())

    def unreachable(self) -> list[str]:
        """Names of the servers whose last probe failed, sorted; one not probed yet is not among them."""
        return sorted(name for name, last in self.last_probes.items() if not last.result.reachable)

    def unreachable_why(self) -> dict[str, str]:
        """Return `unreachable` by name, with a reason for each that the agent starts itself or that shakes hands."""
        return {name: self._not_started.get(name, "") or self._why(name) for name in self.unreachable()}

    def _why(self, name: str) -> str:
        result = self.last_probes[name].result
        return result.reason.message if result.failed else ""

    def refusing(self, names: Set[str]) -> list[str]:
        """Those of `names` that want other credentials than the ones they were shown, sorted."""
        unauthenticated = {name for name, last in self.last_probes.items() if last.result.state == "unauthenticated"}
        return sorted(names & unauthenticated)

    def worth_trying(self, name: str) -> bool:
        """Return False only for a server that let the last probe wait: one that refused may be back, at little cost."""
        last = self.last_probes.get(name)
        return last is None or last.result.reachable or last.result.latency < HANGING

    def promising(self, names: Iterable[str]) -> list[str]:
        """Those of `names` that are worth trying, first the ones whose last probe was good, each part sorted."""
        good = self.last_probes.keys() - self.unreachable()
        return sorted(filter(self.worth_trying, names), key=lambda name: (name not in good, name))

    def age(self, last: LastProbe) -> float:
        return self._clock() - last.checked

    async def run(self) -> None:
        """Refresh again and again, until cancelled."""
        while True:
            await self.refresh()
            await self._sleep(INTERVAL)

    async def refresh(self) -> None:
        """Probe all servers side by side, each within the 3 seconds of the seed.

        One that was there and does not answer is asked once more before it is called unreachable: one lost answer, or a
        moment in which it lets nobody in, changes nothing.
        """
        rounds = [self._refresh(name, target) for name, target in self._targets.items()]
        outcomes = await asyncio.gather(*rounds, return_exceptions=True)
        for name, error in zip(self._targets, outcomes, strict=True):
            if isinstance(error, Exception):  # a defect of ours: no answer ends the agent, or leaves a badge green
                result = _failed(error)
                before = self.last_probes.get(name)
                if before is None or before.result.reason != result.reason:
                    log.error("downstream_failed", server=name, exc_info=error)
                self.last_probes[name] = LastProbe(result, self._clock())
        self.refreshed = datetime.now(UTC)
        self.checked.set()

    def program(self, name: str, reason: str) -> None:
        """Take note of a server that the agent starts itself, which no probe reaches.

        `reason` is empty once it is there.
        """
        self._not_started[name] = reason
        result = Result("error", Reason("ConnectionFailed", reason)) if reason else Result("ok")
        before = self.last_probes.get(name)
        if before is None or before.result.reason != result.reason:
            self._log(name, result)
        self.last_probes[name] = LastProbe(result, self._clock())

    def attached(self, name: str, reason: str | None) -> None:
        """Take note that a turn has connected to a server, or could not: then the next probe asks all that turns ask.

        `reason` is None where it has, and has text where no probe would see why not.
        """
        if reason is None:
            self._unusable.pop(name, None)
            return
        self._listed.pop(name, None)
        if reason:
            self._unusable[name] = (reason, self._clock())

    def answered(self, name: str, status: int) -> None:
        """Take note of the HTTP status of a server's answer to a call: some list their tools for everybody."""
        if status in (401, 403):
            self._refused[name] = (status, self._clock())
        elif status < 300:
            self._refused.pop(name, None)

    async def _refresh(self, name: str, target: Target) -> None:
        before = self.last_probes.get(name)
        era = before.result.era if before else ""
        if not self._is_listing_due(name, before):
            target = replace(target, lists=0.0)
        result = await self._ask(target, era, probe.TIMEOUT)
        if not result.reachable and before and before.result.reachable:
            await self._sleep(probe.PAUSE)
            again = await self._ask(target, era, probe.patience(before.result))
            result = again if again.reachable else result
        if result.state == "ok":
            if target.lists:
                self._listed[name] = self._clock()
            result = self._as_used(name, result)
        if before is None or _kind(before.result) != _kind(result):
            self._log(name, result)
        self.last_probes[name] = LastProbe(result, self._clock())

    def _is_listing_due(self, name: str, before: LastProbe | None) -> bool:
        """Return whether to ask for tools too: at first, while it is not well, after a failure, and now and then."""
        if before is None or before.result.state != "ok" or name not in self._listed:
            return True
        return self._clock() - self._listed[name] >= LISTING

    def _as_used(self, name: str, result: Result) -> Result:
        """Return a good result, or why turns cannot use the server all the same."""
        if why := self._lately(self._unusable, name):
            reason = Reason("ConnectionFailed", why)
            # it is no server that hangs, however long its good answer took: turns go on to try it
            return replace(result, state="error", reason=reason, latency=0.0, failed="tools/list")
        if status := self._lately(self._refused, name):
            wanted = unauthorized(status)
            return replace(result, state="unauthenticated", reason=wanted, failed="tools/call", status=status)
        return result

    def _lately[T](self, notes: dict[str, tuple[T, float]], name: str) -> T | None:
        """Return what was noted of a server within `UNUSABLE`, and forget what is older."""
        if name in notes and self._clock() - notes[name][1] >= UNUSABLE:
            del notes[name]
        return notes[name][0] if name in notes else None

    def _log(self, name: str, result: Result) -> None:
        event = log.info if result.reachable else log.warning
        target = self._targets.get(name)
        address = {"address": _address(target.url)} if target else {}  # a program has none
        event("downstream", server=name, state=result.state, reason=result.reason.message, **address)

    async def _ask(self, target: Target, era: str, timeout: float) -> Result:
        try:
            return await self._probe(target, era=era, timeout=timeout)
        except Exception as error:  # a header or URL that cannot even be sent; the others must still be probed
            return _failed(error)


def _address(url: str) -> str:
    """Return host and port of a URL; a key may stand in the rest."""
    return urlsplit(url).netloc.rpartition("@")[2]


def _kind(result: Result) -> tuple[bool, bool]:
    """Return what the log tells a change of."""
    return result.reachable, result.state == "unauthenticated"


def _failed(error: Exception) -> Result:
    """Return what is known of a server whose probe raised `error`; its text may have a secret in it."""
    return Result("error", Reason("ProbeFailed", type(error).__name__))


def combine(
    unreachable: Mapping[str, str],
    llm: str,
    failure: str,
    moment: datetime,
    *,
    refusing: Sequence[str] = (),
    unchecked: Sequence[str] = (),
    access: str = "",
    conversations: str = "",
) -> Health:
    """Return the sources as one status (seed 000, Result mapping; seed 001, Response Format). Pure.

    `llm` is the active provider's failure, `failure` why the agent itself cannot process requests, `refusing` who does
    not take its token, `unchecked` of whom nothing is known yet, `access` why it cannot check those of its callers,
    `conversations` why it cannot keep them. `unreachable` has reasons by server, empty where the name says it all.
    """
    parts = [
        f"{reason.CANNOT_PROCESS}{failure}" if failure else "",
        f"{reason.UNREACHABLE}{', '.join(unreachable)}" if unreachable else "",
        *(f"{name}: {why}" for name, why in unreachable.items() if why),
        f"{reason.REFUSED}{', '.join(refusing)}" if refusing else "",
        f"{reason.UNCHECKED}{', '.join(unchecked)}" if unchecked else "",
        f"{reason.PROVIDER}{llm}" if llm else "",
        f"{reason.ACCESS}{access}" if access else "",
        f"{reason.CONVERSATIONS}not kept: {conversations}" if conversations else "",
    ]
    message = reason.SEPARATOR.join(filter(None, parts))
    status: Status = "error" if failure else "degraded" if message else "ok"
    return Health(status, moment, message)
