"""`pallas-gen doctor`: what stands between a project and its fleet on this machine, and what to do about it."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from pallas_contract import names
from pallas_gen.console import INPUT, OK, WORLD, FleetOption, FleetPath, Form, command, fleet_file, is_quiet, is_verbose

_TARGETS = ("processes", "compose", "helm")
Targets = Annotated[
    list[str] | None,
    typer.Option("--target", help=f"What that needs and is missing is an error: {', '.join(_TARGETS)}."),
]
FormOption = Annotated[Form, typer.Option("--format", help="For people, for programs, or errors and warnings alone.")]


def add_doctor(app: typer.Typer) -> None:
    """Add the command to `app`."""
    command(app, "doctor", "pallas-gen doctor desk --target compose")(_doctor)


def _doctor(
    path: FleetPath = None, *, option: FleetOption = None, target: Targets = None, form: FormOption = "text"
) -> None:
    """Look at this machine and the project: tools, keys, ports, images, host names, and the fleet if it runs.

    Nothing is changed. Exit 0 where nothing stands in the way, 1 where something does, 2 where the project is wrong.
    """
    import json

    from pallas_contract import reports
    from pallas_gen.doctor import finding
    from pallas_gen.doctor.examine import examine
    from pallas_gen.doctor.machine import Machine

    if unknown := [name for name in target or () if name not in _TARGETS]:
        raise typer.BadParameter(f"there is no target {unknown[0]}: {', '.join(_TARGETS)}", param_hint="--target")
    file = fleet_file(path, option)
    # without any fleet file here, the machine alone is what can be looked at
    project = bool(path or option or os.environ.get(names.ENV_AGENTS_CONFIG)) or file.is_file()
    findings = examine(file, Machine(), target or (), project=project)
    if form == "json":
        typer.echo(json.dumps(finding.document(findings), indent=2, ensure_ascii=False))
    elif form == "sarif":
        found = finding.problems(findings)
        located = [reports.located(problem, os.path.relpath(file.parent)) for problem in found]
        typer.echo(reports.render("sarif", located, tool="pallas-gen"), nl=False)
    else:
        typer.echo(finding.text(findings, quiet=is_quiet(), verbose=is_verbose()), nl=False)
    errors = [entry for entry in findings if entry.state == "error"]
    wrong = any(entry.topic == "project" for entry in errors)
    raise typer.Exit(INPUT if wrong else WORLD if errors else OK)
