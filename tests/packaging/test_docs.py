"""The README and the pages it links to: what they name is there."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from mcp.server import MCPServer

from pallas_gen import schema
from tests.documentation import blocks
from tests.documentation.commands import pallas_gen

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/*.md")]
)
README = (ROOT / "README.md").read_text()

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@each_page
def test_every_verb_and_command_exists(page: Path) -> None:
    text = page.read_text()
    verbs = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z]+)", text, re.MULTILINE)) <= verbs
    commands = set(pallas_gen().commands)
    assert set(re.findall(r"pallas-gen ([a-z]+)", text)) - {"writes", "never"} <= commands
    others = {"tools/call", "tools/call_batch", "tools/list", "tools/weather"}  # methods, and a user's module
    scripts = set(re.findall(r"`(tools/[a-z_]+)", text)) - others
    assert [script for script in scripts if not list(ROOT.glob(f"{script}*"))] == []


def test_the_readme_names_every_command() -> None:
    assert set(pallas_gen().commands) - {"schema"} <= set(re.findall(r"`pallas-gen ([a-z]+)", README))


def test_every_page_is_in_the_list_of_pages() -> None:
    listed = set(re.findall(r"\]\(([a-z-]+[.]md)\)", (ROOT / "docs" / "README.md").read_text()))
    assert listed == {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert "](docs/README.md)" in README


def test_the_pictures_are_small_and_say_what_they_show() -> None:
    pictures = re.findall(r"!\[([^]]*)\]\(([^)]+)\)", README)
    assert pictures
    for text, path in pictures:
        assert len(text) > 40
        assert (ROOT / path).read_bytes().startswith(b"\x89PNG")
        assert (ROOT / path).stat().st_size < 150_000


def test_keys_in_the_readme_are_keys_of_the_fleet_file() -> None:
    document = json.loads(schema.agents_schema())
    known = set(document["properties"]) | {key for model in document["$defs"].values() for key in model["properties"]}
    table = README[README.index("| to | write in agents.yaml |") :].partition("\n\n")[0]
    keys = set(re.findall(r"[`{ ]([a-z_]+):(?!//)", table))
    assert keys - known <= {"research", "partners"}
    assert len(keys) > 8


def test_no_page_names_a_registry_by_its_host_or_a_path_of_one_machine() -> None:
    hosts = r"(https?://|[a-z]+[.])[a-z.]*(pypi|pythonhosted|npmjs|golang|debian|crates|maven)[.](org|io|com)"
    command = ["git", "grep", "-nIE", hosts, "--", ".", ":!*go.mod", ":!*go.sum"]  # Go's modules are called like hosts
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.stdout == ""


def test_the_server_of_the_page_listens_where_it_is_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    (server,) = blocks.of("own-server")
    assert server.text == blocks.files("first-agent")["tools/weather.py"], "tests/e2e/test_stranger.py runs that one"
    started: dict[str, object] = {}
    monkeypatch.setattr(MCPServer, "run", lambda _, transport, **options: started.update(options, transport=transport))
    monkeypatch.setenv("PALLAS_BIND", "127.0.0.2:8110")
    monkeypatch.setenv("PALLAS_ALLOWED_HOSTS", "weather,weather:*")
    exec(server.text, {})
    assert (started["transport"], started["host"], started["port"]) == ("streamable-http", "127.0.0.2", 8110)
