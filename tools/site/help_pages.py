"""A page for each command of the kit, from its own help."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

from typer.main import get_command

from pallas_agent_runtime import cli as runtime
from pallas_cli import arguments as pallas_verbs
from pallas_gen import cli as generator
from pallas_testing import cli as testing

WIDTH = "100"
"""Columns of a page; the help of each command is as wide as its terminal."""
_PLAIN = {"COLUMNS": WIDTH, "TERMINAL_WIDTH": WIDTH, "NO_COLOR": "1"}
type Helps = Mapping[str, str]


def pages() -> Mapping[str, str]:
    """Return page -> its Markdown."""
    with mock.patch.dict(os.environ, _PLAIN):
        texts = {
            "pallas": dict(_pallas()),
            "pallas-gen": dict(_typer(get_command(generator.app), "pallas-gen")),
            "pallas-testing": dict(_argparse(testing.parser())),
        }
    return {f"reference/{name}.md": _page(name, helps) for name, helps in texts.items()}


def _page(name: str, helps: Helps) -> str:
    parts = [f"# The command `{name}`", f"What `{name} --help` and the help of its verbs say."]
    for command, text in helps.items():
        parts += [f"## {command}", f"```text\n{text.rstrip()}\n```"]
    return "\n\n".join(parts) + "\n"


def _pallas() -> Iterator[tuple[str, str]]:
    yield "pallas", runtime.parser(pallas_verbs.summary()).format_help()
    verbs = dict(_argparse(pallas_verbs.parser()))
    yield from ((name, text) for name, text in verbs.items() if name != "pallas")


def _argparse(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    yield parser.prog, parser.format_help()
    for action in parser._actions:  # argparse has no public way to its verbs
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from _argparse(verb)


def _typer(command: Any, path: str, parent: Any = None) -> Iterator[tuple[str, str]]:
    """Yield the help of a command and of its verbs, which typer keeps as classes of its own."""
    context = command.context_class(
        command,
        info_name=path.rpartition(" ")[2],
        parent=parent,
        max_content_width=int(WIDTH),
        terminal_width=int(WIDTH),
    )
    yield path, command.get_help(context)
    for name in getattr(command, "commands", ()):
        verb = command.get_command(context, name)
        if not verb.hidden:
            yield from _typer(verb, f"{path} {name}", context)
