"""Agents that registered themselves, as the registry's catalogue has them now (docs/registration.md).

What an agent says of itself could send the gateway anywhere. So it goes where `registry.registration.reach` allows, and
each address is checked when it is connected to: a name that changes in between changes nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from pallas_contract.documents.server_json import REGISTRATION_META
from pallas_gateway.data_plane import upstream
from pallas_gateway.own.failures import Failed
from pallas_gateway.own.peers.peer import Peer
from pallas_gateway.policy.route import Route
from pallas_service.http.reach import Reach

FRESH = 5.0
"""Seconds that an answer of the registry is believed."""
SECONDS = 5.0
"""Patience with the registry."""
MOST = 1 << 20
"""Bytes of the registry's answer about one agent."""
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]*|[0-9]+)")
"""Last label of a host that a resolver may read as an IPv4 address (WHATWG URL, ends-in-a-number checker)."""

Clock = Callable[[], float]


class ReachResolver(AbstractResolver):
    """The resolver of a client: of a name only the addresses that `reach` allows."""

    def __init__(self, reach: Reach, inner: AbstractResolver | None = None) -> None:
        self._reach = reach
        self._inner = inner or aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of `host`.

        Raises:
            OSError: there are none, or `OutOfReach`: none that may be connected to.
        """
        found = await self._inner.resolve(host, port, family)
        allowed = [entry for entry in found if self._reach.address(ip_address(entry["host"]), host)]
        if not allowed:
            raise upstream.OutOfReach(host)
        return allowed

    async def close(self) -> None:
        await self._inner.close()


def client(reach: Reach, resolver: AbstractResolver | None = None) -> aiohttp.ClientSession:
    """Return the client for calls to registered agents; it keeps no address longer than a look at the registry."""
    return upstream.session(resolver=ReachResolver(reach, resolver))


@dataclass(frozen=True, slots=True)
class Directory:
    """Where registered agents are looked up: in the catalogue at `url`, host name -> name there of those led to."""

    url: str
    names: Mapping[str, str]


class Registered:
    """The registered agents that the gateway leads to. `client` asks the registry."""

    def __init__(
        self, directory: Directory, reach: Reach, client: aiohttp.ClientSession, clock: Clock = time.monotonic
    ) -> None:
        self._directory = directory
        self._reach = reach
        self._client = client
        self._clock = clock
        self._known: dict[str, tuple[float, str]] = {}

    def __contains__(self, host: object) -> bool:
        return host in self._directory.names

    async def find(self, host: str) -> Peer:
        """Return the registered agent with this host name, where it is now.

        Raises:
            Failed: it is not registered, or nowhere that the gateway may go, or the registry does not answer.
        """
        seen, url = self._known.get(host, (0.0, ""))
        if not url or self._clock() - seen > FRESH:
            self._known.pop(host, None)
            url = self._checked(host, await self._registered_url(host))
            self._known[host] = (self._clock(), url)
        return Peer("agent", host, Route(url))

    async def _registered_url(self, host: str) -> str:
        """Return the URL with which an agent is registered at present."""
        name = self._directory.names[host].replace("/", "%2F")
        at = URL(f"{self._directory.url}/v0.1/servers/{name}/versions/latest", encoded=True)
        try:
            async with asyncio.timeout(SECONDS), self._client.get(at, allow_redirects=False) as response:
                status, body = response.status, bytearray()
                async for piece in response.content.iter_any():
                    body += piece
                    if len(body) > MOST:
                        raise Failed("unreachable", f"the registry says more than {MOST} bytes of `{host}`")
        except upstream.FAILURES:
            raise Failed("unreachable", f"the registry does not say where `{host}` is: it gives no answer") from None
        if status == 404:
            raise Failed("unreachable", f"agent `{host}` is not registered at present")
        entry = _object(body) if status == 200 else {}
        if REGISTRATION_META not in _part(entry, "_meta"):
            raise Failed("unreachable", f"the registry does not say where `{host}` is")
        remotes = _part(entry, "server").get("remotes")
        url = remotes[0].get("url") if isinstance(remotes, list) and remotes and isinstance(remotes[0], dict) else None
        if not isinstance(url, str):
            raise Failed("unreachable", f"agent `{host}` has registered no URL")
        return url

    def _checked(self, host: str, written: str) -> str:
        """Return a URL as the client reads it, whose host may be asked as far as that is known before a look-up."""
        with suppress(ValueError):
            url = URL(written)
            if url.scheme in ("http", "https") and url.host and not url.user and not _is_disguised(url.host):
                read = str(url.with_fragment(None))
                if self._reach.host(read):
                    return read
        raise Failed("unreachable", f"agent `{host}` has a URL that `registry.registration.reach` does not allow")


def _is_disguised(host: str) -> bool:
    """Return whether a host is no address as Python reads it, and one for some resolvers (`0x7f.1`, `0177.0.0.1`)."""
    try:
        ip_address(host)
    except ValueError:
        return bool(_NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]))
    return False


def _object(body: bytes | bytearray) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _part(entry: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = entry.get(key)
    return value if isinstance(value, dict) else {}
