"""Shells that the code of an agent asks for, and that agents.yaml does not let it have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pallas_contract.codes import Code
from pallas_contract.definitions.definition import Definitions
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.problems import Problem


def withheld(fleet: ResolvedFleet, definitions: Mapping[str, Definitions]) -> Iterator[Problem]:
    """Yield a warning per definition that asks for a shell, where the agent has no `shell: true`."""
    for name, code in definitions.items():
        for definition in code.agents:
            if definition.shell and not fleet.agents[name].shell:
                hint = f"set agents.{name}.shell to true, if its callers may have programs run; or remove it here"
                where = definition.where_of("shell")
                yield Problem(
                    where,
                    "it runs without a shell: agents.yaml does not let it have one",
                    hint,
                    "warning",
                    code=Code.SHELL_WITHHELD,
                )
