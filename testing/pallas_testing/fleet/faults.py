"""Faults as verbs, each undone when its test ends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from pallas_testing.targets.base import Target


class Faults:
    """What a test can do to the agents of a fleet. A target that has no such fault refuses it with CannotDisturb."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._undo = ExitStack()
        self.done: list[str] = []
        """The faults of this test, oldest first: `kill research`."""
        self.members: dict[str, None] = {}
        """Those who had them, in order."""

    def kill(self, agent: str) -> None:
        """End the agent as a crash would; afterwards it runs again, at the end of the test at the latest."""
        self._do(f"kill {agent}", self._target.kill, self._target.restore, agent)

    def pause(self, agent: str) -> None:
        """Let the agent run no further, with its port still open, until it is resumed or the test ends."""
        self._do(f"pause {agent}", self._target.pause, self._target.resume, agent)

    def resume(self, agent: str) -> None:
        """Let a paused agent run on."""
        self._target.resume(agent)

    def restart(self, agent: str) -> None:
        """End the agent as a deployment does, and start it again."""
        self._do(f"restart {agent}", self._target.restart, self._target.restore, agent)

    def remove(self, agent: str) -> None:
        """Take the agent away, its name included; it is made anew when the test ends."""
        self._do(f"remove {agent}", self._target.remove, self._target.recreate, agent)

    def undo(self) -> None:
        """Undo all faults, the last one first."""
        self._undo.close()

    def _do(self, fault: str, do: Callable[[str], None], undo: Callable[[str], None], agent: str) -> None:
        do(agent)
        self.done.append(fault)
        self.members[agent] = None
        self._undo.callback(partial(undo, agent))
