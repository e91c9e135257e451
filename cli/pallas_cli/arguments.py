"""The verbs of `pallas` and their options: declarations alone."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pallas_contract import names

MODULES: Mapping[str, str] = {
    "init": "pallas_cli.project.init",
    "up": "pallas_cli.runtime",
}
"""Verb -> the module that runs it."""
EXAMPLES = ("hello", "pallas", "data-pool")
"""Fleets of the kit that `pallas init --example` copies."""
_RAW = argparse.RawDescriptionHelpFormatter


def parser() -> argparse.ArgumentParser:
    """Return the parser of all verbs; what it parses has the verb's name as `verb`."""
    top = argparse.ArgumentParser(prog="pallas", description="Make, run, ask and look after a fleet of MCP agents.")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    _add_init(verbs)
    _add_up(verbs)
    return top


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Return the options of a verb; `file` is the path of agents.yaml, also where its folder was named."""
    options = parser().parse_args(words)
    if "file" in options:
        options.file = fleet_file(options.file)
    return options


def fleet_file(named: Path | None) -> Path:
    """Return the path of the fleet file by option, environment, or its usual name."""
    path = named or Path(os.environ.get(names.ENV_AGENTS_CONFIG) or names.AGENTS_FILE)
    return path / names.AGENTS_FILE if path.is_dir() else path


def summary() -> str:
    """Return the verbs with a line each, for the help of `pallas` without one."""
    action: Any = next(action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    lines = [(choice.dest, choice.help) for choice in action._choices_actions]
    width = max(len(verb) for verb, _ in lines)
    return "verbs (`pallas VERB --help` says more):\n" + "".join(f"  {verb:<{width}}  {text}\n" for verb, text in lines)


def _add(verbs: Any, verb: str, text: str, *, example: str, description: str = "") -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = verbs.add_parser(
        verb,
        help=text,
        description=description or f"{text[0].upper()}{text[1:]}.",
        epilog=f"example:\n  {example}",
        formatter_class=_RAW,
    )
    return added


def _add_file(verb: argparse.ArgumentParser) -> None:
    default = f"${names.ENV_AGENTS_CONFIG}, else {names.AGENTS_FILE}"
    verb.add_argument(
        "-f", "--file", type=Path, metavar="PATH", help=f"the fleet file or its folder; default: {default}"
    )


def _add_init(verbs: Any) -> None:
    init = _add(verbs, "init", "make a project that runs at once, without a key", example="pallas init desk")
    init.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="DIR", help="default: this folder")
    init.add_argument("--example", choices=EXAMPLES, help="copy this fleet of the kit instead of a first one")


def _add_up(verbs: Any) -> None:
    up = _add(verbs, "up", "run the fleet as processes, until Ctrl-C", example="pallas up -f desk")
    _add_file(up)
