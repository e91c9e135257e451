"""Connecting the MCP servers of an instance: HTTP servers within a turn's deadline, programs in the background.

A program is a server that the instance starts itself (stdio). It may have to be downloaded first (`npx`, `uvx`), which
no turn waits for.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from fast_agent.core.agent_app import AgentApp
from fast_agent.core.exceptions import FastAgentError
from fast_agent.mcp.mcp_aggregator import MCPAttachOptions

from pallas_agent_runtime.config.settings import CONNECT_TIMEOUT
from pallas_agent_runtime.engine.patches import noted
from pallas_agent_runtime.health import liveness
from pallas_agent_runtime.health.last_words import LastWords
from pallas_agent_runtime.health.program_reason import ProgramReasons

log = structlog.get_logger(__name__)

START_LIMIT = 120.0
"""Seconds for a program to start; the others of its agent are not connected meanwhile."""
RETRY = 30.0
"""Seconds after a failed start before the next one."""

WATCH = 5.0
"""Seconds between two looks at a program that is there, as between two probes of a server on HTTP."""

_NO_LIMIT = MCPAttachOptions(startup_timeout_seconds=math.inf)
"""The limits are here: fast-agent's own is 10 s, after which it would end a program that is still being downloaded."""

NOT_STARTED = "not started yet"
_NO_WORDS = ProgramReasons()
_NOT_EXECUTED = frozenset({errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.ENOTDIR, errno.EISDIR})
"""Errors of the system that started no program; any other, as a broken pipe, is of one that was started."""

_UNREADABLE = (ValueError, TypeError, LookupError)
"""Errors about what a server answers. Any other is of its connection, or an answer itself: a probe gets it too."""

Choose = Callable[[Iterable[str]], list[str]]
"""Those of some servers that are worth trying, the most promising first."""
Report = Callable[[str, str], None]
"""Takes a program, and the reason why some instance is without it; empty when none is."""
Attached = Callable[[str, str | None], None]
"""Takes an HTTP server, and None once it is connected; else a reason, empty where a probe of it would see it too."""
_Use = tuple["Connections", str]
"""An agent of an instance."""


class Programs:
    """The programs of all instances: which of them are late, and which are not worth waiting for."""

    def __init__(
        self,
        names: frozenset[str],
        report: Report,
        timeout: float = CONNECT_TIMEOUT,
        reasons: ProgramReasons = _NO_WORDS,
    ) -> None:
        """`timeout` is how long a turn waits for what it is without, HTTP servers and programs together, in seconds.

        `reasons` finds the words for one that does not start.
        """
        self.names = names
        self.last_words: dict[str, LastWords] = {}
        """Of the last start of each program."""
        self._reasons = reasons
        self._logged: dict[str, tuple[str, list[str]]] = {}
        self.timeout = timeout
        self._report = report
        self._slow: set[str] = set()
        self._late: defaultdict[str, dict[_Use, str]] = defaultdict(dict)
        self._there: defaultdict[str, set[_Use]] = defaultdict(set)
        # Connections made in a caller's context would carry its credentials to the next one.
        self.context = contextvars.copy_context()

    def quick(self, name: str) -> bool:
        """Return whether a turn may wait for its start: it never took longer, as far as is known."""
        return name not in self._slow

    def late(self, use: _Use, name: str, reason: str) -> None:
        self._slow.add(name)
        self._late[name][use] = reason
        self._report(name, reason)

    def failed(self, use: _Use, name: str, error: Exception) -> None:
        """Report why a start failed, and log it with the end of what the program said, once per change."""
        words = self.last_words.get(name)
        reason = self._reason(name, error, words)
        self.late(use, name, f"not started: {reason}")
        output = self._reasons.output(words) if words else []
        if self._logged.get(name) != (reason, output):
            self._logged[name] = (reason, output)
            command = self._reasons.command_line(name)
            ending = words.ending if words else ""
            log.warning("server_not_started", server=name, command=command, ending=ending, stderr="\n".join(output))

    def _reason(self, name: str, error: Exception, words: LastWords | None) -> str:
        """Return why a program did not start."""
        if isinstance(error.__cause__, OSError) and error.__cause__.errno in _NOT_EXECUTED:
            return self._reasons.not_executed(name, error.__cause__)
        if isinstance(error, FastAgentError):
            return self._reasons.ended(name, words, "ended before it answered")
        if isinstance(error, TimeoutError):
            return self._reasons.ended(name, words, f"did not answer within {START_LIMIT:g} s")
        return type(error).__name__

    def started(self, use: _Use, name: str, seconds: float) -> None:
        if seconds <= self.timeout:
            self._slow.discard(name)
        self._late[name].pop(use, None)
        self._there[name].add(use)
        self._report_presence(name)

    def ended(self, use: _Use, name: str, words: LastWords) -> None:
        """Report and log that a program has ended that was there."""
        reason = self._reasons.ended(name, words, "ended", answered=True)
        self._there[name].discard(use)
        self._late[name][use] = reason
        self._report_presence(name)
        command = self._reasons.command_line(name)
        output = "\n".join(self._reasons.output(words))
        log.warning("server_ended", server=name, command=command, ending=words.ending, stderr=output)

    def hanging(self, use: _Use, name: str) -> None:
        """Report that a program that is there has not answered a question in time."""
        fallback = f"runs and has not answered for {liveness.PING:g} s"
        self._late[name][use] = self._reasons.ended(name, None, fallback)
        self._report_presence(name)

    def answering(self, use: _Use, name: str) -> None:
        """Report that a program that hung answers once more."""
        self._late[name].pop(use, None)
        self._report_presence(name)

    def forget(self, connections: Connections) -> None:
        """Count an instance no longer. Of a program that no other has, what was known last stays: it may be broken."""
        for name in self.names:
            self._late[name] = {use: reason for use, reason in self._late[name].items() if use[0] is not connections}
            self._there[name] = {use for use in self._there[name] if use[0] is not connections}
            if self._late[name] or self._there[name]:
                self._report_presence(name)

    def _report_presence(self, name: str) -> None:
        """Report a program, which is there once no instance is without it."""
        self._report(name, next(iter(self._late[name].values()), ""))


