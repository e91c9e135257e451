"""`pallas-gen lock`: agents.lock, what the fleet is, and servers.lock.json, what its servers on stdio bring along.

`pallas-gen plan` says what would change for whom against the former.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pallas_gen.console import FleetOption, FleetPath, command, fleet_file

Upgrade = Annotated[bool, typer.Option("--upgrade", help="Resolve all servers again, to the newest versions allowed.")]
Check = Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 and say what differs from agents.lock.")]
Registry = Annotated[
    str | None, typer.Option("--registry", metavar="URL", help="Of the running fleet, whose agents tell their tools.")
]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help="File with a token for agents with access.", exists=True)
]
Form = Annotated[Literal["text", "json"], typer.Option("--format", help="For people, or for programs.")]


def add_lock(app: typer.Typer) -> None:
    """Add both commands to `app`."""
    command(app, "lock", "pallas-gen lock desk --registry http://127.0.0.1:24200")(_lock)
    command(app, "plan", "pallas-gen plan desk")(_plan)


def _lock(
    path: FleetPath = None,
    *,
    option: FleetOption = None,
    check: Check = False,
    registry: Registry = None,
    token_file: TokenFile = None,
    upgrade: Upgrade = False,
) -> None:
    """Write agents.lock: images, configuration, code and tools of each agent. The registry compares the fleet with it.

    Where agents start MCP servers by `uvx` or `npx`, servers.lock.json too: all that these would fetch, with hashes.
    """
    from pallas_gen.commands import lock_agents, lock_servers

    file = fleet_file(path, option)
    if not check:
        lock_servers.run(file, upgrade=upgrade)
        lock_agents.write(file, registry, token_file)
        return
    if upgrade:
        raise typer.BadParameter("writes, and --check does not: give one of the two", param_hint="--upgrade")
    lock_agents.check(file, registry, token_file)


def _plan(
    path: FleetPath = None,
    *,
    option: FleetOption = None,
    registry: Registry = None,
    token_file: TokenFile = None,
    form: Form = "text",
) -> None:
    """Show what changes from agents.lock to the fleet as it is here: what breaks, what is more, what is cosmetic.

    Exit 0 where nothing breaks, 1 where something does or nobody answers, 2 where the input is wrong.
    """
    from pallas_gen.commands import lock_agents

    lock_agents.plan(fleet_file(path, option), registry, token_file, form)
