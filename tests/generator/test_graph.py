"""Who calls whom, drawn in four ways, with and without how each member is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from pallas_contract.documents import server_json
from pallas_gen.cli import app
from pallas_gen.comparison import side
from pallas_gen.graph import layers, members, texts
from pallas_gen.graph.formats import FORMATS
from pallas_gen.graph.layers import Between
from pallas_gen.graph.members import Graph, Health
from pallas_gen.graph.svg import svg
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
    assert texts.tree(DIAMOND) == (
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
    assert texts.tree(circle).splitlines() == ["a", "└── b", "    └── not required: a (as above)"]
    beside = Graph("x", {**circle.kinds, "c": "agent"}, circle.edges)
    assert texts.tree(beside).splitlines() == ["c", *texts.tree(circle).splitlines()]


def test_mermaid_has_ids_that_are_no_words_of_its_own() -> None:
    lines = texts.mermaid(DIAMOND).splitlines()
    assert lines[0] == "flowchart LR"
    assert '    n_low_end["low-end"]' in lines
    assert '    n_model(["model"])' in lines
    assert '    n_door{{"door"}}' in lines
    assert "    n_right -.-> n_low_end" in lines
    assert "    n_left --> n_low_end" in lines


def test_dot_is_quoted() -> None:
    text = texts.dot(DIAMOND)
    assert text.startswith('digraph "my \\"fleet\\"" {\n  rankdir=LR;\n  "top" [shape=box];\n')
    assert '  "right" -> "low-end" [style=dashed];\n' in text
    assert text.endswith("}\n")


@pytest.mark.parametrize("form", FORMATS)
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


HEALTH = {
    "top": Health("degraded", "waits for `low-end`"),
    "left": Health("ok"),
    "right": Health("ok"),
    "low-end": Health("error", "refused <&> \x1b[31mred\x00"),
    "model": Health("unknown"),
    "door": Health("ok"),
}
ASKED = replace(DIAMOND, health=HEALTH)
SVG = "{http://www.w3.org/2000/svg}"


def test_health_stands_beside_each_member_and_why_only_once() -> None:
    assert texts.tree(ASKED) == (
        "door (gateway)  ok\n"
        "└── top  degraded: waits for `low-end`\n"
        "    ├── left  ok\n"
        "    │   └── low-end  error: refused <&> \\x1b[31mred\\x00\n"
        "    │       └── model (service)  unknown\n"
        "    └── right  ok\n"
        "        └── not required: low-end  error (as above)\n"
    )
    assert '    n_low_end["low-end<br/>error"]' in texts.mermaid(ASKED)
    assert f"    style n_low_end fill:{texts.COLOURS['error']},color:#1c1c1f" in texts.mermaid(ASKED)
    assert f'"top" [shape=box, style=filled, fillcolor="{texts.COLOURS["degraded"]}", label="top\\ndegraded"];' in (
        texts.dot(ASKED)
    )


def test_the_picture_has_each_member_and_each_call_and_no_word_acts_in_it() -> None:
    document = ElementTree.fromstring(svg(ASKED))
    drawn = [[text.text for text in box.iter(f"{SVG}text")] for box in document.iter(f"{SVG}g")]
    assert drawn == [[member, HEALTH[member].status] for member in DIAMOND.kinds]
    calls = [path for path in document.iter(f"{SVG}path") if "call" in path.get("class", "").split()]
    assert len(calls) == len(DIAMOND.edges)
    assert [path.get("class") for path in calls].count("call soft") == 1
    classes = {box.get("class") for box in document.iter(f"{SVG}g")}
    assert classes == {"member", "member ok", "member degraded", "member error"}
    assert not re.search(r"<script|href|url\((?!#head)|@import", svg(ASKED))
    assert "error, refused &lt;&amp;&gt;" in svg(ASKED)


def test_nothing_is_a_picture_too() -> None:
    assert ElementTree.fromstring(svg(Graph("x", {}, {}))).tag == f"{SVG}svg"


SOME = [f"m{number}" for number in range(9)]


@given(st.lists(st.tuples(st.sampled_from(SOME), st.sampled_from(SOME)), unique=True, max_size=30))
def test_callers_stand_before_whom_they_call_but_for_one_call_of_a_circle(edges: Sequence[tuple[str, str]]) -> None:
    placed = layers.layers(SOME, edges)
    column = {slot: number for number, entry in enumerate(placed.columns) for slot in entry}
    assert {slot for slot in column if isinstance(slot, str)} == set(SOME)
    steps = {}
    for call, way in placed.ways.items():
        assert (way[0], way[-1]) == call
        assert all(isinstance(slot, Between) for slot in way[1:-1])
        steps[call] = {column[end] - column[start] for start, end in pairwise(way)}
        assert steps[call] in ({1}, {-1})
    assert set(placed.ways) == {edge for edge in edges if edge[0] != edge[1]}
    backwards = [call for call, step in steps.items() if step == {-1}]
    assert backwards == [] or _has_circle(set(placed.ways))
    drawn = svg(Graph("x", dict.fromkeys(SOME, "agent"), dict.fromkeys(edges, True)))
    assert ElementTree.fromstring(drawn).get("width") == ElementTree.fromstring(drawn).get("viewBox", "").split()[2]


def _has_circle(edges: set[tuple[str, str]]) -> bool:
    """Return whether calls are left once those from members that nobody calls are taken away, again and again."""
    while left := {edge for edge in edges if edge[0] in {end for _, end in edges}}:
        if left == edges:
            return True
        edges = left
    return False


def test_two_hundred_members_are_the_same_bytes_again() -> None:
    kinds = {f"a{number}": "agent" for number in range(200)}
    edges = {(f"a{number}", f"a{other}"): True for number in range(200) for other in (2 * number, 3 * number + 1)}
    known = {edge: hard for edge, hard in edges.items() if edge[1] in kinds}
    text = svg(Graph("many", kinds, known))
    assert text == svg(Graph("many", dict(kinds), dict(known)))
    assert all(f">a{number}</text>" in text for number in range(200))


ONE = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101, depends_on: [other]}\n"
TWO = ONE + "  other: {module: agents.other, port: 8102}\n"


def _entry(name: str, **health: str) -> dict[str, dict[str, object]]:
    return {"server": {"name": f"x/{name}"}, "_meta": {server_json.HEALTH_META: health}}


def test_a_registry_says_how_each_member_is(make, run, monkeypatch) -> None:
    file = make(TWO)
    agents = {"servers": [_entry("scout", status="error", message="connection refused"), _entry("guest", status="ok")]}
    services = {"fleet": {"name": "x", "placement": "local"}, "services": []}
    monkeypatch.setattr(side, "document", lambda url: agents)
    monkeypatch.setattr(side, "services", lambda url: services)
    code, out, _ = run("graph", str(file), "--registry", "http://127.0.0.1:24200")
    assert (code, out) == (0, "scout  error: connection refused\n└── other  unknown\n")
    services["fleet"] = {"name": "y", "placement": "local"}
    code, out, err = run("graph", str(file), "--registry", "http://127.0.0.1:24200")
    assert (code, out) == (1, "")
    assert "is that of the fleet `y`, and not of `x`" in err
    monkeypatch.setattr(side, "document", lambda url: {"servers": [{}]})
    services["fleet"] = {"name": "x", "placement": "local"}
    assert "is no registry of pallas-kit" in run("graph", str(file), "--registry", "http://127.0.0.1:24200")[2]


def test_no_registry_is_trouble_of_the_world_and_a_wrong_url_of_the_input(make, run) -> None:
    file = make(TWO)
    code, out, err = run("graph", str(file), "--registry", "http://127.0.0.1:1")
    assert (code, out) == (1, "")
    assert "no registry answers at http://127.0.0.1:1" in err
    assert run("graph", str(file), "--registry", "nothing")[0] == 2


def test_a_service_is_known_by_its_host_name() -> None:
    graph = Graph("x", {"a-b": "service"}, {})
    asked = members.with_health(graph, {"servers": []}, {"services": [{"name": "a_b", "status": "ok"}]})
    assert asked.health == {"a-b": Health("ok")}


def test_the_registry_is_not_drawn_where_the_gateway_asks_it(plan) -> None:
    drawn = members.of(
        plan("""
name: x
registry: {registration: {tokens: {c: {file: c.txt, agents: [cleaner]}}, reach: [10.20.0.0/16]}}
gateway: {agents: [scout], publish: false, tenants: {desk: {}}, registered: [cleaner]}
agents: {scout: {module: agents.scout, port: 8101, publish: false}}
""")
    )
    assert list(drawn.edges) == [("gateway", "scout")]
