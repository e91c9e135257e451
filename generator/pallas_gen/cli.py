"""`pallas-gen`: the only place that prints and exits. 0 done, 1 the world is not as needed, 2 the input is wrong.

A command imports what it needs when it runs: `--help` and completion import nothing but the declarations.
"""

from __future__ import annotations

import atexit
import gc
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from pallas_contract import __version__, names
from pallas_contract.problems import Refused
from pallas_gen import arguments
from pallas_gen.commands.audit.verify import add_audit
from pallas_gen.commands.building.build import add_build
from pallas_gen.commands.bundle import add_bundle
from pallas_gen.commands.clients import add_clients
from pallas_gen.commands.diff import add_diff
from pallas_gen.commands.doctor import add_doctor
from pallas_gen.commands.drawing.graph import add_graph
from pallas_gen.commands.lock import add_lock
from pallas_gen.commands.targets import add_commands
from pallas_gen.console import (
    DEFAULT_FILE,
    INPUT,
    OK,
    WORLD,
    AllowPlainSecrets,
    FleetOption,
    FleetPath,
    Form,
    FormOption,
    command,
    fleet_file,
    note,
    read_plan,
    report,
    reporting,
)
from pallas_gen.targets.table import TARGETS

if TYPE_CHECKING:
    from pallas_gen.verify import Report

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

_BY_NAME = {target.name: target for target in TARGETS}

add_commands(app, TARGETS)
add_build(app)
add_lock(app)
add_diff(app)
add_graph(app)
add_doctor(app)
add_clients(app)
add_bundle(app)
add_audit(app)


@command(app, "validate", "pallas-gen validate desk --format sarif")
def validate(
    path: FleetPath = None,
    *,
    option: FleetOption = None,
    form: FormOption = "text",
    allow_plain_secrets: AllowPlainSecrets = False,
) -> None:
    """Check the fleet file and the files beside it; show every problem."""
    file = fleet_file(path, option)
    with reporting(form, file):
        loaded, plan = read_plan(file, allow_plain_secrets=allow_plain_secrets)
        report(loaded.absent_here, file.parent)
        agents = sum(workload.kind == "agent" for workload in plan.workloads)
        note(f"{file}: {agents} agent{'s' if agents != 1 else ''}, no errors")


@command(app, "verify", "pallas-gen verify desk --running")
def verify(
    path: FleetPath = None,
    *,
    option: FleetOption = None,
    form: FormOption = "text",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder that was written to. Default: the one of each target.")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help=f"Only this target, which must be there: {', '.join(_BY_NAME)}.")
    ] = None,
    running: Annotated[
        bool, typer.Option("--running", help="Compare what runs instead: the fleet's containers.")
    ] = False,
    namespace: Annotated[
        str | None, typer.Option("-n", "--namespace", help="With --running: the release in this namespace instead.")
    ] = None,
) -> None:
    """Compare the files that were written, or what runs, with the plan. Exit 1 when they differ."""
    if running:
        if target or output:
            raise typer.BadParameter("compares no files: leave --target and -o out", param_hint="--running")
        _verify_running(fleet_file(path, option), namespace, form)
        return
    if namespace:
        raise typer.BadParameter("is for --running", param_hint="-n")
    if unknown := [name for name in target or () if name not in _BY_NAME]:
        raise typer.BadParameter(f"there is no target {unknown[0]}: {', '.join(_BY_NAME)}", param_hint="--target")
    from pallas_gen import verify as verification

    file = fleet_file(path, option)
    with reporting(form, file):
        loaded, plan = read_plan(file, allow_plain_secrets=True)
        result = verification.verify(
            loaded,
            plan,
            [_BY_NAME[name] for name in target] if target else TARGETS,
            output=output,
            required=bool(target),
            command=lambda row, options: _command_line(row.name, file, output, options),
        )
        report(result.problems)
        if result.problems:
            raise typer.Exit(WORLD)
        for line in _summary(result, len(plan.workloads)):
            note(f"{file}: {line}")


def _verify_running(file: Path, namespace: str | None, form: Form) -> None:
    """Compare what runs with the plan, and report the differences."""
    import os

    from pallas_gen.running import check, tool

    with reporting(form, file):
        _, plan = read_plan(file, allow_plain_secrets=True)
        problems = check.problems(plan, file.parent, namespace, environ=os.environ, run=tool.run)
        report(problems)
        if any(problem.level == "error" for problem in problems):
            raise typer.Exit(WORLD)
        where = f"namespace {namespace}" if namespace else "its containers"
        but = " but for what the warnings say" if problems else ""
        note(f"{file}: what runs in {where} is the plan{but}, in all of its {len(plan.workloads)} workloads")


