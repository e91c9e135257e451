"""Which tools the agents of a definition have, beyond what their code says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pallas_agent_runtime.calls import arguments


def one_tool_each(configs: Iterable[Any], subagents: frozenset[str]) -> None:
    """Leave one tool of each sub-agent, that with its name: `send_message` is the same, `get_health` no model needs.

    What a definition itself says of a sub-agent's tools (`tools`) holds.
    """
    for config in configs:
        for name in subagents & set(config.servers) - config.tools.keys():
            config.tools[name] = [arguments.own_tool(name)]
