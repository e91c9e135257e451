"""Tools of the agents of a definition: which they have beyond what their code says, and which callers may call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import structlog
from fast_agent import FastAgent
from mcp_types import Tool

from pallas_agent_runtime.calls import arguments
from pallas_agent_runtime.config.settings import Settings
from pallas_contract.codes import Code
from pallas_contract.documents import health
from pallas_contract.problems import Refused

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


async def functions(agent: Any, settings: Settings) -> dict[str, Tool]:
    """Return the tools of fast-agent's `agent` that are named under `functions`, by their names.

    Raises:
        Refused: a name is that of a tool that every agent has, or the agent defines no such tool.
    """
    if not settings.agent.functions:
        return {}
    tools = {tool.name: tool for tool in (await agent.list_tools()).tools if "__" not in tool.name}
    reserved = {arguments.SEND, health.TOOL, settings.name}
    problems = []
    for index, name in enumerate(settings.agent.functions):
        at = ("agents", settings.name, "functions", index)
        if name in reserved:
            message = f"`{name}` is a tool of the agent already, which takes a message"
            hint = "give the function another name"
        elif name not in tools:
            message = f"the agent has no function `{name}`, only {', '.join(sorted(tools)) or 'none at all'}"
            hint = "add it to the agent's tools in its code (`function_tools`, `add_tool`), or take it out here"
        else:
            continue
        problems.append(settings.tree.problem(*at, message=message, hint=hint, code=Code.FUNCTION_TOOL))
    if problems:
        raise Refused(problems)
    return {name: tools[name] for name in settings.agent.functions}
