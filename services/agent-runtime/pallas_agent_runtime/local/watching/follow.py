"""The files of a running fleet, looked at twice a second; an edit that is wrong changes nothing that runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from pallas_agent_runtime.local import guardian, ports
from pallas_agent_runtime.local.ports import HeldPort, Port
from pallas_agent_runtime.local.programs import Member
from pallas_agent_runtime.local.restarts import Level
from pallas_agent_runtime.local.watching import changes, snapshot
from pallas_agent_runtime.local.watching.changes import Changes
from pallas_agent_runtime.local.watching.snapshot import Snapshot
from pallas_contract.problems import Refused
from pallas_service.http import sockets

INTERVAL = 0.5
"""Seconds between two looks. What has changed is taken over when it looks the same twice: editors write in steps."""
_KEPT = "what runs goes on as it was"

Check = Callable[[Member], Awaitable[str]]
"""Loads the code of an agent without serving it: empty, or the problems."""


class NotTaken(Exception):
    """An edit that would not run; the text is made of lines for people."""


class Fleet(Protocol):
    """The supervisor as it is needed here."""

    def add(self, member: Member, port: Port) -> None:
        """Start a member."""

    async def remove(self, name: str) -> None:
        """End a member, and return when it has ended."""

    def report(self, text: str, level: Level = "info") -> None:
        """Tell people."""


class Follower:
    """The running fleet and its files."""

    def __init__(
        self,
        config: Path,
        environ: Mapping[str, str],
        fleet: Fleet,
        held: Mapping[str, Port],
        *,
        check: Check,
        take: Callable[[Path, Mapping[str, str]], Snapshot] = snapshot.take,
        hold: Callable[[Member], Port] = HeldPort,
    ) -> None:
        """Take the fleet as it was started: `held` are the ports of its members."""
        self._config = config
        self._environ = environ
        self._fleet = fleet
        self._ports = dict(held)
        self._check = check
        self._take = take
        self._hold = hold

    async def run(self) -> None:
        """Follow the files until cancelled."""
        current = await asyncio.to_thread(self._take, self._config, self._environ)
        paths = current.paths
        done = last = await self._stamps(paths)
        while True:
            await asyncio.sleep(INTERVAL)
            now = await self._stamps(paths)
            if now == done or now != last:
                last = now
                continue
            try:
                new = await asyncio.to_thread(self._take, self._config, self._environ)
                paths |= new.paths  # also of an edit that is not taken over: it is mended in one of these
                if not await self._become(current, new, now):
                    continue
                current, paths = new, new.paths
            except Refused as refused:
                self._refuse("\n".join(map(str, refused.problems)))
            except NotTaken as refusal:
                self._refuse(str(refusal))
            except Exception as error:  # whatever it is, the fleet goes on
                self._refuse(f"{type(error).__name__}: {error}")
            # As it was before: what has changed since then is the next edit.
            done = last = {**await self._stamps(paths), **{path: now[path] for path in paths & now.keys()}}

    async def _become(self, current: Snapshot, new: Snapshot, stamps: Mapping[str, object]) -> bool:
        """Do what lies between two snapshots; return False where the files are no longer as they were in `stamps`.

        Raises:
            NotTaken: an agent would not start, or a port is somebody else's; then nothing has been done.
        """
        between = changes.between(current, new)
        if not between:
            return True
        await self._try(new.members[name] for name in (*between.come, *between.restarted))
        if await self._stamps(frozenset(stamps)) != stamps:  # edited while it was tried: that edit is the one to try
            return False
        fresh = self._reserve(current, new, between)
        self._fleet.report(f"{self._config.name} and its files have changed: {between}")
        for name in reversed([*between.restarted, *between.gone]):
            await self._fleet.remove(name)
        for name in between.gone:
            self._ports.pop(name).close()
        for name in between.come:  # a port that one member leaves to another is free only now
            self._ports[name] = fresh.get(name) or self._hold(new.members[name])
        for name in new.members:
            if name in between.come or name in between.restarted:
                self._fleet.add(new.members[name], self._ports[name])
        return True

    def _reserve(self, current: Snapshot, new: Snapshot, between: Changes) -> dict[str, Port]:
        """Return the ports of those who come, as far as no member has them now.

        Raises:
            NotTaken: another program has one.
        """
        ours = {ports.address(member) for member in current.members.values()}
        fresh: dict[str, Port] = {}
        try:
            for name in between.come:
                if ports.address(new.members[name]) not in ours:
                    fresh[name] = self._hold(new.members[name])
        except sockets.CannotListen as failure:
            for port in fresh.values():
                port.close()
            raise NotTaken(f"{name} {failure}") from None
        return fresh

    async def _try(self, members: Iterable[Member]) -> None:
        """Load the code of each agent among `members`.

        Raises:
            NotTaken: with the problems of all.
        """
        slots = asyncio.Semaphore(os.process_cpu_count() or 1)

        async def tried(member: Member) -> str:
            async with slots:
                return await self._check(member)

        agents = [member for member in members if member.kind == "agent"]
        problems = [text for text in await asyncio.gather(*map(tried, agents)) if text]
        if problems:
            raise NotTaken("\n".join(dict.fromkeys(text.rstrip() for text in problems)))

    def _refuse(self, text: str) -> None:
        lines = text.replace("\n", "\n  ")
        self._fleet.report(f"the edit is not taken over, {_KEPT}:\n  {lines}", "error")

    async def _stamps(self, paths: frozenset[str]) -> Mapping[str, object]:
        return await asyncio.to_thread(snapshot.stamps, self._config.parent, paths)


async def following(fleet: Fleet, config: Path, environ: Mapping[str, str], held: Mapping[str, Port]) -> None:
    """Follow the files of a fleet that the supervisor has started, until cancelled (supervisor.Following)."""
    await Follower(config, environ, fleet, held, check=check).run()


async def check(member: Member) -> str:
    """Return what `pallas --agent NAME --check` says where it refuses; empty where the agent would start."""
    process = await asyncio.create_subprocess_exec(
        *member.command,
        "--check",
        cwd=member.cwd,
        # not the mark of the agent that runs: what is left of that is killed by it
        env={**member.env, guardian.RUN: f"{member.env.get(guardian.RUN, '')}.check"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, errors = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    text = errors.decode("utf-8", "replace")
    return "" if process.returncode == 0 else text or f"{member.name}: the check ended with {process.returncode}"
