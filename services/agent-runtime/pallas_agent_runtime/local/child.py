"""One child process: started so that it can neither outlive the supervisor nor hear the terminal's Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from io import RawIOBase
from typing import Protocol

from pallas_agent_runtime.local import guardian
from pallas_agent_runtime.local.programs import Member
from pallas_contract import names

OnLine = Callable[[str], None]
"""Takes one line of output, without its end."""

_PR_SET_PDEATHSIG = 1
_LONGEST_LINE = 64 * 1024
_LAST_WORDS = 1.0
"""Seconds to wait for the end of the output after the exit: a grandchild may hold the pipe open."""


class Child(Protocol):
    """A running process as a keeper sees it."""

    @property
    def pid(self) -> int: ...

    async def wait(self) -> int:
        """Return the exit code once it has ended and its output was read; negative is the signal that ended it."""

    def terminate(self) -> None:
        """Ask it to end (SIGTERM)."""

    def kill(self) -> None:
        """End it and all that it started (SIGKILL)."""


Spawn = Callable[[Member, OnLine, int | None], Awaitable[Child]]
"""Starts a member, which inherits the socket of that file descriptor (names.ENV_LISTEN_FD)."""


class Started(Protocol):
    """A process as it was started; `asyncio.subprocess.Process` is one."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""

    async def wait(self) -> int:
        """Return the exit code once it has ended, whatever it has left behind."""

    def terminate(self) -> None:
        """Ask it to end (SIGTERM)."""


async def execute(member: Member, output: int, fd: int | None) -> Started:
    """Start the command of `member` in a process group of its own; it writes to `output` and has the socket `fd`.

    Raises:
        OSError: it cannot be started.
    """
    if member.kind == "service" and member.state:  # the other kinds make theirs themselves
        (member.cwd / member.env[names.ENV_STATE]).mkdir(mode=0o700, parents=True, exist_ok=True)
    return await asyncio.create_subprocess_exec(
        *member.command,
        cwd=member.cwd,
        env=member.env if fd is None else {**member.env, names.ENV_LISTEN_FD: str(fd)},
        pass_fds=() if fd is None else (fd,),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=asyncio.subprocess.STDOUT,
        process_group=0,
        preexec_fn=dies_with(os.getpid(), signal.SIGKILL),
    )


Start = Callable[[Member, int, int | None], Awaitable[Started]]
"""Starts a member as `execute` does."""


async def spawn(member: Member, on_line: OnLine, fd: int | None = None, start: Start = execute) -> Child:
    """Start `member` in a process group of its own, with the socket `fd` where there is one.

    Its folder (names.ENV_HOME), where it has one, is there meanwhile, and goes with all that it holds.

    Raises:
        OSError: it cannot be started.
    """
    home = member.env.get(names.ENV_HOME, "")
    if home:
        os.makedirs(home, mode=0o700, exist_ok=True)
    # A pipe of our own: Process.wait() of one that asyncio made lasts until the last grandchild has closed it.
    read, write = os.pipe()
    output = os.fdopen(read, "rb", buffering=0)
    try:
        process = await start(member, write, fd)
    except BaseException:
        output.close()
        raise
    finally:
        os.close(write)
    mark = member.env.get(guardian.RUN, "") if sys.platform == "linux" else ""
    return _Process(process, asyncio.create_task(_listen(output, on_line)), mark, home)


class _Process:
    """`Child` over a process and the task that reads its output."""

    def __init__(self, process: Started, listening: asyncio.Task[None], mark: str, home: str) -> None:
        """`mark` is what the processes it starts are known by, wherever they go (guardian); `home` is its folder."""
        self._process = process
        self._listening = listening
        self._mark = mark
        self._home = home
        self._ended = asyncio.create_task(self._until_ended())

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    async def _until_ended(self) -> int:
        code = await self._process.wait()
        self._signal_group(signal.SIGKILL)  # what it started itself and left behind
        try:
            if self._mark:  # and what has a session of its own, as MCP servers on stdio do
                await asyncio.to_thread(guardian.end, self._mark)
            if self._home:  # one that was killed has left its configuration there
                await asyncio.to_thread(shutil.rmtree, self._home, ignore_errors=True)
        except Exception as error:  # no thread is left, for example: its end is told all the same
            context = {"message": "what a member has left behind may still be there", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
        await asyncio.wait({self._listening}, timeout=_LAST_WORDS)
        self._listening.cancel()
        await asyncio.wait({self._listening})
        return code

    def terminate(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        if self._process.returncode is None:
            self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def dies_with(parent: int, number: signal.Signals) -> Callable[[], None] | None:
    """Return the step between fork and exec that has the kernel signal a child when `parent` dies; Linux only.

    Members get SIGKILL, because then nobody is left to insist.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # looked up before the fork: afterwards as little as possible may run

    def arrange() -> None:
        prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    return arrange


async def _listen(output: RawIOBase, on_line: OnLine) -> None:
    """Hand every line of the pipe `output` to `on_line`, then close it.

    The pipe is read to its end whatever `on_line` raises: a child that writes into a closed one would end by it.
    """
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), output
    )
    with contextlib.closing(transport):
        failed = False
        async for line in lines(stream):
            try:
                on_line(line)
            except Exception as error:  # of a terminal that is gone, or whatever nobody has thought of
                if not failed:  # once: every line that follows would say the same
                    context = {"message": "output of a member is lost", "exception": error}
                    asyncio.get_running_loop().call_exception_handler(context)
                failed = True


async def lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """Yield the lines of `stream`; one longer than 64 KiB comes in pieces."""
    rest = b""
    while chunk := await stream.read(_LONGEST_LINE):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.rstrip(b"\r").decode("utf-8", "replace")
        if len(rest) >= _LONGEST_LINE:
            yield rest.decode("utf-8", "replace")
            rest = b""
    if rest:
        yield rest.decode("utf-8", "replace")
