"""`pallas-gen`: the only place that prints and exits. 0 done, 1 the world is not as needed, 2 the input is wrong."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Annotated
from urllib.parse import urlsplit

import typer
import yaml

from pallas_contract import __version__, names
from pallas_contract.probe import probe
from pallas_contract.problems import Problem, Refused, Where, refuse_errors
from pallas_gen import explain, schema
from pallas_gen import verify as pallas_gen_verify
from pallas_gen.output import write
from pallas_gen.plan import Plan, build_plan
from pallas_gen.project import configmaps, load
from pallas_gen.targets import image as image_target
from pallas_gen.targets import observability as observability_target
from pallas_gen.targets.compose import render as compose_target
from pallas_gen.targets.compose import subnets
from pallas_gen.targets.helm import chart, template
from pallas_gen.targets.helm import render as helm_target

OK, WORLD, INPUT = 0, 1, 2

app = typer.Typer(
    name="pallas-gen",
    help="Turn agents.yaml into something that runs a fleet of MCP agents.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

explain_app = typer.Typer(help="Say what was decided, and why.", no_args_is_help=True)
app.add_typer(explain_app, name="explain")

AgentsFile = Annotated[Path, typer.Option("-f", "--file", envvar=names.ENV_AGENTS_CONFIG, help="The fleet file.")]
OutDir = Annotated[Path | None, typer.Option("-o", "--output", help="Folder to write to. Default: beside the file.")]
Check = Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 when a file would change.")]
Diff = Annotated[bool, typer.Option("--diff", help="Write nothing; show what would change.")]
Stdout = Annotated[bool, typer.Option("--stdout", help="Write nothing; print the files.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that were edited by hand.")]

DEFAULT_FILE = Path(names.AGENTS_FILE)


@app.command()
def compose(
    file: AgentsFile = DEFAULT_FILE,
    output_dir: OutDir = None,
    check: Check = False,
    diff: Diff = False,
    stdout: Stdout = False,
    force: Force = False,
) -> None:
    """Write compose.yaml: one service per agent, and the registry."""
    plan, folder = _plan(file)
    target = (output_dir or folder).resolve()
    way = PurePosixPath(os.path.relpath(folder, target))
    _deliver(_compose_files(plan, way), target, check=check, diff=diff, stdout=stdout, force=force)


@app.command()
def helm(
    file: AgentsFile = DEFAULT_FILE,
    output_dir: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder to write to. Default: `chart` beside the file.")
    ] = None,
    values_only: Annotated[
        bool, typer.Option("--values-only", help="Write values.yaml alone, for the published chart.")
    ] = False,
    check: Check = False,
    diff: Diff = False,
    stdout: Stdout = False,
    force: Force = False,
) -> None:
    """Write a Helm chart: the kit's own, and the values that make it this fleet."""
    plan, folder = _plan(file, mounted=False)
    _tell(refuse_errors(helm_target.problems(plan)))
    read = configmaps.read(folder, plan)
    if values_only:
        files = helm_target.render_values(plan, read)
    else:
        files = helm_target.render(plan, read, chart.read())
        files = files | {write.SUMS: write.sums({path: files[path] for path in files if path != helm_target.FILE})}
    target = (output_dir or folder / "chart").resolve()
    _deliver(files, target, check=check, diff=diff, stdout=stdout, force=force)
    if not (check or diff or stdout):
        for line in helm_target.next_steps(plan, os.path.relpath(target), os.path.relpath(folder)):
            typer.echo(line)


@app.command()
def image(
    file: AgentsFile = DEFAULT_FILE,
    check: Check = False,
    diff: Diff = False,
    stdout: Stdout = False,
    force: Force = False,
) -> None:
    """Write Dockerfile.fleet, which bakes the project's code into the agent image."""
    plan, folder = _plan(file)
    _deliver(image_target.render(plan), folder, check=check, diff=diff, stdout=stdout, force=force)


@app.command()
def observability(
    file: AgentsFile = DEFAULT_FILE,
    output_dir: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder to write to. Default: `observability` beside the file."),
    ] = None,
    check: Check = False,
    diff: Diff = False,
    stdout: Stdout = False,
    force: Force = False,
) -> None:
    """Write a scrape configuration and alert rules for Prometheus, and a dashboard for Grafana."""
    loaded = load.load(file, os.environ)
    _tell(loaded.warnings)
    target = (output_dir or loaded.folder / "observability").resolve()
    files = observability_target.render(loaded.fleet, file.name)
    _deliver(files | {write.SUMS: write.sums(files)}, target, check=check, diff=diff, stdout=stdout, force=force)


@app.command()
def validate(file: AgentsFile = DEFAULT_FILE) -> None:
    """Check the fleet file and the files beside it; show every problem."""
    plan, _ = _plan(file)
    agents = sum(item.kind == "agent" for item in plan.workloads)
    typer.echo(f"{file}: {agents} agent{'s' if agents != 1 else ''}, no errors")


