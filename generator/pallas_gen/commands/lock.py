"""`pallas-gen lock`: versions and hashes of everything that the MCP servers on stdio bring along."""

from __future__ import annotations

from typing import Annotated

import typer

from pallas_gen.console import FleetOption, FleetPath, command, fleet_file

Upgrade = Annotated[bool, typer.Option("--upgrade", help="Resolve all servers again, to the newest versions allowed.")]


def add_lock(app: typer.Typer) -> None:
    """Add the command to `app`."""
    command(app, "lock", "pallas-gen lock desk --upgrade")(_lock)


def _lock(path: FleetPath = None, *, option: FleetOption = None, upgrade: Upgrade = False) -> None:
    """Write servers.lock.json: all that `uvx` and `npx` would fetch for MCP servers, with hashes, for the build."""
    from pallas_gen.commands import lock_servers

    lock_servers.run(fleet_file(path, option), upgrade=upgrade)
