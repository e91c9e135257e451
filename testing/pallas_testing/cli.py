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
        # `--help` needs no package of the extra
        if chosen.command == "conformance":
            from pallas_testing.conformance import command as conformance  # noqa: PLC0415

            return conformance.main(chosen)
        from pallas_testing.model import command  # noqa: PLC0415
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
    _add_conformance(commands)
    return top


def _add_conformance(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    conformance = commands.add_parser(
        "conformance",
        help="check an agent or a registry against the Pallas contract",
        description="Check any agent or registry against the Pallas contract, in both eras of MCP. Exit code 0: "
        "nothing is broken; 1: something is, or nobody answers; 2: bad input.",
    )
    conformance.add_argument("url", metavar="URL", help="an agent's MCP endpoint, or a registry")
    conformance.add_argument("--kind", choices=["agent", "registry"], help="default: found out by asking")
    conformance.add_argument(
        "--era",
        choices=["legacy", "modern"],
        action="append",
        help="MCP 2025-11-25 or 2026-07-28, which the agent has to speak; several times: all of them. Default: any",
    )
    conformance.add_argument("--message", metavar="TEXT", help="send this, four times, and judge the turns as well")
    conformance.add_argument("--reply", metavar="TEXT", help="what the agent's model answers to it")
    conformance.add_argument(
        "--token-file", metavar="FILE", help="file with a bearer token, where the agent asks for one"
    )
    conformance.add_argument("--timeout", metavar="SECONDS", type=float, default=120.0, help="of silence; default: 120")
    conformance.add_argument("--format", choices=["text", "json", "junit"], default="text", help="default: text")
    conformance.add_argument("--official", action="store_true", help="run the official MCP conformance suite as well")


def version() -> str:
    """Return the version of the distribution; an image has its code alone."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
