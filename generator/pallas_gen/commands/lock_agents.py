"""What `pallas-gen lock` and `pallas-gen plan` do with agents.lock: write it, and compare the fleet with it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from pallas_contract import limited_file, names
from pallas_contract.codes import Code
from pallas_contract.documents import lock as locks
from pallas_contract.documents.lock import Lock
from pallas_contract.problems import Problem, Refused, Where
from pallas_gen.clients import entries
from pallas_gen.comparison import changes, side
from pallas_gen.comparison.changes import Change
from pallas_gen.console import OK, WORLD, note, read_plan
from pallas_gen.locking import image_digests, members, served_tools
from pallas_gen.locking.served_tools import Served
from pallas_gen.output import write as output
from pallas_gen.plan import Plan, build_plan
from pallas_gen.project import contents, load
from pallas_gen.running import tool

if TYPE_CHECKING:
    from pallas_gen.project.load import Loaded


def write(file: Path, registry: str | None, token_file: Path | None) -> None:
    """Write the lock of the fleet in `file`, whose warnings were printed; `registry` is asked for its agents.

    Raises:
        Refused: the project is wrong.
        typer.Exit: the registry or an agent does not answer.
    """
    loaded = load.load(file, os.environ, allow_plain_secrets=True)
    former = None
    with contextlib.suppress(Refused):  # what is no lock is written anew
        former = _read(loaded.folder)
    current = _current(loaded, build_plan(loaded.fleet, loaded.config, loaded.project), registry, token_file)
    lock = members.completed(current, former, lasting=True)
    changed = output.write_in_place(loaded.folder / names.LOCK_FILE, locks.render(lock))
    note(f"{'wrote' if changed else 'unchanged'} {os.path.relpath(loaded.folder / names.LOCK_FILE)}")
    if toolless := [name for name, member in lock.agents.items() if member.tools is None]:
        note(f"without the tools of {', '.join(toolless)}: lock them with --registry URL while the fleet runs")


def check(file: Path, registry: str | None, token_file: Path | None) -> None:
    """Say what of the fleet in `file` is not as its lock has it.

    Raises:
        typer.Exit: always with 1 where something is not.
    """
    former, lock = _both(file, registry, token_file)
    if former is None:
        typer.echo(f"{names.LOCK_FILE} is not there: `pallas-gen lock` writes it", err=True)
        raise typer.Exit(WORLD)
    differences = _between(former, lock)
    if differences:
        typer.echo(changes.text(differences), nl=False)
    elif locks.render(former) != locks.render(lock):
        typer.echo(f"{names.LOCK_FILE} would be written otherwise: `pallas-gen lock` writes it anew")
    else:
        note(f"{names.LOCK_FILE} is what is here")
        return
    raise typer.Exit(WORLD)


def plan(file: Path, registry: str | None, token_file: Path | None, form: Literal["text", "json"]) -> None:
    """Print what changes from the lock to the fleet in `file`.

    Raises:
        Refused: there is no lock, or something is wrong with it or the project.
        typer.Exit: with 1 where something breaks, else 0.
    """
    former, lock = _both(file, registry, token_file)
    if former is None:
        where = Where(os.path.relpath(file.parent / names.LOCK_FILE))
        raise Refused([Problem(where, "is not there", "`pallas-gen lock` writes it", code=Code.LOCK_FILE)])
    differences = _between(former, lock)
    text = json.dumps(changes.document(differences), indent=2) if form == "json" else changes.text(differences)
    typer.echo(text.rstrip("\n"))
    raise typer.Exit(WORLD if any(change.effect == "breaking" for change in differences) else OK)


def _both(file: Path, registry: str | None, token_file: Path | None) -> tuple[Lock | None, Lock]:
    """Return the lock that is there, and the one that would be: what cannot be known now is as it was."""
    loaded, plan = read_plan(file, mounted=False, allow_plain_secrets=True)
    former = _read(loaded.folder)
    return former, members.completed(_current(loaded, plan, registry, token_file), former, lasting=False)


def _between(former: Lock, lock: Lock) -> list[Change]:
    return changes.between(members.facts_of(former), members.facts_of(lock))


def _read(folder: Path) -> Lock | None:
    try:
        return locks.parse(limited_file.read(folder / names.LOCK_FILE, locks.LARGEST))
    except FileNotFoundError:
        return None


def _current(loaded: Loaded, plan: Plan, registry: str | None, token_file: Path | None) -> Lock:
    served = _served(loaded, registry, token_file) if registry else Served({}, {})
    return members.lock(
        loaded.fleet,
        plan,
        contents.read_all(loaded.folder, plan),
        digests=image_digests.digests({workload.image for workload in plan.workloads}, tool.run),
        tools=served.tools,
    )


def _served(loaded: Loaded, registry: str, token_file: Path | None) -> Served:
    """Return the tools of the agents behind a registry.

    Raises:
        typer.Exit: not all of those that can be asked have told them.
    """
    wanted = {names.slug(name) for name in loaded.fleet.agents}
    token = token_file.read_text("utf-8", errors="replace").strip() if token_file else ""
    try:
        listed = entries.of_registry(side.document(registry))
    except (side.NoRegistry, KeyError, TypeError, AttributeError) as error:
        known = isinstance(error, side.NoRegistry)
        typer.echo(str(error) if known else f"what answers at {registry} is no registry of pallas-kit", err=True)
        raise typer.Exit(WORLD) from None
    served = asyncio.run(served_tools.ask(listed, wanted, token))
    for name, reason in served.failures.items():
        typer.echo(f"{name}: tells no tools: {reason}", err=True)
    if served.failures:
        raise typer.Exit(WORLD)
    if served.hidden:
        note(f"not asked for their tools, without an address outside of the fleet: {', '.join(served.hidden)}")
    return served
