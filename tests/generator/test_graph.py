"""Who calls whom, drawn in three ways."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pallas_gen import graph
from pallas_gen.cli import app
from pallas_gen.graph import Graph
from tests.conftest import ROOT

DIAMOND = Graph(
    'my "fleet"',
    {"top": "agent", "left": "agent", "right": "agent", "low-end": "agent", "model": "service", "door": "gateway"},
    {
        ("door", "top"): True,
        ("left", "low-end"): True,
        ("low-end", "model"): True,
        ("right", "low-end"): False,
        ("top", "left"): True,
        ("top", "right"): True,
    },
)


def test_a_tree_shows_what_is_called_twice_once() -> None:
    assert graph.tree(DIAMOND) == (
        "door (gateway)\n"
        "└── top\n"
        "    ├── left\n"
        "    │   └── low-end\n"
        "    │       └── model (service)\n"
        "    └── right\n"
        "        └── not required: low-end (as above)\n"
    )


def test_a_circle_has_an_end() -> None:
    circle = Graph("x", {"a": "agent", "b": "agent"}, {("a", "b"): True, ("b", "a"): False})
    assert graph.tree(circle).splitlines() == ["a", "└── b", "    └── not required: a (as above)"]
    beside = Graph("x", {**circle.kinds, "c": "agent"}, circle.edges)
    assert graph.tree(beside).splitlines() == ["c", *graph.tree(circle).splitlines()]


def test_mermaid_has_ids_that_are_no_words_of_its_own() -> None:
    lines = graph.mermaid(DIAMOND).splitlines()
    assert lines[0] == "flowchart LR"
    assert '    n_low_end["low-end"]' in lines
    assert '    n_model(["model"])' in lines
    assert '    n_door{{"door"}}' in lines
    assert "    n_right -.-> n_low_end" in lines
    assert "    n_left --> n_low_end" in lines


def test_dot_is_quoted() -> None:
    text = graph.dot(DIAMOND)
    assert text.startswith('digraph "my \\"fleet\\"" {\n  rankdir=LR;\n  "top" [shape=box];\n')
    assert '  "right" -> "low-end" [style=dashed];\n' in text
    assert text.endswith("}\n")


@pytest.mark.parametrize("form", graph.FORMATS)
def test_the_command_draws_every_member_of_an_example(form: str) -> None:
    file = ROOT / "examples" / "02-pallas" / "agents.yaml"
    result = CliRunner().invoke(app, ["graph", "-f", str(file), "--format", form])
    assert result.exit_code == 0
    for member in ("harper", "research", "tech-research", "engineering", "argos", "neo4j-cypher", "model"):
        assert member in result.stdout
    assert "registry" not in result.stdout


def test_a_format_that_is_none_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["graph", "--format", "png"])
    assert result.exit_code == 2
    assert re.search(r"'png' is not one of", result.output)
