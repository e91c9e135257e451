"""The one arrow to a service: `pallas` and `pallas up` are the runtime's own command line, which runs a whole fleet."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

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
    return cli.main(["--config", str(options.file), *(flag for flag, given in flags.items() if given)])
