"""The programs of MCP servers on stdio, which an agent starts itself: whether its image has them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping

from pallas_contract.codes import Code
from pallas_contract.fleet.fastagent import Command
from pallas_contract.problems import Problem
from pallas_gen.dependencies import launch, recipe

IMAGE_COMMANDS = frozenset({"bash", "env", "perl", "python", "python3", "python3.13", "sh"})
"""Programs of the agent image that an MCP server may be started with (Dockerfile.agent).

The packages of `uvx` and `npx` are put into the fleet's image, and Node with them.
"""


def missing(commands: Mapping[str, Command], find: Callable[[str], str | None] = shutil.which) -> Iterator[Problem]:
    """Yield a warning per server that no image will have; a path is taken for a delivered file.

    As a process the agent starts it all the same, with what this machine has: what `find` gives a path for.
    """
    for command in commands.values():
        program = command.program
        known = program in IMAGE_COMMANDS or program in launch.KINDS or program == "node"
        if message := recipe.command_problem(command):
            hint = "write it as `uvx PACKAGE ...` or `npx -y PACKAGE ...`, with the version after `@`"
            yield Problem(
                command.where,
                f"{message}: in a container this server never starts",
                hint,
                "warning",
                code=Code.SERVER_NOT_IN_IMAGE,
            )
        elif program and "/" not in program and not known:
            message = f"the agent image has no `{program}`: in a container this server never starts"
            hint = (
                "set `image.agent` to an image that has it, bring the server along under `services`, or call it by URL"
            )
            if not command.own_path and not find(program):
                message = f"there is no program `{program}`, neither here nor in the agent image: it never starts"
                hint = f"correct the name or install it; for containers {hint}"
            yield Problem(command.where, message, hint, "warning", code=Code.SERVER_NOT_IN_IMAGE)