@dataclass(slots=True, eq=False)
class _Start:
    """A program on its way to an agent: tried again and again until it is there."""

    settled: asyncio.Future[None]
    """Done once it is there, has failed, or is late: nobody waits for it any longer."""
    task: asyncio.Task[None] | None = None

    def settle(self) -> None:
        if not self.settled.done():
            self.settled.set_result(None)


class Connections:
    """The servers of one instance, connected where they are missing; `choose` says which HTTP servers to try now.

    `forwarded` are connected elsewhere, for one turn each; `attached` is told of each HTTP server that was tried.
    """

    def __init__(
        self,
        app: AgentApp,
        forwarded: frozenset[str],
        choose: Choose,
        *,
        programs: Programs,
        attached: Attached = lambda name, reason: None,
    ) -> None:
        self._app = app
        self._attached = attached
        self._forwarded = forwarded
        self._choose = choose
        self._programs = programs
        self._starts: dict[tuple[str, str], _Start] = {}
        self._watches: set[asyncio.Task[None]] = set()
        self._in_turn = False
        # fast-agent starts one program of an agent at a time; here, so that none pays for another one's time
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def servers(self) -> set[str]:
        """Return the servers that these connections are to."""
        return set().union(*self._users().values()) - self._forwarded

    async def attach(self) -> None:
        """Connect the servers the agents use, for a turn; one that is down is tried again on a later turn."""
        self._in_turn = True
        loop = asyncio.get_running_loop()
        end = loop.time() + self._programs.timeout
        await asyncio.gather(*(self._attach_missing(agent, names, end) for agent, names in self._users().items()))

    def rest(self) -> None:
        """Note the end of a turn: no call is under way, so programs may be asked whether they answer."""
        self._in_turn = False

    async def start_programs(self) -> None:
        """Begin to start the programs, and wait for them as long as any turn would."""
        end = asyncio.get_running_loop().time() + self._programs.timeout
        await asyncio.gather(*(self._start_missing(agent, names, end) for agent, names in self._users().items()))

    async def close(self) -> None:
        """End the starts under way: fast-agent closes no instance before."""
        starts, self._starts = self._starts, {}
        tasks = [*(start.task for start in starts.values() if start.task), *self._watches]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._programs.forget(self)

    def _users(self) -> dict[str, set[str]]:
        registered: Any = self._app.registered_agents()
        return {name: set(agent.config.servers) for name, agent in registered.items() if agent.config.servers}

    async def _attach_missing(self, agent: str, names: set[str], end: float) -> None:
        """Connect one after the other, as fast-agent does under a lock in any case.

        Each has its share of the time that is left: one that hangs takes none of the next one's. What they and the
        programs leave is for those that took longer, if it is more than they had.
        """
        late: dict[str, float] = {}
        if not self._locks[agent].locked():  # fast-agent's own would make the turn wait for the program
            attached = await self._app.list_attached_mcp_servers(agent)  # to be asked of those that use servers only
            servers = self._choose(names - self._forwarded - self._programs.names - set(attached))
            late = await self._attach_each(agent, dict.fromkeys(servers, 0.0), end)
        await self._start_missing(agent, names, end)
        if late and not self._locks[agent].locked():
            late = await self._attach_each(agent, late, end)
        for server in late:
            log.warning("server_not_attached", server=server, error=TimeoutError.__name__)

    async def _attach_each(self, agent: str, had: Mapping[str, float], end: float) -> dict[str, float]:
        """Connect servers by `end`, of which each had some seconds before.

        Each has as even a share of the time as is more than it had: the first ones are the most promising.

        Returns:
            Those that took longer, and the seconds they had now.
        """
        late = {}
        for left, (server, before) in zip(range(len(had), 0, -1), had.items(), strict=True):
            now = asyncio.get_running_loop().time()
            shares = ((end - now) / share for share in range(left, 0, -1))
            seconds = next((share for share in shares if share > before), 0.0)
            if not seconds or not await self._attach(agent, server, now + seconds):
                late[server] = seconds
        return late

    async def _attach(self, agent: str, server: str, end: float) -> bool:
        """Return whether it was connected by `end`, or failed by then; if not, a probe is to look for the reason."""
        try:
            async with asyncio.timeout_at(end) as limit:
                await self._app.attach_mcp_server(agent, server, options=_NO_LIMIT)
        except Exception as error:
            if limit.expired():
                self._attached(server, "")
                return False
            self._not_attached(server, error)
        else:
            self._attached(server, None)
        return True

    def _not_attached(self, server: str, error: Exception) -> None:
        kind = type(error).__name__
        log.warning("server_not_attached", server=server, error=kind)
        self._attached(server, f"its answers cannot be read: {kind}" if isinstance(error, _UNREADABLE) else "")

    async def _start_missing(self, agent: str, names: set[str], end: float) -> None:
        """Start what is missing, the quick ones first, and wait for these until `end`."""
        programs = names & self._programs.names
        if not programs:
            return
        loop = asyncio.get_running_loop()
        missing = programs - set(await self._app.list_attached_mcp_servers(agent))
        for name in sorted(missing, key=lambda name: (not self._programs.quick(name), name)):
            self._begin(agent, name)
        starts = [self._starts[agent, name].settled for name in missing if self._programs.quick(name)]
        if starts:
            await asyncio.wait(starts, timeout=max(0.0, end - loop.time()))

    def _begin(self, agent: str, name: str) -> None:
        """Begin to start a program, unless that is under way."""
        if (agent, name) not in self._starts:
            loop = asyncio.get_running_loop()
            start = self._starts[agent, name] = _Start(loop.create_future())
            start.task = loop.create_task(self._start(agent, name, start), context=self._programs.context.copy())

    async def _start(self, agent: str, name: str, start: _Start) -> None:
        with noted() as connections:
            while not await self._started(agent, name, start):  # noqa: ASYNC110 - it is tried, not waited for
                await asyncio.sleep(RETRY)
        self._starts.pop((agent, name), None)
        words = self._programs.last_words.get(name)
        if words:
            context = self._programs.context.copy()
            watch = asyncio.get_running_loop().create_task(
                self._watch(agent, name, words, connections[-1:]), context=context
            )
            self._watches.add(watch)
            watch.add_done_callback(self._watches.discard)

    async def _watch(self, agent: str, name: str, words: LastWords, connections: Sequence[liveness.Connection]) -> None:
        """Wait for the end of a program that is there, and start it again: fast-agent goes on calling a dead one.

        One that ends soon after its start has the pause of one that fails at it; a turn does not wait for that.
        """
        began = asyncio.get_running_loop().time()
        asking = [asyncio.create_task(self._ask(agent, name, connection)) for connection in connections]
        try:
            while words.exit_code() is None:  # noqa: ASYNC110 - the system tells it to the SDK alone
                await asyncio.sleep(WATCH)
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        self._programs.ended((self, agent), name, words)
        try:
            async with self._locks[agent], asyncio.timeout(START_LIMIT):
                await self._app.detach_mcp_server(agent, name)
        except Exception as error:
            log.warning("server_not_detached", server=name, error=type(error).__name__)
        if asyncio.get_running_loop().time() - began < RETRY:
            await asyncio.sleep(RETRY)
        if name not in await self._app.list_attached_mcp_servers(agent):
            self._begin(agent, name)

    async def _ask(self, agent: str, name: str, connection: liveness.Connection) -> None:
        """Ask a program now and then whether it answers, until cancelled; one with a call may do nothing beside it."""
        while True:
            await asyncio.sleep(liveness.PING)
            if self._in_turn:
                continue
            answer = asyncio.create_task(liveness.answered(connection))
            try:
                if not (await asyncio.wait([answer], timeout=liveness.PING))[0]:
                    self._programs.hanging((self, agent), name)
                    await answer
                    self._programs.answering((self, agent), name)
            finally:
                answer.cancel()

    async def _started(self, agent: str, name: str, start: _Start) -> bool:
        """Start a program once, within `START_LIMIT`."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        use = (self, agent)

        def late() -> None:
            self._programs.late(use, name, NOT_STARTED)
            start.settle()

        timer = loop.call_later(self._programs.timeout, late)
        try:
            async with self._locks[agent], asyncio.timeout(START_LIMIT):
                await self._app.attach_mcp_server(agent, name, options=_NO_LIMIT)
        except Exception as error:
            self._programs.failed(use, name, error)
            return False
        else:
            self._programs.started(use, name, loop.time() - begun)
            return True
        finally:
            timer.cancel()
            start.settle()
