"""`pallas-testing`: the command line of what tests of a fleet can use."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import metadata

DISTRIBUTION = "pallas-kit"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; exit code 0 when told to stop, 1 for the world, 2 for what the user wrote."""
    chosen = parser().parse_args(arguments)
    try:
        from pallas_testing.model import command  # noqa: PLC0415 - `--help` needs no package of the extra
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("pallas_"):
            raise
        sys.stderr.write(
            f"pallas-testing: needs the extra `testing` (not installed: {error.name}): "
            f"pip install '{DISTRIBUTION}[testing]'\n"
        )
        return 2
    return command.run(chosen)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all subcommands."""
    top = argparse.ArgumentParser(prog="pallas-testing", description="Tools for tests of a fleet.")
    top.add_argument("--version", action="version", version=f"pallas-testing {version()}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    model = commands.add_parser(
        "model",
        help="serve a model that follows a script, or record a real one",
        description="Serve a model that follows a script or replays a cassette, behind OpenAI's chat completions and "
        "responses and Anthropic's messages, until it is told to stop. It exits with 1 where it was asked what nobody "
        "scripted.",
    )
    model.add_argument("file", metavar="FILE", help="a script or a cassette; with --record the cassette to write")
    model.add_argument("--record", metavar="URL", help="send all requests on to the provider at this base URL")
    model.add_argument("--bind", metavar="ADDRESS:PORT", help="default: $PALLAS_BIND, else 127.0.0.1:8080")
    return top


def version() -> str:
    """Return the version of the distribution; an image has its code alone."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