def _command_line(verb: str, file: Path, output: Path | None, options: Iterable[str]) -> str:
    where = [*(["-f", str(file)] if file != DEFAULT_FILE else []), *(["-o", str(output)] if output else [])]
    return shlex.join(["pallas-gen", verb, *where, *(f"--{option}" for option in options)])


def _summary(result: Report, count: int) -> Iterator[str]:
    running = [row.noun for row in result.checked if row.read_back]
    others = [row.noun for row in result.checked if not row.read_back]
    if running:
        yield f"{_are(running)} the plan, in all of its {count} workloads"
    if others:
        yield f"{_are(others)} as pallas-gen writes {'it' if len(others) == 1 else 'them'}"
    for row in result.absent:
        yield f"not here, and so not compared: {row.noun} (`pallas-gen {row.name}` writes it)"


def _are(nouns: list[str]) -> str:
    return f"{' and '.join(nouns)} {'is' if len(nouns) == 1 else 'are'}"


@command(explain_app, "network", "pallas-gen explain network desk")
def explain_network(path: FleetPath = None, *, option: FleetOption = None) -> None:
    """Say who may reach whom in the fleet, and why."""
    from pallas_gen import explain

    _, plan = read_plan(fleet_file(path, option), allow_plain_secrets=True)
    typer.echo(explain.explain(plan))


@command(app, "schema", "pallas-gen schema > agents.schema.json")
def print_schema() -> None:
    """Print the JSON schema of agents.yaml, for editors."""
    from pallas_gen import schema

    typer.echo(schema.agents_schema(), nl=False)


@command(app, "probe", "pallas-gen probe http://127.0.0.1:24101/mcp")
def probe_url(
    url: Annotated[str, typer.Argument(help="An MCP endpoint, for example http://127.0.0.1:24101/mcp.")],
    path: FleetPath = None,
    *,
    deep: Annotated[bool, typer.Option("--deep/--shallow", help="Also ask the agent's get_health.")] = True,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for the whole probe.")] = names.PROBE_TIMEOUT,
    token: Annotated[
        Path | None, typer.Option("--token-file", help="File with a token to show to the endpoint.", exists=True)
    ] = None,
    option: FleetOption = None,
) -> None:
    """Ask one MCP endpoint how it is, the way the registry does. Exit 1 when it is in error, or refuses the token.

    Where nobody is there, the registry of the fleet file is asked why: it knows of an agent that refused its input.
    """
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        hint = f": write http://{url}" if "://" not in url and urlsplit(f"http://{url}").hostname else ""
        raise typer.BadParameter(f"{url!r} is no http(s) URL{hint}", param_hint="URL")
    headers = {"authorization": f"Bearer {_token(token)}"} if token else {}
    import asyncio

    from pallas_contract.probe import probe
    from pallas_gen.commands.registry_word import registry_word

    result = asyncio.run(probe.probe(probe.Target(url, deep=deep, headers=headers), timeout=timeout))
    who = f"  {result.name} {result.version}".rstrip()
    era = f"  MCP {result.era}" if result.era else ""
    reason = f"  {result.reason.message}" if result.reason.message else ""
    if result.reason.code in _NOBODY and (word := asyncio.run(registry_word(url, fleet_file(path, option)))):
        reason += f"; the registry says: {word}"
    if result.reason.message == "HTTP 404" and urlsplit(url).path != names.MCP_PATH:
        reason += f"; is the path {names.MCP_PATH} right?"
    refused = token is not None and result.reason.code == "Unauthorized"
    if refused:
        reason = f"  does not accept the token in {token} (HTTP {result.status})"
    typer.echo(f"{result.state}{era}{who}  {result.latency * 1000:.0f} ms{reason}")
    raise typer.Exit(OK if result.reachable and not refused else WORLD)


_NOBODY = frozenset({"NameNotFound", "ConnectionRefused", "ConnectionReset", "ConnectionFailed", "NoAnswer"})
"""Codes of reasons that say where the endpoint is not, and nothing of why."""


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
    atexit.register(gc.freeze)  # a last look at all objects for cycles is a sixth of a short command
    words = arguments.arranged(sys.argv[1:])
    if words and words[0] in arguments.OTHERS:
        typer.echo(f"there is no command `{words[0]}`: {arguments.OTHERS[words[0]]}", err=True)
        sys.exit(INPUT)
    try:
        app(words)
    except Refused as refused:
        report(refused.problems)
        sys.exit(INPUT)
    except OSError as error:  # the world: a full disk, a folder that is none, a file nobody may read
        typer.echo(f"{error.filename or 'pallas-gen'}: {(error.strerror or str(error)).lower()}", err=True)
        sys.exit(WORLD)
