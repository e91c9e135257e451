"""The files of a running fleet, looked at twice a second; an edit that is wrong changes nothing that runs."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from pallas_agent_runtime.local import guardian, ports
from pallas_agent_runtime.local.ports import HeldPort, Port
from pallas_agent_runtime.local.programs import Member
from pallas_agent_runtime.local.restarts import Level
from pallas_agent_runtime.local.supervisor import Supervisor
from pallas_agent_runtime.local.watching import changes, snapshot
from pallas_agent_runtime.local.watching.changes import Changes
from pallas_agent_runtime.local.watching.snapshot import Flawed, Mark, Snapshot
from pallas_contract.problems import Refused
from pallas_service.http import sockets

INTERVAL = 0.5
"""Seconds between two looks. What has changed is taken over when it looks the same twice: editors write in steps."""
DEADLINE = 300.0
"""Seconds that an agent may take to load when it is tried."""
_RESTLESS = 2
"""Rounds in a row in which a file changed while the edit was tried, after which the code itself is held to write it."""
_KEPT = "what runs goes on as it was"

Stamps = Mapping[str, object]
"""Path -> what tells a file from an earlier or later one."""
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
        started: Mapping[str, Member],
        check: Check,
        take: Callable[[Path, Mapping[str, str]], Snapshot] = snapshot.take,
        hold: Callable[[Member], Port] = HeldPort,
    ) -> None:
        """Take the fleet as it was started: `started` are its members, `held` their ports."""
        self._config = config
        self._environ = environ
        self._fleet = fleet
        self._started = dict(started)
        self._ports = dict(held)
        self._check = check
        self._take = take
        self._hold = hold
        self._rounds: Counter[str] = Counter()
        """Rounds in a row in which each file changed while an edit was tried."""
        self._left = frozenset[str]()
        """Files that are followed no longer, since the code itself writes them."""
        self._refused = False
        """Whether the last word about the files is that an edit is not taken over."""
        self._blind = ""
        """Why the last look at the files failed; empty where it did not."""

    async def run(self) -> None:
        """Follow the files until cancelled."""
        current = await self._begin()
        paths = current.paths
        done: Stamps = {} if current.members is self._started else await self._stamps(paths)
        last = done
        while True:
            await asyncio.sleep(INTERVAL)
            now = await self._stamps(paths)
            if now == done or now != last:
                last = now
                continue
            try:
                new = await asyncio.to_thread(self._take, self._config, self._environ)
                paths |= new.paths  # also of an edit that is not taken over: it is mended in one of these
                now = {**await self._stamps(new.paths), **now}
                running = await self._become(current, new, now)
                if not running:
                    continue
                current = running
                paths = new.paths
                if self._refused:
                    self._fleet.report("the files are in order again, and what runs is what they say")
                    self._refused = False
            except Refused as refused:
                if isinstance(refused, Flawed):
                    paths |= refused.paths
                self._refuse("\n".join(map(str, refused.problems)))
            except NotTaken as refusal:
                self._refuse(str(refusal))
            except Exception as error:  # whatever it is, the fleet goes on
                self._refuse(f"{type(error).__name__}: {error}")
            self._rounds.clear()
            # As it was before: what has changed since then is the next edit.
            after = await self._stamps(paths)
            done = last = {path: now.get(path, stamp) for path, stamp in after.items()}

    async def _begin(self) -> Snapshot:
        """Return the project as it was started; once a broken save is mended nobody knows what the members run."""
        problem = ""
        while True:
            try:
                first = await asyncio.to_thread(self._take, self._config, self._environ)
            except Exception as error:
                text = "\n".join(map(str, error.problems)) if isinstance(error, Refused) else f"{error}"
                if text != problem:
                    self._refuse(text)
                problem = text
                await asyncio.sleep(INTERVAL)
            else:
                unknown = {name: Mark("") for name in self._started}
                return replace(first, members=self._started, marks=unknown) if problem else first

    async def _become(self, current: Snapshot, new: Snapshot, stamps: Stamps) -> Snapshot | None:
        """Do what lies between two snapshots; return what runs then, None where files changed while it was tried.

        Raises:
            NotTaken: an agent would not start, or a port is somebody else's; then nothing has been done.
        """
        between = self._between(current, new)
        if not between:
            return new
        code = {path: stamp for path, stamp in stamps.items() if path not in new.data | current.data}
        trying = asyncio.create_task(self._try(new.members[name] for name in (*between.come, *between.restarted)))
        try:
            # An edit that comes meanwhile is the one to try: it may mend a module that never ends loading.
            while not (await asyncio.wait({trying}, timeout=INTERVAL))[0]:
                if await self._stamps(code.keys()) != code:
                    return None
            if await self._stamps(code.keys()) != code or await self._written(new, stamps):
                return None
            await trying
        finally:
            trying.cancel()
            await asyncio.gather(trying, return_exceptions=True)
        between = self._between(current, new)
        return await self._change(current, new, between) if between else new

    def _between(self, current: Snapshot, new: Snapshot) -> Changes:
        return changes.between(current.without(self._left), new.without(self._left))

    async def _written(self, new: Snapshot, stamps: Stamps) -> bool:
        """Return whether data changed while the edit was tried; what does so again and again is followed no longer."""
        data = new.data - self._left
        after = await self._stamps(data)
        changed = [path for path in sorted(data) if after.get(path) != stamps.get(path)]
        self._rounds = Counter({path: self._rounds[path] + 1 for path in changed})
        restless = [path for path in changed if self._rounds[path] >= _RESTLESS]
        if restless:
            self._left |= frozenset(restless)
            names = ", ".join(restless)
            self._fleet.report(
                f"the code that names {names} writes it when it is loaded: no longer followed", "warning"
            )
        return len(restless) < len(changed)

    async def _change(self, current: Snapshot, new: Snapshot, between: Changes) -> Snapshot:
        """Stop and start members; return what runs then: `new`, without those whose port was lost on the way."""
        fresh = self._reserve(current, new, between)
        self._refused = False
        self._fleet.report(f"{self._config.name} and its files have changed: {between}")
        for name in reversed([*between.restarted, *between.gone]):
            await self._fleet.remove(name)
        for name in between.gone:
            self._ports.pop(name).close()
        lost = {}
        for name in between.come:  # a port that one member leaves to another is free only now
            try:
                self._ports[name] = fresh.get(name) or self._hold(new.members[name])
            except sockets.CannotListen as failure:
                lost[name] = f"{name} {failure}"
        for name in new.members:
            if name in self._ports and (name in between.come or name in between.restarted):
                self._fleet.add(new.members[name], self._ports[name])
        if lost:
            lines = "\n  ".join(lost.values())
            self._fleet.report(f"the edit is taken over without {', '.join(lost)}:\n  {lines}", "error")
        return replace(new, members={name: member for name, member in new.members.items() if name not in lost})

    def _reserve(self, current: Snapshot, new: Snapshot, between: Changes) -> dict[str, Port]:
        """Return the ports of those who come, as far as no member that goes has their number now.

        Raises:
            NotTaken: another program has one.
        """
        # By number: a member that is to listen on all addresses is in its own way on one of them.
        ours = {ports.address(current.members[name])[1] for name in between.gone}
        fresh: dict[str, Port] = {}
        try:
            for name in between.come:
                if ports.address(new.members[name])[1] not in ours:
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
        if agents:
            self._fleet.report(f"trying {', '.join(sorted(member.name for member in agents))} as edited")
        problems = [text for text in await asyncio.gather(*map(tried, agents)) if text]
        if problems:
            raise NotTaken("\n".join(dict.fromkeys(text.rstrip() for text in problems)))

    def _refuse(self, text: str) -> None:
        self._refused = True
        lines = text.replace("\n", "\n  ")
        self._fleet.report(f"the edit is not taken over, {_KEPT}:\n  {lines}", "error")

    async def _stamps(self, paths: Iterable[str]) -> Stamps:
        """Return the stamps of `paths`, of none where the look fails by itself: the fleet goes on, and looks again."""
        try:
            stamps = await asyncio.to_thread(snapshot.stamps, self._config.parent, frozenset(paths) - self._left)
        except Exception as error:
            text = f"its files cannot be looked at: {type(error).__name__}: {error}"
            if text != self._blind:  # twice a second would be no better
                self._fleet.report(text, "error")
            self._blind = text
            return {}
        self._blind = ""
        return stamps


async def following(
    fleet: Supervisor,
    config: Path,
    environ: Mapping[str, str],
    held: Mapping[str, Port],
    *,
    allow_plain_secrets: bool = False,
) -> None:
    """Follow the files of a fleet that the supervisor has started, until cancelled (supervisor.Following)."""
    started = {name: keeper.member for name, keeper in fleet.keepers.items()}
    take = partial(snapshot.take, allow_plain_secrets=allow_plain_secrets)
    await Follower(config, environ, fleet, held, started=started, check=check, take=take).run()


async def check(member: Member, deadline: float = DEADLINE) -> str:
    """Return what `pallas --agent NAME --check` says where it refuses; empty where the agent would start.

    `deadline`, in seconds, is for one that neither loads nor fails.
    """
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
        async with asyncio.timeout(deadline):
            _, errors = await process.communicate()
    except TimeoutError:
        return f"{member.name}: its code was not loaded within {deadline:g} s"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = errors.decode("utf-8", "replace")
    return "" if process.returncode == 0 else text or f"{member.name}: the check ended with {process.returncode}"
