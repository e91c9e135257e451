"""Variables that fast-agent's files ask for (`${NAME}`): which of them nothing sets."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pallas_contract.codes import Code
from pallas_contract.fleet import fastagent, providers
from pallas_contract.fleet.fastagent import Config
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.problems import Problem


def unset(fleet: ResolvedFleet, config: Config, variables: Collection[str]) -> Iterator[Problem]:
    """Yield a warning per variable without a default that neither agents.yaml nor the environment sets.

    `variables` are those that every agent has, of the environment and `.env`.
    """
    defaults = fleet.written.defaults
    available = {*variables, *defaults.secrets, *defaults.env, *(row.url_variable for row in providers.CHECKED)}
    available |= {key for agent in fleet.written.agents.values() for key in (*agent.secrets, *agent.env)}
    wanted = {**(fastagent.variables(config.tree) if config.tree else {}), **config.variables}
    for variable, where in wanted.items():
        if variable not in available:
            hint = f"put {variable}=... into .env, or give a default: ${{{variable}:default}}"
            yield Problem(where, f"${{{variable}}} is not set anywhere", hint, "warning", code=Code.VARIABLE_NOT_SET)
