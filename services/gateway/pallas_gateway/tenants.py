"""Tenants of the gateway: who belongs to one, and what its callers may use together (seed 002, Rate Limiting).

The counts are this process's own and in memory, and beside them those of all replicas, where there are any. A caller
that is in no tenant has no limits.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Literal, Protocol

from pallas_contract.fleet.access_model import Tenant
from pallas_service.access.caller import Caller

WINDOW = 60.0
"""Seconds of the moving window that requests are counted in."""
_FREE = frozenset({"", "initialize", "logging/setLevel", "ping", "server/discover", "subscriptions/listen"})
"""Methods that no agent works for."""

Clock = Callable[[], float]


class Exceeded(Exception):
    """A limit that a request would break; `retry_after` is in whole seconds, at least 1."""

    def __init__(self, reason: Literal["rate", "concurrency"], text: str, retry_after: int) -> None:
        super().__init__(text)
        self.reason: Literal["rate", "concurrency"] = reason
        self.retry_after = retry_after


class Allowance:
    """The use that one tenant makes of the gateway. In no `WINDOW` are there more requests than it may make."""

    def __init__(self, name: str, tenant: Tenant, clock: Clock = time.monotonic) -> None:
        self.name = name
        self.timeout = tenant.timeout
        self.tenant = tenant
        self._clock = clock
        self._begun: deque[float] = deque()
        self._open = 0

    def used(self) -> Use:
        """Return the context of one request, which is counted when it begins, and under way until it ends."""
        return Use(self)

    def begin(self) -> None:
        """Count one request, which is under way until its `end`.

        Raises:
            Exceeded: it would be one too many; it is not counted.
        """
        now = self._clock()
        while self._begun and self._begun[0] <= now - WINDOW:
            self._begun.popleft()
        if self._open >= self.tenant.concurrent:
            raise too_many_at_once(self.name, self._open)
        if len(self._begun) >= self.tenant.per_minute:
            wait = max(1, math.ceil(self._begun[0] + WINDOW - now))
            raise too_many_in_a_minute(self.name, self.tenant, wait)
        self._begun.append(now)
        self._open += 1

    def end(self) -> None:
        """Note that a request is no longer under way."""
        self._open -= 1

    def uncounted(self) -> None:
        """Take back the newest of the requests that were counted: others have refused it."""
        if self._begun:
            self._begun.pop()


class Use:
    """One request of an allowance, for `with` and `async with`.

    Every call has one, and a generator would take longer than what is counted.
    """

    __slots__ = ("_allowance",)

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance

    def __enter__(self) -> None:
        self._allowance.begin()

    def __exit__(self, *failure: object) -> None:
        self._allowance.end()

    async def __aenter__(self) -> None:
        self._allowance.begin()

    async def __aexit__(self, *failure: object) -> None:
        self._allowance.end()


class Shared(Protocol):
    """What all replicas count together."""

    def used(self, name: str, tenant: Tenant) -> AbstractAsyncContextManager[None]:
        """Count one request of a tenant, which is under way until the context ends; nothing while nobody counts.

        Raises:
            Exceeded: it would be one too many; it is not counted.
        """


def too_many_at_once(name: str, count: int) -> Exceeded:
    """Return the refusal of a request beside `count` others of its tenant."""
    return Exceeded("concurrency", f"tenant `{name}` has {count} requests under way, and may not have more", 1)


def too_many_in_a_minute(name: str, tenant: Tenant, retry_after: int) -> Exceeded:
    """Return the refusal of a request beyond those of the last minute."""
    return Exceeded("rate", f"tenant `{name}` may make {tenant.per_minute} requests a minute", retry_after)


class Tenants:
    """The tenants of a fleet file, by their verified callers; `shared` counts for all replicas, where there are more.

    Each of them counts for itself too: where the shared counts are away, these are there.
    """

    def __init__(
        self,
        tenants: Mapping[str, Tenant] | None = None,
        clock: Clock = time.monotonic,
        shared: Shared | None = None,
    ) -> None:
        self._shared = shared
        self._by_caller: dict[str, Allowance] = {}
        self._by_subject: dict[str, Allowance] = {}
        self._by_name: dict[str, Allowance] = {}
        for name, tenant in (tenants or {}).items():
            allowance = self._by_name[name] = Allowance(name, tenant, clock)
            self._by_caller |= dict.fromkeys(tenant.callers, allowance)
            self._by_subject |= dict.fromkeys(tenant.subjects, allowance)

    def using(self, allowance: Allowance) -> AbstractAsyncContextManager[None]:
        """Count one request, which is under way until the context ends.

        Raises:
            Exceeded: it would be one too many; it is not counted.
        """
        return allowance.used() if self._shared is None else self._used_by_all(allowance, self._shared)

    @asynccontextmanager
    async def _used_by_all(self, allowance: Allowance, shared: Shared) -> AsyncIterator[None]:
        async with allowance.used(), AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(shared.used(allowance.name, allowance.tenant))
            except Exceeded:
                allowance.uncounted()
                raise
            yield

    def named(self, tenant: str) -> Allowance | None:
        """Return the allowance of a tenant that a client names itself: for where nobody is verified."""
        return self._by_name.get(tenant)

    def only(self) -> Allowance | None:
        """Return the allowance of the one tenant there is: for where nobody is verified, nor names one."""
        return next(iter(self._by_name.values())) if len(self._by_name) == 1 else None

    def of(self, caller: Caller | None) -> Allowance | None:
        """Return the allowance of a verified caller; None where nobody is verified, or in no tenant."""
        if caller is None:
            return None
        # an issuer may give out any `sub`, that of a static caller too
        return (self._by_caller if caller.issuer is None else self._by_subject).get(caller.name)


def is_counted(method: str) -> bool:
    """Return whether a request of `method` makes somebody work."""
    return not (method in _FREE or method.startswith("notifications/") or method.endswith("/list"))
