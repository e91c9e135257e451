"""tools/site/help_pages.py: each command has a page, each verb a section, of the width that a page has."""

from __future__ import annotations

import re

from typer.main import get_command

from pallas_cli import arguments
from pallas_gen import cli
from tools.site import help_pages
from tools.site.contents import COMMANDS

PAGES = help_pages.pages()


def sections(page: str) -> set[str]:
    return set(re.findall(r"^## (.*)$", PAGES[page], re.MULTILINE))


def test_every_command_has_its_page() -> None:
    assert set(PAGES) == set(COMMANDS)


def test_every_verb_has_its_section() -> None:
    assert {f"pallas {verb}" for verb in arguments.MODULES} < sections("reference/pallas.md")
    assert {f"pallas-gen {verb}" for verb in get_command(cli.app).commands} < sections("reference/pallas-gen.md")  # type: ignore[attr-defined]
    assert "pallas-testing model" in sections("reference/pallas-testing.md")


def test_the_help_is_that_of_a_wide_terminal_without_colours() -> None:
    for text in PAGES.values():
        assert "\x1b" not in text
        assert max(len(line) for line in text.splitlines()) <= int(help_pages.WIDTH)
    assert (
        "  --check                Write nothing; exit 1 when a file would change." in PAGES["reference/pallas-gen.md"]
    )
