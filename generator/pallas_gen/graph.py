"""Who calls whom in a fleet, drawn: as a tree for a terminal, for Mermaid (READMEs, wikis) and for Graphviz. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pallas_contract import names
from pallas_gen.plan import Plan


@dataclass(frozen=True, slots=True)
class Graph:
    """Members by host name with their kind, in the plan's order without the registry, and who calls whom, sorted."""

    name: str
    kinds: Mapping[str, str]
    edges: Mapping[tuple[str, str], bool]
    """Caller and called -> whether the caller waits for it."""

    def called_by(self, caller: str) -> list[str]:
        return [called for one, called in self.edges if one == caller]


def of(plan: Plan) -> Graph:
    """Return the graph of what agents, services and the gateway call; the registry, which probes all, is left out."""
    workloads = [workload for workload in plan.workloads if workload.host != names.REGISTRY]
    waits_for = {workload.host: workload.waits_for for workload in workloads}
    edges = {
        (caller, called): called in waits_for[caller] for caller, called in sorted(plan.edges) if caller in waits_for
    }
    return Graph(plan.name, {workload.host: workload.kind for workload in workloads}, edges)


def tree(graph: Graph) -> str:
    """Return lines: each member that nobody calls, and below it whom it calls; what stands above is not repeated.

    Of members that call each other, and that nobody else calls, the first one stands for all.
    """
    called = {called for _, called in graph.edges}
    roots = [member for member in graph.kinds if member not in called]
    drawn: set[str] = set()
    lines: list[str] = []
    for member in (*roots, *graph.kinds):
        if member not in drawn:
            lines += _branch(graph, member, drawn, begin="", indent="")
    return "".join(f"{line}\n" for line in lines)


def _branch(graph: Graph, member: str, drawn: set[str], *, begin: str, indent: str) -> Iterator[str]:
    children = graph.called_by(member)
    again = member in drawn and children
    kind = "" if graph.kinds[member] == "agent" else f" ({graph.kinds[member]})"
    yield f"{begin}{member}{kind}{' (as above)' if again else ''}"
    drawn.add(member)
    if again:
        return
    for number, child in enumerate(children):
        last = number == len(children) - 1
        soft = "" if graph.edges[member, child] else "not required: "
        branch = f"{indent}{'└── ' if last else '├── '}{soft}"
        yield from _branch(graph, child, drawn, begin=branch, indent=f"{indent}{'    ' if last else '│   '}")


def mermaid(graph: Graph) -> str:
    """Return a flowchart; a dotted line is a call that the caller does not wait for at its start."""
    shapes = {"agent": '["{}"]', "service": '(["{}"])', "gateway": '{{{{"{}"}}}}'}
    lines = [f"    {_identifier(member)}{shapes[kind].format(member)}" for member, kind in graph.kinds.items()]
    for (caller, called), hard in graph.edges.items():
        lines.append(f"    {_identifier(caller)} {'-->' if hard else '-.->'} {_identifier(called)}")
    return "\n".join(["flowchart LR", *lines, ""])


def dot(graph: Graph) -> str:
    """Return a digraph of Graphviz."""
    shapes = {"agent": "box", "service": "ellipse", "gateway": "hexagon"}
    lines = [f'  "{member}" [shape={shapes[kind]}];' for member, kind in graph.kinds.items()]
    for (caller, called), hard in graph.edges.items():
        lines.append(f'  "{caller}" -> "{called}"{"" if hard else " [style=dashed]"};')
    return "\n".join([f"digraph {_quoted(graph.name)} {{", "  rankdir=LR;", *lines, "}", ""])


def _identifier(member: str) -> str:
    """Return a node's id: words such as `end` mean something to Mermaid."""
    return f"n_{member.replace('-', '_')}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


FORMATS: Mapping[str, Callable[[Graph], str]] = {"tree": tree, "mermaid": mermaid, "dot": dot}
"""By the value of `--format`."""