@app.command()
def verify(file: AgentsFile = DEFAULT_FILE) -> None:
    """Read compose file and rendered chart back, and compare both with the plan. Exit 1 when they differ."""
    plan, folder = _plan(file)
    written = yaml.safe_load(_compose_files(plan, PurePosixPath())[compose_target.FILE])
    found = list(pallas_gen_verify.differences(plan, pallas_gen_verify.in_compose(written), "compose", http=False))
    try:
        files = helm_target.render(plan, configmaps.read(folder, plan), chart.read())
        objects = template.render(files, helm_target.secret_names(plan))
    except template.Unrenderable as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(WORLD) from None
    found += pallas_gen_verify.differences(plan, pallas_gen_verify.in_manifests(objects), "chart", http=True)
    _tell(found)
    if found:
        raise typer.Exit(WORLD)
    typer.echo(f"{file}: compose and chart are the plan, in all of its {len(plan.workloads)} workloads")


@explain_app.command("network")
def explain_network(file: AgentsFile = DEFAULT_FILE) -> None:
    """Say who may reach whom in the fleet, and why."""
    plan, _ = _plan(file)
    typer.echo(explain.explain(plan))


@app.command("schema")
def print_schema() -> None:
    """Print the JSON schema of agents.yaml, for editors."""
    typer.echo(schema.agents_schema(), nl=False)


@app.command("probe")
def probe_url(
    url: Annotated[str, typer.Argument(help="An MCP endpoint, for example http://127.0.0.1:24101/mcp.")],
    deep: Annotated[bool, typer.Option("--deep/--shallow", help="Also ask the agent's get_health.")] = True,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for the whole probe.")] = probe.TIMEOUT,
    token: Annotated[
        Path | None, typer.Option("--token-file", help="File with a token to show to the endpoint.", exists=True)
    ] = None,
) -> None:
    """Ask one MCP endpoint how it is, the way the registry does. Exit 1 when it is in error."""
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise typer.BadParameter(f"{url!r} is no http(s) URL", param_hint="URL")
    headers = {"authorization": f"Bearer {token.read_text(encoding='utf-8').strip()}"} if token else {}
    result = asyncio.run(probe.probe(probe.Target(url, deep=deep, headers=headers), timeout=timeout))
    who = f"  {result.name} {result.version}".rstrip()
    era = f"  MCP {result.era}" if result.era else ""
    typer.echo(
        f"{result.state}{era}{who}  {result.latency * 1000:.0f} ms{'  ' + result.reason if result.reason else ''}"
    )
    raise typer.Exit(OK if result.reachable else WORLD)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"pallas-gen {__version__}")
        raise typer.Exit(OK)


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def _plan(file: Path, *, mounted: bool = True) -> tuple[Plan, Path]:
    """`mounted`: containers see the files themselves, so that it matters who may read them."""
    loaded = load.load(file, os.environ)
    _tell([*loaded.warnings, *(loaded.unreadable if mounted else ())])
    return build_plan(loaded.fleet, loaded.config, loaded.project), loaded.folder


def _compose_files(plan: Plan, way: PurePosixPath) -> write.Files:
    try:
        return compose_target.render(plan, way)
    except subnets.PoolExhausted:
        where = Where(plan.source, field="networks.pool")
        hint = "set `networks: {pool: 10.64.0.0/12}` or another larger private range"
        raise Refused([Problem(where, f"the address pool {plan.pool} is too small for this fleet", hint)]) from None


def _deliver(files: write.Files, folder: Path, *, check: bool, diff: bool, stdout: bool, force: bool) -> None:
    if stdout:
        for name, text in sorted(files.items()):
            typer.echo(text if len(files) == 1 else f"# {name}\n{text}", nl=False)
        return
    if check or diff:
        changes = write.differences(files, folder)
        if diff:
            typer.echo("\n".join(changes), nl=bool(changes))
        elif changes:
            typer.echo(f"{len(changes)} of {len(files)} files in {folder} would change", err=True)
        raise typer.Exit(WORLD if changes else OK)
    written = write.write(files, folder, force=force)
    for name in sorted(files):
        path = folder / name
        typer.echo(f"{'wrote' if path in written else 'unchanged'} {os.path.relpath(path)}")


def _tell(problems: Iterable[Problem]) -> None:
    for problem in problems:
        typer.echo(str(problem), err=True)


def main() -> None:
    """Entry point: run the command line and turn what went wrong into lines and an exit code."""
    try:
        app()
    except Refused as refused:
        _tell(refused.problems)
        sys.exit(INPUT)
    except OSError as error:
        typer.echo(f"{error.filename or 'pallas-gen'}: {(error.strerror or str(error)).lower()}", err=True)
        sys.exit(WORLD)
