"""`pallas-gen clients`: configuration for MCP clients, printed and never written: their files are the user's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Refused, Where
from pallas_gen.console import WORLD, FleetOption, command, fleet_file, is_quiet

if TYPE_CHECKING:
    from pallas_gen.clients.entries import Entries
    from pallas_gen.clients.formats import Client, Token

Name = Annotated[str | None, typer.Argument(metavar="[CLIENT]", help="Default: list the clients that there are.")]
Registry = Annotated[
    str | None, typer.Option("--registry", metavar="URL", help="Of a running fleet, instead of the fleet file.")
]
WithToken = Annotated[
    bool | None, typer.Option("--token/--no-token", help="For all agents. Default: for those that ask for one.")
]
Variable = Annotated[str, typer.Option("--variable", help="Environment variable that the client reads the token from.")]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help="File with the token, for Claude Desktop. It is named, never read.")
]


def add_clients(app: typer.Typer) -> None:
    """Add the command to `app`."""
    command(app, "clients", "pallas-gen clients claude-code > .mcp.json")(_clients)


def _clients(
    client: Name = None,
    *,
    option: FleetOption = None,
    registry: Registry = None,
    with_token: WithToken = None,
    variable: Variable = names.ENV_TOKEN,
    token_file: TokenFile = None,
) -> None:
    """Print the configuration by which an MCP client has the agents of the fleet; a token is named, never shown."""
    from pallas_gen.clients import entries as listing
    from pallas_gen.clients.formats import CLIENTS, Token

    if client is None:
        for line in _list(CLIENTS):
            typer.echo(line)
        return
    if client not in CLIENTS:
        raise typer.BadParameter(f"there is no client {client}: {', '.join(CLIENTS)}", param_hint="CLIENT")
    if not variable.isidentifier():
        raise typer.BadParameter(f"{variable!r} is no name of a variable", param_hint="--variable")
    entries = _read(option, registry)
    if with_token is not None:
        entries = listing.with_token(entries, with_token)
    asking = listing.asking(entries.reached)
    if client == "claude-desktop" and asking and token_file is None:
        raise Refused([_no_file(asking)])
    if not entries.reached:
        raise Refused([_nobody(entries.hidden)])
    token = Token(variable, str(token_file.absolute()) if token_file else "")
    typer.echo(CLIENTS[client].render(entries.reached, token), nl=False)
    if not is_quiet():
        for line in _notes(CLIENTS[client], entries, token, asking=bool(asking)):
            typer.echo(line, err=True)


def _list(clients: Any) -> Iterator[str]:
    width = max(map(len, clients))
    return (f"{name:<{width}}  {client.title}: {client.file}" for name, client in clients.items())


def _read(option: Path | None, registry: str | None) -> Entries:
    """Return the agents of the fleet file, or of the registry that is named.

    Raises:
        Refused: the fleet file or the URL is none.
        typer.Exit: no registry answers, or one that lists URLs in which clients put variables.
    """
    from pallas_contract.fleet import source
    from pallas_contract.validate import load, masking
    from pallas_gen.clients import entries
    from pallas_gen.comparison import side

    if registry is None:
        return entries.of_fleet(load.parse(source.read(fleet_file(None, option))))
    if not side.is_registry(registry):
        raise typer.BadParameter(f"{masking.masked(registry)!r} is no http(s) URL", param_hint="--registry")
    try:
        listed = entries.of_registry(side.document(registry))
        if not (expanded := entries.expanded(listed.reached)):
            return listed
        typer.echo(
            f"clients would put their own variables into the URLs that the registry at {registry} has of "
            f"{', '.join(expanded)}: the kit's registry takes none with `$`, `{{` or `}}`",
            err=True,
        )
    except side.NoRegistry as error:
        typer.echo(f"{error}", err=True)
    except (KeyError, TypeError, AttributeError):
        typer.echo(f"what answers at {registry} is no registry of pallas-kit", err=True)
    raise typer.Exit(WORLD)


def _no_file(asking: list[str]) -> Problem:
    message = f"is needed: {', '.join(asking)} ask for a token, and Claude Desktop hands no variable of yours on"
    return Problem(Where("--token-file"), message, "name the file that holds it", code=Code.MISSING_OPTION)


def _nobody(hidden: tuple[str, ...]) -> Problem:
    message = f"no agent has an address outside of the fleet: {', '.join(hidden)}" if hidden else "there is no agent"
    hint = "publish one (`publish: true`), or lead to it by `gateway: {agents: [NAME]}`"
    return Problem(Where("clients"), message, hint, code=Code.NO_ADDRESS)


def _notes(client: Client, entries: Entries, token: Token, *, asking: bool) -> Iterator[str]:
    yield f"{client.title}: put it into {client.file}; {client.note}"
    if asking:
        yield f"{client.title}: {client.token.format(variable=token.variable, file=token.file)}"
    if registered := [entry.name for entry in entries.reached if entry.registered]:
        yield f"registered by others, and so without the token: {', '.join(registered)}"
    if entries.hidden:
        yield f"without an address outside of the fleet, and so left out: {', '.join(entries.hidden)}"
