"""All ways to draw a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pallas_gen.graph.members import Graph
from pallas_gen.graph.svg import svg
from pallas_gen.graph.texts import dot, mermaid, tree

FORMATS: Mapping[str, Callable[[Graph], str]] = {"tree": tree, "mermaid": mermaid, "dot": dot, "svg": svg}
"""By the value of `--format`."""
