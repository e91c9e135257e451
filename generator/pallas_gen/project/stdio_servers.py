"""The programs of MCP servers on stdio, which an agent starts itself: whether its image has them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from pallas_contract.codes import Code
from pallas_contract.fleet.fastagent import VARIABLE, Command
from pallas_contract.problems import Problem
from pallas_contract.project import availability
from pallas_gen.dependencies import launch, recipe

IMAGE_COMMANDS = frozenset({"bash", "env", "perl", "python", "python3", "python3.13", "sh"})
"""Programs of the agent image that an MCP server may be started with (Dockerfile.agent).

The packages of `uvx` and `npx` are put into the fleet's image, and Node with them.
"""


_OF_THE_SYSTEM = ("/bin/", "/usr/bin/", "/usr/local/bin/")


def missing(commands: Mapping[str, Command], folder: Path, find: availability.Find = shutil.which) -> Iterator[Problem]:
    """Yield a warning per server that no image will have; a path inside the project is taken for a delivered file.

    As a process the agent starts it all the same, with what this machine has: what `find` gives a path for.
    """
    for command in commands.values():
        program = command.program
        name = PurePosixPath(program).name if program.startswith(_OF_THE_SYSTEM) else program
        known = name in IMAGE_COMMANDS or name in launch.KINDS or name == "node"
        delivered = "/" in program and not program.startswith("/")
        if message := recipe.command_problem(command):
            hint = "write it as `uvx PACKAGE ...` or `npx -y PACKAGE ...`, with the version after `@`"
            message = f"{message}: in a container this server never starts"
            yield Problem(command.where, message, hint, "warning", code=Code.SERVER_NOT_IN_IMAGE)
        elif program and not delivered and not known and not VARIABLE.search(program):
            message = f"the agent image has no `{program}`: in a container this server never starts"
            hint = (
                "set `image.agent` to an image that has it, bring the server along under `services`, or call it by URL"
            )
            if reason := availability.missing(command, folder, find):
                message = f"{reason.removesuffix(' here')}, neither here nor in the agent image: it never starts"
                hint = f"correct the name or install it; for containers {hint}"
            yield Problem(command.where, message, hint, "warning", code=Code.SERVER_NOT_IN_IMAGE)
