"""The one arrow to a service: `pallas` and `pallas up` are the runtime's own command line, which runs a whole fleet."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

from pallas_agent_runtime import cli
from pallas_contract import names


def fleet(words: Sequence[str], verbs: str) -> int:
    """Run `pallas` with `words`, none of which is a verb; `verbs` is shown by `--help`. Returns the exit code."""
    return cli.main(words, verbs=verbs)


def parser() -> ArgumentParser:
    """Return the parser of `pallas` without a verb."""
    return cli.parser()


def run(options: Namespace) -> int:
    """Run `pallas up`; returns the exit code."""
    flags = {"--watch": options.watch, names.ALLOW_PLAIN_SECRETS: options.allow_plain_secrets}
    words = ["--config", str(options.file), *(flag for flag, given in flags.items() if given)]
    return cli.main(words, beside=partial(_console, options.file) if options.console else None)


def _console(file: Path) -> AbstractAsyncContextManager[str]:
    """Return the page to talk to the fleet of `file`, served while it runs."""
    from pallas_cli.talk import console  # noqa: PLC0415 - only where it is wanted, and its packages are there

    return console.beside(file)
