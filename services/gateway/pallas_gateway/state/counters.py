"""Valkey as the counts of several gateways: what a tenant uses at all of them together, decided in one script there.

While it is away each replica counts for itself, and says so; what is under way is told to it once it is back.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import structlog

from pallas_contract.fleet.access_model import Tenant
from pallas_gateway.tenants import WINDOW, too_many_at_once, too_many_in_a_minute

SECONDS = 1.0
"""Seconds that an answer may take: a call waits for it."""
RETRY = 1.0
"""Seconds after which it is asked again, whether it was there or not."""
LEASE = 30.0
"""Seconds for which a request counts as under way; renewed all along, so that those of a replica that died end."""
RENEW = 10.0
CONNECTIONS = 32
"""Connections of one gateway."""
_TAKE = """
local now = tonumber(ARGV[6])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) + tonumber(time[2]) / 1000000
end
local window, lease = tonumber(ARGV[4]), tonumber(ARGV[5])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local open = redis.call('ZCARD', KEYS[2])
if open >= tonumber(ARGV[3]) then return {'concurrency', tostring(open)} end
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
  local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  return {'rate', tostring(tonumber(first[2]) + window - now)}
end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZADD', KEYS[2], now + lease, ARGV[1])
redis.call('PEXPIRE', KEYS[1], math.ceil(window * 1000))
redis.call('PEXPIRE', KEYS[2], math.ceil(lease * 1000))
return {'', ''}
"""
"""KEYS: requests by their beginning, and by the end of their lease. ARGV: id, a minute, at once, window, lease, now.

`now` is empty but in tests: the time is that of the server, which is one for all replicas.
"""
_RENEW = """
local time = redis.call('TIME')
local until_ = tonumber(time[1]) + tonumber(time[2]) / 1000000 + tonumber(ARGV[1])
for index = 2, #ARGV do redis.call('ZADD', KEYS[1], until_, ARGV[index]) end
redis.call('PEXPIRE', KEYS[1], math.ceil(tonumber(ARGV[1]) * 1000))
"""
log = structlog.get_logger(__name__)


class Counters:
    """The counts at `url` of the fleet called `fleet`.

    `seconds` is how long an answer may take, `window` the moving one of requests, `clock` stands for the server's.
    """

    def __init__(
        self,
        url: str,
        fleet: str,
        *,
        seconds: float = SECONDS,
        window: float = WINDOW,
        clock: Callable[[], float] | None = None,
    ) -> None:
        from valkey.asyncio import BlockingConnectionPool, Valkey  # noqa: PLC0415 - for gateways with replicas

        pool = BlockingConnectionPool.from_url(
            _scheme(url),
            max_connections=CONNECTIONS,
            timeout=seconds,
            socket_timeout=seconds,
            socket_connect_timeout=seconds,
        )
        self._client: Any = Valkey(connection_pool=pool)
        self._take: Any = self._client.register_script(_TAKE)
        self._renew: Any = self._client.register_script(_RENEW)
        self._fleet = hashlib.sha256(fleet.encode()).hexdigest()[:16]
        self._window = window
        self._clock = clock
        self._open: dict[str, set[str]] = {}
        self.problem = ""
        """Why each replica counts for itself at present; empty where all count together."""

    @asynccontextmanager
    async def used(self, name: str, tenant: Tenant) -> AsyncIterator[None]:
        """Count one request of a tenant, which is under way until the context ends; nothing while nobody counts.

        Raises:
            Exceeded: it would be one too many; it is not counted.
        """
        id_ = secrets.token_hex(12)
        ids = self._open.setdefault(name, set())
        try:
            if not self.problem:
                await self._taken(id_, name, tenant)
            ids.add(id_)  # not before: one that is refused must not be renewed
            yield
        finally:
            ids.discard(id_)
            if not self.problem:
                await self._returned(id_, name)

    async def watch(self) -> None:
        """Renew what is under way, and ask a server that is away whether it is back; for ever."""
        waited = 0.0
        while True:
            await asyncio.sleep(RETRY)
            waited += RETRY
            if self.problem or waited >= RENEW:
                waited = 0.0
                with suppress(Exception):  # it is noted, and the next round follows
                    await self.renew()

    async def renew(self) -> None:
        """Tell the server of all requests that are under way here; then it is there, or `problem` says why not."""
        async with _Noting(self):
            await self._client.ping()
            renewed = {name: frozenset(ids) for name, ids in self._open.items() if ids}
            for name, ids in renewed.items():
                await self._renew(keys=[self._keys(name)[1]], args=[LEASE, *sorted(ids)])
            self.noted("")
            # what ended meanwhile may have been taken out before it was renewed
            for name, ids in renewed.items():
                if ended := ids - self._open[name]:
                    await self._client.zrem(self._keys(name)[1], *ended)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()
        await self._client.connection_pool.disconnect()

    async def _taken(self, id_: str, name: str, tenant: Tenant) -> None:
        reason = detail = b""
        now = "" if self._clock is None else repr(self._clock())
        limits = [tenant.per_minute, tenant.concurrent, self._window, LEASE, now]
        async with _Noting(self):
            reason, detail = await self._take(keys=self._keys(name), args=[id_, *limits])
        if reason == b"concurrency":
            raise too_many_at_once(name, int(detail))
        if reason == b"rate":
            raise too_many_in_a_minute(name, tenant, max(1, math.ceil(float(detail))))

    async def _returned(self, id_: str, name: str) -> None:
        async with _Noting(self):
            await self._client.zrem(self._keys(name)[1], id_)

    def noted(self, problem: str) -> None:
        """Note that all count together again, or why each replica counts for itself."""
        if problem and not self.problem:
            log.error("the counters cannot be used: each replica counts for itself", reason=problem)
        elif self.problem and not problem:
            log.info("the counters are back")
        self.problem = f"each replica counts its limits for itself: {problem}" if problem else ""

    def _keys(self, name: str) -> list[str]:
        # the braces: of a cluster one node has both
        return [f"pallas:{{{self._fleet}:{name}}}:{kind}" for kind in ("begun", "open")]


class _Noting:
    """What is asked of the server: trouble with it, whatever it answers, is noted, and no trouble of the call."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception):
            return False
        self._counters.noted(f"Valkey: {type(error).__name__}")
        return True


def _scheme(url: str) -> str:
    """Return the URL as the client knows it, whose name for the protocol is one of two."""
    scheme, colon, rest = url.partition(":")
    return {"redis": "valkey", "rediss": "valkeys"}.get(scheme, scheme) + colon + rest
