"""The fleet as processes of this machine: what `pallas` runs."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from pallas_testing.project import copies
from pallas_testing.targets import commands
from pallas_testing.targets.base import CannotDisturb, Order, Target, Undo
from pallas_testing.targets.leash import Leash
from pallas_testing.targets.listeners import listener
from pallas_testing.targets.relay import Course

GRACE = 30.0
"""Seconds from the interrupt until the fleet is killed; `pallas` itself gives its members 10."""
_POLL = 0.05
_ONE_NETWORK = "all processes are at one address of this machine, and nothing tells who asks; compose has it"
_TAIL = 40
"""Last lines of the output that an error repeats."""


class Processes(Target):
    """A `pallas` with ports of its own, on a leash."""

    name = "processes"

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self._leash: Leash | None = None
        self._output = order.folder / "pallas.log"
        self._ended: dict[str, int] = {}
        """The process of an agent that was told to end."""

    def start(self) -> None:
        self.file = copies.copy(self.order.file, self.order.folder / "project", self.claims)
        command = [sys.executable, "-P", "-m", "pallas_agent_runtime", "--config", str(self.file.path)]
        self._leash = Leash(
            {"run": command, "clean": [], "grace": GRACE},
            cwd=self.file.path.parent,
            env=self.order.environ,
            output=self._output,
        )

    @property
    def supervisor(self) -> int | None:
        """The process of `pallas`, the one child of its leash; None where none runs, or the system does not tell."""
        with suppress(OSError, ValueError):
            pid = self._leash.pid if self._leash else 0
            (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
            return int(child)
        return None

    def stop(self) -> None:
        if self._leash:
            self._leash.end()
        self.claims.close()

    def url(self, member: str) -> str:
        return f"http://127.0.0.1:{self.file.port(member)}"

    def logs(self, member: str) -> str:
        """Return the member's lines, and those of the supervisor about it."""
        line = re.compile(rf"{re.escape(member)} *( [|:] )(.*)")
        matches = map(line.fullmatch, self._printed().splitlines())
        return "\n".join(match[2] if match[1] == " | " else f"pallas: {match[2]}" for match in matches if match)

    def ended(self) -> str:
        code = self._leash.code if self._leash else None
        if code is None:
            return ""
        tail = "\n".join(self._printed().splitlines()[-_TAIL:])
        return f"`pallas` has ended with exit code {code}:\n{tail}"

    def kill(self, agent: str) -> None:
        self._end(agent, signal.SIGKILL)

    def restore(self, agent: str) -> None:
        """Wait until the process is gone; `pallas` starts another one."""
        pid = self._ended.pop(agent, None)
        end = time.monotonic() + GRACE
        while pid is not None and _exists(pid) and time.monotonic() < end:
            time.sleep(_POLL)

    def answers(self, service: str) -> bool:
        return listener(self.file.port(service) or 0) not in (None, self.supervisor)

    def pause(self, agent: str) -> None:
        os.kill(self._pid(agent), signal.SIGSTOP)

    def resume(self, agent: str) -> None:
        with suppress(LookupError):  # it has ended since, and another one runs
            os.kill(self._pid(agent), signal.SIGCONT)

    def restart(self, agent: str) -> None:
        self._end(agent, signal.SIGTERM)

    def scale(self, agent: str, count: int) -> Undo:
        raise self.cannot("scale", "`pallas` runs one process of each agent, at one port")

    def partition(self, one: str, other: str) -> Undo:
        raise self.cannot("partition", _ONE_NETWORK)

    def lead(self, fault: str, caller: str, callee: str, course: Course) -> Undo:
        raise self.cannot(fault, _ONE_NETWORK)

    def rotate_secret(self, name: str, content: str) -> Undo:
        raise self.cannot("rotate_secret", "`pallas` reads the secrets once, when it starts")

    def fill_disk(self, agent: str) -> Undo:
        raise self.cannot("fill_disk", "a process has no disk of its own: it would be that of this machine")

    def own_url(self, member: str) -> str:
        return self.url(member)

    def execute(self, member: str, code: str) -> str:
        return commands.run([sys.executable, "-I", "-c", code], self.file, self.order, failure=CannotDisturb)

    def _end(self, agent: str, number: signal.Signals) -> None:
        pid = self._pid(agent)
        os.kill(pid, number)
        self._ended[agent] = pid

    def _printed(self) -> str:
        return self._output.read_text("utf-8", "replace") if self._output.exists() else ""

    def _pid(self, agent: str) -> int:
        """Return the process of an agent.

        Raises:
            LookupError: it runs none now.
            CannotDisturb: the system does not tell.
        """
        if sys.platform != "linux":
            raise CannotDisturb(
                "faults of processes need Linux, whose /proc tells them apart; compose has them anywhere"
            )
        pid = listener(self.file.port(agent) or 0)
        if pid is None or pid == self.supervisor:  # which holds the socket of one that ended until it has noticed
            raise LookupError(f"{agent} has no process now")
        return pid


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
