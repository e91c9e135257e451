"""The programs of MCP servers on stdio, which an agent starts itself: whether its image has them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pallas_contract.fleet.fastagent import Command
from pallas_contract.problems import Problem

IMAGE_COMMANDS = frozenset({"bash", "env", "perl", "python", "python3", "python3.13", "sh"})
"""Programs of the agent image that an MCP server may be started with (Dockerfile.agent); `uvx` and `npx` are none."""


def missing(commands: Mapping[str, Command], available: Collection[str]) -> Iterator[Problem]:
    """Yield a warning per server whose program is not `available` in the image; a path is taken for a delivered file.

    As a process the agent starts it all the same, with what this machine has.
    """
    for command in commands.values():
        if command.program and "/" not in command.program and command.program not in available:
            message = f"the agent image has no `{command.program}`: in a container this server never starts"
            hint = (
                "set `image.agent` to an image that has it, bring the server along under `services`, or call it by URL"
            )
            yield Problem(command.where, message, hint, "warning")
