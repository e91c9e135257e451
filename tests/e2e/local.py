"""A fleet as processes, brought up by the plugin's fixture, and what only processes have."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pallas_testing.fleet import start
from pallas_testing.fleet.start import Running
from pallas_testing.targets.base import Order
from pallas_testing.targets.listeners import listener
from pallas_testing.targets.processes import Processes

from .projects import edited

PATIENCE = 240.0
"""Seconds until a fleet is up: about 30 s on two cores, much longer when they are shared."""


class Local:
    """A running `pallas`; agents are called by their names in agents.yaml."""

    def __init__(self, running: Running) -> None:
        target = running.target
        assert isinstance(target, Processes)
        self.config, self._target = target.file.path, target
        self.url, self.kill, self.start = target.url, target.kill, target.restore
        self.freeze, self.thaw = target.pause, target.resume

    @property
    def supervisor(self) -> int:
        """Process id of `pallas`."""
        pid = self._target.supervisor
        assert pid is not None
        return pid

    def kill_again(self, agent: str) -> None:
        """End also what was started in its place; each time the supervisor waits twice as long before it starts one."""
        with suppress(LookupError):
            self.kill(agent)

    @property
    def code(self) -> int | None:
        """Exit code of `pallas`; None while it runs."""
        assert self._target._leash is not None
        return self._target._leash.code

    @property
    def said(self) -> str:
        return self._target._output.read_text("utf-8", "replace")

    def pid(self, member: str) -> int | None:
        """The process that answers for a member."""
        return listener(self._target.file.port(member) or 0)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def running(example: Path, folder: Path, *, registry: str = "") -> Iterator[Running]:
    """Yield an example, probed twice a second, as processes, up; `registry` are more of its settings in one line."""
    config = edited(example, folder, more=f"registry: {{probe_interval: 0.5{registry}}}\n")
    with start.running("processes", Order(config, folder), {}) as fleet:
        yield fleet


def all_gone(pids: list[int], within: float = 60.0) -> bool:
    end = time.monotonic() + within
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
