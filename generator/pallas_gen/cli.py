"""`pallas-gen`: the only place that prints and exits. 0 done, 1 the world is not as needed, 2 the input is wrong."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path, PurePosixPath
from typing import Annotated
from urllib.parse import urlsplit

import typer
import yaml

from pallas_contract import __version__
from pallas_contract.probe import probe
from pallas_contract.problems import Refused
from pallas_gen import explain, schema
from pallas_gen import verify as pallas_gen_verify
from pallas_gen.console import DEFAULT_FILE, INPUT, OK, WORLD, AgentsFile, read_plan, report
from pallas_gen.project import configmaps
from pallas_gen.target_commands import add_commands
from pallas_gen.targets.compose import render as compose_target
from pallas_gen.targets.helm import chart, template
from pallas_gen.targets.helm import render as helm_target
from pallas_gen.targets.table import TARGETS

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

add_commands(app, TARGETS)


@app.command()
def validate(file: AgentsFile = DEFAULT_FILE) -> None:
    """Check the fleet file and the files beside it; show every problem."""
    _, plan = read_plan(file)
    agents = sum(item.kind == "agent" for item in plan.workloads)
    typer.echo(f"{file}: {agents} agent{'s' if agents != 1 else ''}, no errors")


@app.command()
def verify(file: AgentsFile = DEFAULT_FILE) -> None:
    """Read compose file and rendered chart back, and compare both with the plan. Exit 1 when they differ."""
    loaded, plan = read_plan(file)
    written = yaml.safe_load(compose_target.render(plan, PurePosixPath())[compose_target.FILE])
    found = list(pallas_gen_verify.differences(plan, pallas_gen_verify.in_compose(written), "compose", http=False))
    try:
        files = helm_target.render(plan, configmaps.read(loaded.folder, plan), chart.read())
        objects = template.render(files, helm_target.secret_names(plan))
    except template.Unrenderable as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(WORLD) from None
    found += pallas_gen_verify.differences(plan, pallas_gen_verify.in_manifests(objects), "chart", http=True)
    report(found)
    if found:
        raise typer.Exit(WORLD)
    typer.echo(f"{file}: compose and chart are the plan, in all of its {len(plan.workloads)} workloads")


@explain_app.command("network")
def explain_network(file: AgentsFile = DEFAULT_FILE) -> None:
    """Say who may reach whom in the fleet, and why."""
    _, plan = read_plan(file)
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
    headers = {"authorization": f"Bearer {_token(token)}"} if token else {}
    result = asyncio.run(probe.probe(probe.Target(url, deep=deep, headers=headers), timeout=timeout))
    who = f"  {result.name} {result.version}".rstrip()
    era = f"  MCP {result.era}" if result.era else ""
    reason = f"  {result.reason.message}" if result.reason.message else ""
    typer.echo(f"{result.state}{era}{who}  {result.latency * 1000:.0f} ms{reason}")
    raise typer.Exit(OK if result.reachable else WORLD)


def _token(path: Path) -> str:
    text = path.read_text("utf-8", errors="replace").strip()
    if not text or not text.isascii() or not text.isprintable():
        raise typer.BadParameter(f"{path} holds no token: one line of ASCII", param_hint="--token-file")
    return text


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


def main() -> None:
    """Entry point: run the command line and turn what went wrong into lines and an exit code."""
    try:
        app()
    except Refused as refused:
        report(refused.problems)
        sys.exit(INPUT)
    except OSError as error:
        typer.echo(f"{error.filename or 'pallas-gen'}: {(error.strerror or str(error)).lower()}", err=True)
        sys.exit(WORLD)
