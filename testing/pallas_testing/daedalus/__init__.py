"""Daedalus as the Pallas contract describes it (seed 000 section 3), small enough to be read at once.

It knows nothing of this project, only the contract: the registry's document, the tool `get_health`, and progress
notifications, all through the official SDK. So a fleet that serves it serves the client the contract was written for.
"""

from pallas_testing.daedalus.chat import Blocked, Progress, StatusLine
from pallas_testing.daedalus.client import Daedalus
from pallas_testing.daedalus.health import Health
from pallas_testing.daedalus.registry import Agent, NotARegistry

__all__ = ["Agent", "Blocked", "Daedalus", "Health", "NotARegistry", "Progress", "StatusLine"]
