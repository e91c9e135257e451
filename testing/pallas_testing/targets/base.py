"""The shape of a target: how a fleet is started, reached, read and disturbed there."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from pallas_testing.project.claims import Claims
from pallas_testing.project.fleet_file import FleetFile


class CannotStart(Exception):
    """The fleet does not come up; the text says what its commands said, and what to do."""


class CannotDisturb(Exception):
    """The target has no such fault; the text says which has."""


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

    def kill(self, agent: str) -> None:
        """End the agent as a crash would."""
        raise self.cannot("kill")

    def restore(self, agent: str) -> None:
        """Make a killed or restarted agent run again, or wait until the one that was ended is gone.

        Raises:
            LookupError: there is nothing to be started again.
        """
        raise self.cannot("kill")

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

    def cannot(self, fault: str) -> CannotDisturb:
        """Return the refusal of a fault, by its name."""
        return CannotDisturb(f"{fault}: not on {self.name}")
