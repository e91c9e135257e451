"""The face of a running fleet to a test: its agents, its registry, its faults, and what is shown when a test fails."""

from pallas_testing.answers.answer import AgentFailed, Answer
from pallas_testing.answers.calls import Call, Progress
from pallas_testing.fleet.face import Fleet
from pallas_testing.targets.base import CannotDisturb, CannotStart

__all__ = ["AgentFailed", "Answer", "Call", "CannotDisturb", "CannotStart", "Fleet", "Progress"]
