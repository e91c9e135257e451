"""`pallas status`: every agent and service with its state, its reason and its URL, as the registry has them."""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pallas_cli.running import locate
from pallas_cli.running.catalogue import Member, NoRegistry
from pallas_cli.running.locate import Registry
from pallas_contract.problems import printable

OK = 0
WORLD = 1
WELL = frozenset({"ok", "degraded", "not probed"})
"""States in which a member does its work; a service that nobody can ask is no trouble."""
_COLOURS = {"ok": 32, "degraded": 33, "starting": 33, "error": 31}
"""Codes of ECMA-48 by state."""
_CLEAR = "\x1b[H\x1b[J"


def run(options: Namespace) -> int:
    """Print the fleet's state once, or again with each change; returns 1 where a member is not well.

    Raises:
        NoRegistry: nobody answers.
    """
    with locate.registry(options) as registry:
        if options.watch:
            return _watch(registry, options)
        members = locate.members(registry)
        if not options.quiet:
            sys.stdout.write(_shown(registry.url, members, options))
        return OK if well(members) else WORLD


def well(members: Iterable[Member]) -> bool:
    """Return whether every member does its work."""
    return all(member.status in WELL for member in members)


def text(members: Sequence[Member], *, coloured: bool = False) -> str:
    """Return a table: name, state, URL and, where there is one, the message."""
    rows = [("NAME", "STATE", "URL")]
    rows += [(member.name, member.status, member.url or f"({member.kind})") for member in members]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    messages = ["", *(printable(member.message) for member in members)]
    return "".join(
        f"{name:<{widths[0]}}  {_state(state, widths[1], coloured)}  {url:<{widths[2]}}  {message}".rstrip() + "\n"
        for (name, state, url), message in zip(rows, messages, strict=True)
    )


def document(url: str, members: Sequence[Member]) -> Mapping[str, Any]:
    """Return the same as JSON has it: the registry's URL, `agents` and `services`."""
    agents = [_entry(member) for member in members if member.kind == "agent"]
    services = [_entry(member) for member in members if member.kind == "service"]
    return {"registry": url, "agents": agents, "services": services}


def _entry(member: Member) -> dict[str, str]:
    entry = asdict(member)
    del entry["kind"]
    return {key: value for key, value in entry.items() if value}


def _shown(url: str, members: Sequence[Member], options: Namespace) -> str:
    if options.format == "json":
        return f"{json.dumps(document(url, members), ensure_ascii=False)}\n"
    return text(members, coloured=sys.stdout.isatty() and not os.environ.get("NO_COLOR"))


def _state(state: str, width: int, coloured: bool) -> str:
    padded = f"{state:<{width}}"
    return f"\x1b[{_COLOURS[state]}m{padded}\x1b[0m" if coloured and state in _COLOURS else padded


def _watch(registry: Registry, options: Namespace) -> int:
    """Print the state with each change, in the place of the last one on a terminal, until Ctrl-C."""
    for block in changes(_blocks(registry, options)):
        sys.stdout.write(f"{_CLEAR if sys.stdout.isatty() else ''}{block}")
        sys.stdout.flush()
    return OK


def changes(blocks: Iterable[str]) -> Iterator[str]:
    """Yield each of `blocks` that differs from the one before."""
    last = ""
    for block in blocks:
        if block != last:
            yield block
        last = block


def _blocks(registry: Registry, options: Namespace) -> Iterator[str]:
    trusted = False
    while True:
        try:
            block = _shown(registry.url, locate.members(registry, trusted=trusted), options)
            trusted = True
        except NoRegistry as error:  # it may come back, and be another fleet's
            block = f"{error}\n"
            trusted = False
        yield block
        time.sleep(options.interval)
