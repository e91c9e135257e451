"""The graph as a tree for a terminal, for Mermaid (READMEs, wikis) and for Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_contract.problems import printable
from pallas_gen.graph.members import Graph

COLOURS = {"ok": "#d7f0dd", "degraded": "#fbe8b6", "error": "#f8d0cc", "unauthenticated": "#dfe3f7"}
"""Of a box by the state in it; any other is grey."""
_GREY = "#e4e4e7"


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
    again = member in drawn
    how = _how(graph, member, brief=again)
    kind = "" if graph.kinds[member] == "agent" else f" ({graph.kinds[member]})"
    yield f"{begin}{member}{kind}{how}{' (as above)' if again and children else ''}"
    drawn.add(member)
    if again:
        return
    for number, child in enumerate(children):
        last = number == len(children) - 1
        soft = "" if graph.edges[member, child] else "not required: "
        branch = f"{indent}{'└── ' if last else '├── '}{soft}"
        yield from _branch(graph, child, drawn, begin=branch, indent=f"{indent}{'    ' if last else '│   '}")


def _how(graph: Graph, member: str, *, brief: bool) -> str:
    """Return the state after two spaces, with why it is so unless `brief`; empty where nobody was asked."""
    if member not in graph.health:
        return ""
    health = graph.health[member]
    message = " ".join(health.message.split())
    return f"  {printable(health.status)}{f': {printable(message)}' if message and not brief else ''}"


def mermaid(graph: Graph) -> str:
    """Return a flowchart; a dotted line is a call that the caller does not wait for at its start."""
    shapes = {"agent": '["{}"]', "service": '(["{}"])', "gateway": '{{{{"{}"}}}}'}
    lines = []
    for member, kind in graph.kinds.items():
        state = _word(graph, member)
        text = f"{member}<br/>{state}" if state else member
        lines.append(f"    {_identifier(member)}{shapes[kind].format(text)}")
    for (caller, called), hard in graph.edges.items():
        lines.append(f"    {_identifier(caller)} {'-->' if hard else '-.->'} {_identifier(called)}")
    if graph.health:
        for member in graph.kinds:
            lines.append(f"    style {_identifier(member)} fill:{_fill(graph, member)},color:#1c1c1f")
    return "\n".join(["flowchart LR", *lines, ""])


def dot(graph: Graph) -> str:
    """Return a digraph of Graphviz."""
    shapes = {"agent": "box", "service": "ellipse", "gateway": "hexagon"}
    lines = []
    for member, kind in graph.kinds.items():
        state = _word(graph, member)
        filled = f', style=filled, fillcolor="{_fill(graph, member)}", label="{member}\\n{state}"' if state else ""
        lines.append(f'  "{member}" [shape={shapes[kind]}{filled}];')
    for (caller, called), hard in graph.edges.items():
        lines.append(f'  "{caller}" -> "{called}"{"" if hard else " [style=dashed]"};')
    return "\n".join([f"digraph {_quoted(graph.name)} {{", "  rankdir=LR;", *lines, "}", ""])


def _word(graph: Graph, member: str) -> str:
    """Return the state as a word that is none of a drawing's own signs: it comes from whoever answers at a URL."""
    return "".join(letter for letter in graph.state(member) if letter.isalnum())


def _fill(graph: Graph, member: str) -> str:
    return COLOURS.get(graph.state(member), _GREY)


def _identifier(member: str) -> str:
    """Return a node's id: words such as `end` mean something to Mermaid."""
    return f"n_{member.replace('-', '_')}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'
