"""The supervisor's end of the warm parent: agents are forked from it, and all else, or where it fails, is executed."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pallas_agent_runtime.local import child, guardian
from pallas_agent_runtime.local.child import Child, OnLine, Started
from pallas_agent_runtime.local.console import OWN_NAME
from pallas_agent_runtime.local.programs import Member
from pallas_agent_runtime.local.restarts import Reporter
from pallas_agent_runtime.local.warm import forker
from pallas_contract import names

PROGRAM = "pallas_agent_runtime.preloaded"
PREFIX = ("-P", "-m", "pallas_agent_runtime")
"""The command of an agent, without the interpreter, up to its arguments."""
_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE = 60.0
"""Seconds for a fork, the import included; then it is executed, as without a warm parent."""
_LONGEST_PID = 20


def usable(environ: Mapping[str, str]) -> bool:
    """Return whether agents may be forked here: on Linux, unless PALLAS_WARM_PARENT is 0.

    Elsewhere system libraries do not bear a fork without exec (macOS), or there is none.
    """
    return sys.platform == "linux" and environ.get(names.ENV_WARM_PARENT) != "0"


class WarmParent:
    """The process that agents are forked from, and started again where it has ended. A context manager."""

    def __init__(self, members: Sequence[Member], reporter: Reporter, program: str = PROGRAM) -> None:
        """Take the members of the fleet; `program` is the module of what is forked (forker.Program)."""
        agents = [member for member in members if _forkable(member)]
        self._template = _template(agents, program) if agents and usable(os.environ) else None
        self._reporter = reporter
        self._launching = asyncio.Lock()
        self._child: Child | None = None
        self._ended: asyncio.Task[int] | None = None
        self._messages: socket.socket | None = None
        self._has_forked = False
        self._adopting = 0

    async def __aenter__(self) -> WarmParent:
        if self._template:
            with contextlib.suppress(OSError):  # the first agent will find out
                await self._running(self._template)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._template = None
        if self._child and self._ended and self._messages:
            self._messages.close()
            self._child.kill()
            await self._ended

    def forks(self, member: Member) -> bool:
        """Return whether `member` would be forked now."""
        return self._template is not None and _forkable(member)

    async def spawn(self, member: Member, on_line: OnLine, fd: int | None = None) -> Child:
        """Start `member`, forked where it can be; all else is as for `child.spawn`.

        Raises:
            OSError: it cannot be started.
        """
        return await child.spawn(member, on_line, fd, self._start)

    async def _start(self, member: Member, output: int, fd: int | None) -> Started:
        if (template := self._template) and self.forks(member):
            try:
                async with asyncio.timeout(_PATIENCE):
                    return await self._fork(await self._running(template), member, output, fd)
            except OSError as error:  # that it took too long is one as well
                self._judge(error)
        return await child.execute(member, output, fd)

    def _judge(self, error: OSError) -> None:
        """Give up a warm parent that hangs, or that has never forked anything; another one may end and start again."""
        if not self._template or (self._has_forked and not isinstance(error, TimeoutError)):
            return
        self._template = None
        if self._child:
            self._child.kill()
        reason = "took too long" if isinstance(error, TimeoutError) else "has ended"
        self._reporter.report(OWN_NAME, f"the warm parent {reason}: each agent starts for itself, slower", "warning")

    async def _fork(self, messages: socket.socket, member: Member, output: int, fd: int | None) -> Started:
        """Fork `member`; it begins once it is known here, else it ends by itself.

        Raises:
            OSError: there is no fork.
        """
        ours, theirs = socket.socketpair()
        with ours, self._adoption():
            ours.setblocking(False)
            with theirs:
                fds = [theirs.fileno(), output, *([] if fd is None else [fd])]
                socket.send_fds(messages, [forker.MESSAGE], fds)
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(ours, _order(member))
            pid = await loop.sock_recv(ours, _LONGEST_PID)
            if not pid:
                raise ConnectionResetError("it ended before it began")
            process = _Adopted(int(pid))
            with contextlib.suppress(OSError):  # it has ended since: who waits for it hears of it
                ours.send(forker.GO)
            self._has_forked = True
            return process

    async def _running(self, template: Member) -> socket.socket:
        """Return where the warm parent takes messages; it is started where there is none."""
        async with self._launching:
            if self._messages is None or self._ended is None or self._ended.done():
                ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                ours.setblocking(False)
                with theirs:
                    self._child = await child.spawn(template, self._show, theirs.fileno())
                if self._messages:
                    self._messages.close()
                self._messages = ours
                self._ended = asyncio.create_task(self._child.wait())
            return self._messages

    def _show(self, line: str) -> None:
        self._reporter.output(OWN_NAME, line)

    @contextlib.contextmanager
    def _adoption(self) -> Iterator[None]:
        """Have orphans of our descendants become children of ours meanwhile (prctl(2)).

        Not longer: whatever else loses its parent is for init to wait for.
        """
        self._adopting += 1
        _become_subreaper(True)
        try:
            yield
        finally:
            self._adopting -= 1
            _become_subreaper(self._adopting > 0)


class _Adopted:
    """A forked process, by now a child of ours: nobody else can wait for it, so its id is its own until we have."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        self._handle = os.pidfd_open(pid)
        loop.add_reader(self._handle, self._reap)

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._ended.set_result(self.returncode)

    async def wait(self) -> int:
        return int(await asyncio.shield(self._ended))

    def terminate(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal.SIGTERM)


def _forkable(member: Member) -> bool:
    return member.kind == "agent" and member.command[: len(PREFIX) + 1] == (sys.executable, *PREFIX)


def _order(member: Member) -> bytes:
    """Return the line that the fork reads (forker.Order); a variable that is no UTF-8 comes through as it is."""
    order = {
        "command": member.command,
        "arguments": member.command[len(PREFIX) + 1 :],
        "cwd": str(member.cwd),
        "env": dict(member.env),
    }
    return json.dumps(order).encode("ascii") + b"\n"


def _template(agents: Sequence[Member], program: str) -> Member:
    """Return the warm parent of `agents` as a member, with what their environments have in common."""
    first = agents[0].env
    env = {key: value for key, value in first.items() if all(agent.env.get(key) == value for agent in agents)}
    env.pop(names.ENV_HOME, None)  # where there is one agent: what that leaves is not removed with this one
    if run := first.get(guardian.RUN, "").partition("/")[0]:
        longest = max(len(agent.name) for agent in agents)
        env[guardian.RUN] = f"{run}/{'-' * longest}"  # of the run, and of no member: a fork writes its own over it
    room = ",".join(agent.name for agent in agents)  # who lists processes reads whose parent it is
    command = (sys.executable, "-P", "-m", forker.__name__, program, room)
    return replace(agents[0], command=command, env=env)


def _become_subreaper(wanted: bool) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)
