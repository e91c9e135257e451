"""This machine, as far as the doctor asks it: programs, ports, host names, the registry. Its only place with I/O."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pallas_contract.launch import listeners
from pallas_contract.launch.listeners import Listener
from pallas_gen.comparison import side
from pallas_gen.running import tool

_DNS_PATIENCE = 10.0
"""Seconds for all host names: twice what a resolver waits for one server."""


def _refusal(host: str, port: int) -> str:
    """Return why nobody could listen on an address now; empty where somebody could."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as listener:
            # connections of an earlier owner that linger are in nobody's way
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def _unresolved(hosts: Collection[str]) -> Mapping[str, str]:
    """Return the host names that have no address here, each with the resolver's reason."""
    return asyncio.run(_look_up(hosts))


async def _look_up(hosts: Collection[str]) -> dict[str, str]:
    async def reason(host: str) -> str:
        try:
            async with asyncio.timeout(_DNS_PATIENCE):
                await asyncio.get_running_loop().getaddrinfo(host, 443, type=socket.SOCK_STREAM)
        except TimeoutError:
            return f"no answer in {_DNS_PATIENCE:g} s"
        except (OSError, UnicodeError) as error:
            return (getattr(error, "strerror", None) or str(error)).lower()
        return ""

    reasons = await asyncio.gather(*map(reason, hosts))
    return {host: text for host, text in zip(hosts, reasons, strict=True) if text}


@dataclass(frozen=True, slots=True)
class Machine:
    """The questions to this machine, each for tests to replace."""

    run: tool.Run = tool.run
    refusal: Callable[[str, int], str] = _refusal
    listeners: Callable[[int], Sequence[Listener]] = listeners.listeners
    unresolved: Callable[[Collection[str]], Mapping[str, str]] = _unresolved
    document: Callable[[str], Mapping[str, Any]] = side.document
    """The document of the registry at a URL; it raises `side.NoRegistry`."""
    services: Callable[[str], Mapping[str, Any]] = side.services
    """The document of its services, which says whose it is; it raises the same."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
