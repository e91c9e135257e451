"""Functions of an agent: its tools, as it lists them itself, and the schemas that input and output must have."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp

from pallas_gateway.own.execution import bounded
from pallas_gateway.own.failures import Failed, invalid
from pallas_gateway.own.peers import peer
from pallas_gateway.own.peers.peer import Peer, ToolCall

FRESH = 60.0
"""Seconds that a list of tools is believed."""
_SHOWN = 200
"""Characters of a problem that are shown."""

Clock = Callable[[], float]


class Functions:
    """The functions of all agents behind the gateway, listed when one of them is called."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._listed: dict[str, tuple[float, str, dict[str, dict[str, Any]]]] = {}

    async def find(
        self,
        client: aiohttp.ClientSession,
        agent: Peer,
        call: ToolCall,
        shown: Callable[[str], bool] = lambda tool: True,
    ) -> Mapping[str, Any]:
        """Return what `agent` says of the tool that `call` names (MCP, Tool); who is refused hears of those `shown`.

        `client` is what reaches it.

        Raises:
            Failed: it has no such tool, or gives no list.
        """
        listed_at, url, tools = self._listed.get(agent.host, (0.0, "", {}))
        # one that registered anew elsewhere may be another
        if url != agent.route.url or call.tool not in tools or self._clock() - listed_at > FRESH:
            tools = await peer.tools(client, agent, call)
            self._listed[agent.host] = (self._clock(), agent.route.url, tools)
        if call.tool not in tools:
            there = ", ".join(sorted(filter(shown, tools)))[:_SHOWN]
            raise Failed("unknown_function", f"Method not found: {agent} has {there}")
        return tools[call.tool]


def check_input(tool: Mapping[str, Any], value: Mapping[str, Any], *, is_stranger: bool = False) -> None:
    """Check what a function is given by the agent's own schema; work for a thread, bounded for that of a stranger.

    Raises:
        MCPError: it does not fit, or the schema is none.
    """
    if problem := _problem(tool.get("inputSchema"), value, is_stranger=is_stranger):
        field, words = problem
        raise invalid(".".join(["input", *field]), words)


def check_output(tool: Mapping[str, Any], value: Mapping[str, Any], *, is_stranger: bool = False) -> None:
    """Check what a function has answered by the agent's own schema, where it has one; work as for its input.

    Raises:
        Failed: it does not fit, or the schema is none.
    """
    if problem := _problem(tool.get("outputSchema"), value, is_stranger=is_stranger):
        field, words = problem
        raise Failed("function_error", f"the answer does not fit its schema: {'.'.join(['output', *field])}: {words}")


def _problem(schema: Any, value: Mapping[str, Any], *, is_stranger: bool) -> tuple[list[str], str] | None:
    """Return the path and the words of the first problem; None where there is none, or no schema."""
    if not isinstance(schema, dict):
        return None
    # some ten megabytes, for gateways that are asked for it
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415
    from jsonschema.exceptions import best_match  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    try:
        if is_stranger:
            schema = bounded.without_costly(schema)
            bounded.begin()
        Draft202012Validator.check_schema(schema)
        validator = bounded.validator() if is_stranger else Draft202012Validator
        # a registry of its own, which is empty: no schema is fetched from anywhere
        error = best_match(validator(schema, registry=Registry()).iter_errors(value))
    except (SchemaError, Unresolvable, RecursionError, bounded.TooMuchWork) as problem:
        return [], f"its schema cannot be used: {type(problem).__name__}"
    return ([str(part) for part in error.absolute_path], error.message[:_SHOWN]) if error else None
