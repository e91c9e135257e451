"""The shape of a target: how a fleet is started, reached, read and disturbed there."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from pallas_testing.project.claims import Claims
from pallas_testing.project.fleet_file import FleetFile
from pallas_testing.targets.relay import Course

Undo = Callable[[], object]
"""What takes a fault back."""


class CannotStart(Exception):
    """The fleet does not come up; the text says what its commands said, and what to do."""


class CannotDisturb(Exception):
    """The target has no such fault, or not now; the text says why."""

    def within(self, text: str) -> CannotDisturb:
        """Return the same with a text before it."""
        error = CannotDisturb(f"{text}: {self}")
        for note in getattr(self, "__notes__", ()):
            error.add_note(note)
        return error


class FaultEnded(AssertionError):
    """A fault ended by itself before it was undone, so the test saw something else than it asked for."""


HALF_WAY = "this fault failed half way: "
"""Beginning of the note that an error carries which had changed the fleet before."""


@contextmanager
def undone(undo: Undo) -> Iterator[None]:
    """Undo a fault that fails half way, as nobody else will: its verb raises instead of returning what undoes it.

    So does one in whose middle somebody presses Ctrl-C.
    """
    try:
        yield
    except BaseException as error:
        try:
            undo()
        except Exception as second:  # the first one says more, and the second must not hide it
            error.add_note(f"{HALF_WAY}it could not be undone: {second}")
        else:
            error.add_note(f"{HALF_WAY}it has been undone")
        raise


@dataclass(frozen=True, slots=True)
class Order:
    """A fleet to start: the user's agents.yaml, an empty folder to work in, variables beside those of this process."""

    file: Path
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        """The environment of the commands that start the fleet."""
        return os.environ | dict(self.environment)


class Target(ABC):
    """One fleet on one target. It is started once and stopped once, also where the start failed half way."""

    name: ClassVar[str]
    file: FleetFile
    """agents.yaml of the copy that runs."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.claims = Claims()

    @abstractmethod
    def start(self) -> None:
        """Start the fleet; it need not be up yet.

        Raises:
            CannotStart: it cannot.
        """

    @abstractmethod
    def stop(self) -> None:
        """End the fleet and remove all that `start` has made, and nothing else."""

    @abstractmethod
    def url(self, member: str) -> str:
        """Return `http://host:port` at which this machine reaches an agent or the registry."""

    @abstractmethod
    def logs(self, member: str) -> str:
        """Return all that a member has printed, by its name in agents.yaml, or `registry`."""

    @abstractmethod
    def ended(self) -> str:
        """Return why the fleet as a whole has ended, empty while it runs."""

    def artifacts(self) -> Mapping[str, str]:
        """Return what else the target shows, as title -> text: `docker inspect`, manifests but no Secrets."""
        return {}

    def pending(self) -> str:
        """Return what of the start is still under way, empty where nothing is."""
        return ""

    def unreached(self, caller: str, members: Sequence[str]) -> str:
        """Return which of these members `caller` does not reach yet, though they are well, and why; empty for none."""
        return ""

    def kill(self, agent: str) -> None:
        """End the agent as a crash would."""
        raise self.cannot("kill")

    def restore(self, agent: str) -> None:
        """Make a killed or restarted agent run again, or wait until the one that was ended is gone.

        Raises:
            LookupError: there is nothing to be started again.
        """
        raise self.cannot("kill")

    def answers(self, service: str) -> bool:
        """Return whether a service that `restore` has brought back can be asked, as far as the target knows."""
        return True

    def pause(self, agent: str) -> None:
        """Let the agent run no further, with its port still open."""
        raise self.cannot("pause")

    def resume(self, agent: str) -> None:
        """Let a paused agent run on."""
        raise self.cannot("pause")

    def restart(self, agent: str) -> None:
        """End the agent as a deployment does, and start it again."""
        raise self.cannot("restart")

    def remove(self, agent: str) -> None:
        """Take the agent away, its name included."""
        raise self.cannot("remove")

    def recreate(self, agent: str) -> None:
        """Make a removed agent anew."""
        raise self.cannot("remove")

    def scale(self, agent: str, count: int) -> Undo:
        """Run as many replicas of the agent."""
        raise self.cannot("scale")

    def partition(self, one: str, other: str) -> Undo:
        """Let two members reach each other no more."""
        raise self.cannot("partition")

    def lead(self, fault: str, caller: str, callee: str, course: Course) -> Undo:
        """Lead what `caller` asks of `callee` through a relay; `fault` is the name by which that is refused."""
        raise self.cannot(fault)

    def rotate_secret(self, name: str, content: str) -> Undo:
        """Give a secret file of the copy, relative to agents.yaml, new content, and have its readers read it."""
        raise self.cannot("rotate_secret")

    def fill_disk(self, agent: str) -> Undo:
        """Leave no space where the agent may write."""
        raise self.cannot("fill_disk")

    def own_url(self, member: str) -> str:
        """Return `http://host:port` at which a member reaches itself."""
        return "http://127.0.0.1:8080"

    def execute(self, member: str, code: str) -> str:
        """Return what Python prints that runs where the member runs, with its network.

        Raises:
            CannotDisturb: it fails.
        """
        raise self.cannot("execute")

    def cannot(self, fault: str, reason: str = "") -> CannotDisturb:
        """Return the refusal of a fault, by its name."""
        return CannotDisturb(f"{fault}: not on {self.name}{f': {reason}' if reason else ''}")
