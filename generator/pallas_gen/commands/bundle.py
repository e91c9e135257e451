"""`pallas-gen bundle`: all that a fleet runs with, for a site without a network, and the check at the other end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pallas_gen.console import WORLD, FleetOption, FleetPath, FormOption, command, fleet_file, note, report, reporting

Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", help="A folder, or a file that ends in .tar. Default: NAME-VERSION.bundle.tar here."
    ),
]
Verify = Annotated[
    Path | None, typer.Option("--verify", metavar="BUNDLE", help="Check a bundle instead; nothing of it is loaded.")
]


def add_bundle(app: typer.Typer) -> None:
    """Add the command to `app`."""
    command(app, "bundle", "pallas-gen bundle desk -o desk.tar")(_bundle)


def _bundle(
    path: FleetPath = None,
    *,
    option: FleetOption = None,
    output: Output = None,
    verify: Verify = None,
    form: FormOption = "text",
) -> None:
    """Put images, compose files, chart, SBOMs and checksums of the fleet into one place, and nothing from outside."""
    if verify is None:
        from pallas_gen.commands import bundle_fleet

        if form != "text":
            raise typer.BadParameter("is for --verify", param_hint="--format")
        bundle_fleet.write(fleet_file(path, option), output)
        return
    if path or option or output:
        raise typer.BadParameter("needs the bundle alone: no fleet file and no -o", param_hint="--verify")
    from pallas_gen.bundle import verify as verification

    with reporting(form, verify):
        with verification.opened(verify) as store:
            problems = list(verification.problems(store))
        report(problems)
        if problems:
            raise typer.Exit(WORLD)
        note(f"{verify}: every file is as it was packed, and every image that compose and chart name is in it")
