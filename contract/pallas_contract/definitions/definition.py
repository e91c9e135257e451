"""One agent as its module or card defines it, and everything that one such file defines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pallas_contract.definitions.named_files import NamedFile
from pallas_contract.problems import Problem, Where

CHILDREN = ("agents", "sequence", "fan_out", "fan_in", "generator", "evaluator", "worker")
"""Arguments and keys that name agents which fast-agent runs beside this one, in its process."""


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A tool that is a function in a file, as `FILE.py:FUNCTION`."""

    entry: str
    """As it is written."""
    where: Where
    folder: str = ""
    """The folder in the project that FILE starts from: of a card its own, else that of agents.yaml."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One agent as it is written. None stands for what is no literal and is known only where the code runs."""

    name: str | None
    kind: str
    """fast-agent's decorator (`agent`, `custom`, `chain`), or the card's `type`."""
    where: Where
    servers: tuple[str, ...] | None = ()
    """MCP servers by name, as in fastagent.config.yaml."""
    model: str | None = ""
    """Empty where none is written: the configuration's `default_model` is meant."""
    skills: tuple[str, ...] | None = ()
    """Folders of skills that it names."""
    shell: bool = False
    """Whether it asks for fast-agent's shell."""
    urls: tuple[str, ...] = ()
    """Servers that a card names by URL itself: `mcp_connect`, and the agent behind a card of type `a2a`."""
    function_tools: tuple[FunctionTool, ...] = ()
    """Those of its tools that it names by a file; functions of its own module are there with that."""
    children: Mapping[str, Where] = field(default_factory=dict)
    """Agents that fast-agent runs in the same process for it, by name, each with the place that names it."""
    files: tuple[NamedFile, ...] = ()
    """Files that it is made from, as far as literals name them."""
    positions: Mapping[str, Where] = field(default_factory=dict)
    """Each argument or key that is written, by name; of a list of servers each entry, as `servers.0`."""

    def where_of(self, key: str) -> Where:
        """Return the position of an argument or key, or of the agent where it is not written."""
        return self.positions.get(key, self.where)


@dataclass(frozen=True, slots=True)
class Definitions:
    """All agents that one agent's code defines, and the reasons why there may be more to them than could be read."""

    agents: tuple[Definition, ...] = ()
    unclear: tuple[Problem, ...] = ()

    @property
    def servers(self) -> frozenset[str]:
        """Servers that any of the agents names; `unclear` says whether these are all."""
        return frozenset(server for agent in self.agents for server in agent.servers or ())
