"""`pallas-gen graph`: who calls whom, and with a running registry how each member is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pallas_gen.console import WORLD, FleetOption, FleetPath, command, fleet_file, read_plan

if TYPE_CHECKING:
    from pallas_gen.graph.members import Graph

Form = Annotated[Literal["tree", "mermaid", "dot", "svg"], typer.Option("--format", help="What to draw for.")]
Registry = Annotated[
    str | None, typer.Option("--registry", metavar="URL", help="Of the running fleet: draw how each member is, too.")
]


def add_graph(app: typer.Typer) -> None:
    """Add the command to `app`."""
    command(app, "graph", "pallas-gen graph desk --format svg > desk.svg")(_graph)


def _graph(
    path: FleetPath = None, *, option: FleetOption = None, form: Form = "tree", registry: Registry = None
) -> None:
    """Draw who calls whom in the fleet, and with --registry how each member is.

    Exit 0 where it is drawn, 1 where no registry of this fleet answers, 2 where the input is wrong.
    """
    from pallas_gen.comparison import side
    from pallas_gen.graph import formats, members

    _, plan = read_plan(fleet_file(path, option), allow_plain_secrets=True)
    graph = members.of(plan)
    try:
        drawn = _asked(graph, registry) if registry else graph
    except side.NoRegistry as error:
        typer.echo(f"{error}", err=True)
        raise typer.Exit(WORLD) from None
    typer.echo(formats.FORMATS[form](drawn), nl=False)


def _asked(graph: Graph, url: str) -> Graph:
    """Return the graph with the states that the registry at `url` has.

    Raises:
        NoRegistry: there is none, or that of a fleet with another name.
        Refused: it is no URL.
    """
    from pallas_contract.launch import owner
    from pallas_gen.comparison import side
    from pallas_gen.graph import members

    try:
        agents, services = side.document(url), side.services(url)
        of_registry = owner.parse(services)
        if of_registry and of_registry.name != graph.name:
            message = f"the registry at {url} is that of the fleet `{of_registry.name}`, and not of `{graph.name}`"
            raise side.NoRegistry(message)
        return members.with_health(graph, agents, services)
    except (KeyError, TypeError, AttributeError):
        raise side.NoRegistry(f"what answers at {url} is no registry of pallas-kit") from None
