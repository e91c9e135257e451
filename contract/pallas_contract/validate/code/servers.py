"""Rules over the servers that an agent's code names: each is one of its `depends_on`, or a configured one."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pallas_contract.codes import Code
from pallas_contract.definitions.definition import Definition
from pallas_contract.fleet.fastagent import Config
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch import program
from pallas_contract.problems import Problem
from pallas_contract.validate.suggestions import Suggestions


class Servers:
    """The servers of a fleet; `file` is what messages call agents.yaml."""

    def __init__(self, fleet: ResolvedFleet, config: Config | None, file: str) -> None:
        self._fleet = fleet
        self._readable = config is not None
        self._config = config or Config()
        self._file = file
        self._suggestions = Suggestions()
        self._names = sorted({*fleet.agents, *fleet.services, *self._config.servers})

    def problems(self, name: str, definition: Definition) -> Iterator[Problem]:
        """Yield a problem per server of `definition`, code of agent `name`, that the agent does not have."""
        peers = program.peers(self._fleet, name, "container").keys() if definition.servers else ()
        for index, server in enumerate(definition.servers or ()):
            if server in peers or server in self._config.servers:
                continue
            if not self._readable and not self._fleet.is_member(server):
                continue
            message, hint = self._reason(name, server)
            where = definition.positions.get(f"servers.{index}", definition.where_of("servers"))
            yield Problem(where, message, hint, code=Code.UNKNOWN_SERVER)

    def called_in_process(self, name: str, definitions: Collection[Definition]) -> Iterator[Problem]:
        """Yield a warning per agent of `depends_on` that the code of agent `name` calls in its own process only."""
        served = {server for definition in definitions for server in definition.servers or ()}
        if any(definition.servers is None for definition in definitions):
            return
        for definition in definitions:
            for child, where in definition.children.items():
                if (
                    child in served
                    or child not in self._fleet.agents
                    or child not in self._fleet.agents[name].depends_on
                ):
                    continue
                message = f"`{child}` runs inside `{name}` here: the `{child}` of {self._file} is never called"
                hint = f'`servers=["{child}"]` calls that one; else remove `{child}` from agents.{name}.depends_on'
                yield Problem(where, message, hint, "warning", code=Code.CALLED_IN_PROCESS)

    def _reason(self, name: str, server: str) -> tuple[str, str]:
        fleet = self._fleet
        provides = fleet.services[server].provides if server in fleet.services else "mcp"
        if provides != "mcp":
            thing = "a model, not" if provides == "openai" else "not"
            return f"`{server}` is {thing} an MCP server", "remove it from the servers"
        if fleet.is_member(server):
            hint = f"add it in {self._file}: `depends_on: [{', '.join([*fleet.agents[name].depends_on, server])}]`"
            return f"`{server}` is not in `depends_on` of `{name}`, so it cannot be called", hint
        nearest = self._suggestions.hint(server, self._names)
        known = f"{nearest} else " if nearest.startswith("did you mean") else ""
        hint = f"{known}add it to `mcp: {{servers: ...}}` in {self._config.file}, or to `services` in {self._file}"
        return f"there is no MCP server `{server}`", hint
