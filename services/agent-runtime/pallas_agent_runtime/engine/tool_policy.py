"""Which tools the agents of a definition have, beyond what their code says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import structlog
from fast_agent import FastAgent

from pallas_agent_runtime.calls import arguments

log = structlog.get_logger(__name__)


def one_tool_each(configs: Iterable[Any], subagents: frozenset[str]) -> None:
    """Leave one tool of each sub-agent, that with its name: `send_message` is the same, `get_health` no model needs.

    What a definition itself says of a sub-agent's tools (`tools`) holds.
    """
    for config in configs:
        for name in subagents & set(config.servers) - config.tools.keys():
            config.tools[name] = [arguments.own_tool(name)]


async def withhold_shell(app: FastAgent) -> None:
    """Give no agent of `app` fast-agent's shell, nor the file tools that come with it; who asked for one is told.

    Skills alone would bring a shell along; without it they come with one tool, which reads files of skills only.
    """
    await app.app.initialize()
    app.app.context.no_shell = True
    for name, data in app.agents.items():
        if data["config"].shell:
            log.warning("shell_withheld", definition=name, hint="set `shell: true` for the agent in agents.yaml")
