"""`pallas-gen diff`: what changes between two fleets, for whom; exit code 1 where somebody has to do something."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pallas_gen.console import OK, WORLD, FleetOption, command, fleet_file

if TYPE_CHECKING:
    from pallas_contract.launch.addresses import Placement
    from pallas_gen.comparison.facts import Facts

Old = Annotated[
    str, typer.Argument(metavar="OLD", help="A fleet file or folder, git:REVISION, or the URL of a registry.")
]
New = Annotated[
    str | None, typer.Argument(metavar="[NEW]", help="The same. Default: the fleet file, as of other commands.")
]
Form = Annotated[Literal["text", "json"], typer.Option("--format", help="For people, or for programs.")]


def add_diff(app: typer.Typer) -> None:
    """Add the command to `app`."""
    command(app, "diff", "pallas-gen diff git:main")(_diff)


def _diff(old: Old, new: New = None, *, option: FleetOption = None, form: Form = "text") -> None:
    """Show what changes from one fleet to another: what breaks callers or operators, what is more, what is cosmetic.

    Exit 0 where nothing breaks, 1 where something does or a registry does not answer, 2 where the input is wrong.
    """
    import json

    from pallas_gen.comparison import changes, side

    if new is not None and option is not None:
        raise typer.BadParameter("is there, and so is NEW: give one of the two", param_hint="-f")
    target = new if new is not None else str(fleet_file(None, option))
    try:
        before, after = _facts(old, target)
    except side.NoRegistry as error:
        typer.echo(f"{error}", err=True)
        raise typer.Exit(WORLD) from None
    differences = changes.between(before, after)
    output = json.dumps(changes.document(differences), indent=2) if form == "json" else changes.text(differences)
    typer.echo(output.rstrip("\n"))
    raise typer.Exit(WORLD if any(change.effect == "breaking" for change in differences) else OK)


def _facts(old: str, new: str) -> tuple[Facts, Facts]:
    """Return both sides; the addresses of a file are those of the target that a registry on the other side runs on."""
    from pallas_gen.comparison import facts, side

    registries = {}
    for url in {old, new}:
        if side.is_registry(url):
            try:
                registries[url] = facts.of_registry(side.document(url))
            except (KeyError, TypeError, AttributeError):
                raise side.NoRegistry(f"what answers at {url} is no registry of pallas-kit") from None
    placement: Placement = next((registry.placement for registry in registries.values()), "container")

    def read(text: str, other: str) -> Facts:
        if text in registries:
            return registries[text]
        plain = not side.is_registry(other) and not other.startswith(side.GIT)
        beside = fleet_file(Path(other) if plain else None, None)
        return facts.of_fleet(side.fleet(text, beside), placement)

    return read(old, new), read(new, old)
