"""The `pallas` command: `pallas --agent NAME` serves one agent, `pallas` runs the whole fleet as processes."""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_contract import __version__, extras, names
from pallas_contract.problems import Problem, Refused
from pallas_service.argument_parser import ArgumentParser

if TYPE_CHECKING:
    from pallas_agent_runtime.local.supervisor import Beside

EXIT_WORLD = 1
EXIT_INPUT = 2
_EXTRAS = {"agent": ("agent",), "local": ("agent", "registry")}
"""Extras by the one to ask for: a fleet of processes has a registry besides its agents."""


def main(
    arguments: Sequence[str] | None = None,
    settle: Callable[[], None] = lambda: None,
    *,
    installed: bool = False,
    verbs: str = "",
    beside: Beside | None = None,
) -> int:
    """Return the exit code of the command: 2 for a mistake in the user's files, 1 for trouble of the world, else 0.

    `settle` is called once the environment of an agent is complete, before its engine is imported. `installed` says
    that the packages it needs are known to be there. `verbs` are lines that `--help` shows after the options. `beside`
    goes on while a whole fleet runs.
    """
    options = parser(verbs).parse_args(arguments)
    extra = "local" if options.agent is None else "agent"
    if absent := () if installed else extras.missing(*_EXTRAS[extra]):
        sys.stderr.write(extras.advice("pallas", extra, absent))
        return EXIT_INPUT
    path = names.fleet_file(options.config, os.environ)
    folder = os.path.relpath(path.parent) if options.check else ""  # loading an agent changes the current folder
    try:
        if options.check:
            return _check(path, folder, options)
        if options.agent is not None:
            return _agent(path, options, settle)
        return _fleet(path, watch=options.watch, allow_plain_secrets=options.allow_plain_secrets, beside=beside)
    except Refused as refused:
        _report(refused.problems, folder, options)
        if options.agent is not None and not options.check:
            from pallas_agent_runtime import refusal  # noqa: PLC0415 - only where it is needed

            secretive = refusal.protected(path, options.agent)
            refusal.explain(refused.problems, os.environ, secretive=secretive)
        return EXIT_INPUT
    except KeyboardInterrupt:
        return 0


def _fleet(path: Path, *, watch: bool, allow_plain_secrets: bool, beside: Beside | None) -> int:
    from pallas_agent_runtime.importing import gc_tuning  # noqa: PLC0415 - `pallas --help` needs none of it
    from pallas_service import compiled_texts  # noqa: PLC0415

    gc_tuning.seldom()
    compiled_texts.begin()
    from pallas_agent_runtime.local import supervisor  # noqa: PLC0415 - not for an agent process

    compiled_texts.end()
    gc_tuning.as_usual()
    atexit.register(gc.freeze)  # a last look at all objects for cycles takes longer than all else at the end
    if not watch:
        return int(supervisor.main(path, allow_plain_secrets=allow_plain_secrets, beside=beside))
    from pallas_agent_runtime.local.watching import follow  # noqa: PLC0415 - only where it is wanted

    following = partial(follow.following, allow_plain_secrets=allow_plain_secrets)
    return int(supervisor.main(path, following, allow_plain_secrets=allow_plain_secrets, beside=beside))


def _agent(path: Path, options: argparse.Namespace, settle: Callable[[], None]) -> int:
    # A stop that comes before the agent listens ends the process as quietly as one that comes after.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if names.ENV_RUN in os.environ:  # a fleet's supervisor has its members watched
        return _serve(path, options, settle)
    from pallas_agent_runtime.local import guardian  # noqa: PLC0415 - a member needs none of it

    with guardian.watching_agent(options.agent):
        return _serve(path, options, settle)


def _serve(path: Path, options: argparse.Namespace, settle: Callable[[], None]) -> int:
    _defer()
    import structlog  # noqa: PLC0415 - `pallas --help` needs none of it

    from pallas_agent_runtime import log_levels, prepare, serve  # noqa: PLC0415 - `pallas --help` needs none of it
    from pallas_service.http import sockets  # noqa: PLC0415 - `pallas --help` needs none of it

    prepared = prepare.prepare(
        path,
        options.agent,
        os.environ,
        Path(names.SECRETS_DIR),
        allow_plain_secrets=options.allow_plain_secrets,
    )
    settle()
    log_levels.configure(prepared.settings.fleet.name, options.agent, os.environ.get(names.ENV_LOG_FORMAT, "json"))
    _print(prepared.warnings)
    for note in prepared.config.notes:
        structlog.get_logger(__name__).warning("configuration", note=note)
    try:
        serve.run(prepared)
    except sockets.CannotListen as failure:
        sys.stderr.write(f"pallas: {failure}\n")
        return EXIT_WORLD
    return 0


def _defer() -> None:
    """Have what is imported from here on wait with what an agent may never need (docs/decisions/0057)."""
    from pallas_agent_runtime.importing import gc_tuning  # noqa: PLC0415 - `pallas --help` needs none of it
    from pallas_service import compiled_texts, deferred_models  # noqa: PLC0415

    gc_tuning.seldom()
    compiled_texts.begin()
    deferred_models.defer()
    from pallas_agent_runtime import unused_imports  # noqa: PLC0415 - `pallas --help` needs none of it

    unused_imports.defer()


def _check(path: Path, folder: str, options: argparse.Namespace) -> int:
    _defer()
    from pallas_agent_runtime import check  # noqa: PLC0415 - `pallas --help` needs none of it

    if options.agent is None:
        told = check.Told(options.form, quiet=options.quiet, verbose=options.verbose)
        return check.fleet(path, os.environ, allow_plain_secrets=options.allow_plain_secrets, told=told)
    _report(check.agent(path, options.agent, allow_plain_secrets=options.allow_plain_secrets), folder, options)
    if options.form == "text" and not options.quiet:
        sys.stdout.write(f"{path}: {options.agent} can start\n")
    return 0


def _report(problems: Iterable[Problem], folder: str, options: argparse.Namespace) -> None:
    """Print problems as it was asked for: lines on stderr, or with `--check --format` one document on stdout.

    `folder` is the project's, as it is seen from where the command was started.
    """
    problems = [problem for problem in problems if problem.level == "error" or not options.quiet]
    from pallas_service import program  # noqa: PLC0415 - only where there is something to tell

    program.tell(problems, folder, form=options.form if options.check else "text", verbose=options.verbose)


class _Help(argparse.Action):
    """`--help`, with the fleet that the command would run (seed 001, `name`)."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show this help and exit")

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_: object) -> None:
        fleet = _fleet_line(names.fleet_file(getattr(namespace, "config", None), os.environ))
        parser.epilog = "\n".join(filter(None, (parser.epilog, fleet)))
        parser.print_help()
        parser.exit()


def _fleet_line(path: Path) -> str | None:
    """Return the name and the agents of the file at `path`; None where there is no file that can be read."""
    from pallas_contract.fleet import source  # noqa: PLC0415 - `pallas --version` needs none of it

    try:
        data = source.read(path).data
        return f"{path} is the fleet {data['name']}, with the agents {', '.join(sorted(data['agents']))}."
    except (Refused, KeyError, TypeError):  # help is help: `pallas` itself tells what is wrong with the file
        return None


def parser(verbs: str = "") -> argparse.ArgumentParser:
    """Return the parser of the options; `verbs` are lines that `--help` shows after them."""
    parser = ArgumentParser(
        prog="pallas",
        usage="pallas [VERB] [options]" if verbs else None,
        description="Run a fleet of fast-agent MCP agents, or one of them.",
        epilog=verbs,
        add_help=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-h", "--help", action=_Help)
    parser.add_argument("--agent", metavar="NAME", help="serve this agent only: no registry, no dependencies")
    default = f"${names.ENV_AGENTS_CONFIG}, else {names.AGENTS_FILE}"
    text = f"the fleet file or its folder; default: {default}"
    parser.add_argument("-f", "--file", "--config", dest="config", metavar="PATH", help=text)
    parser.add_argument("--watch", action="store_true", help="follow the files: what an edit concerns restarts alone")
    parser.add_argument("--check", action="store_true", help="start nothing; say what would stop the start")
    parser.add_argument(
        names.ALLOW_PLAIN_SECRETS, action="store_true", help="warn of secrets in plain text instead of refusing them"
    )
    forms = ["text", "json", "sarif"]
    text = "with --check: problems as lines on stderr, or as one document on stdout"
    parser.add_argument("--format", dest="form", choices=forms, default="text", help=text)
    parser.add_argument("-q", "--quiet", action="store_true", help="with --check: errors alone, no warnings or notes")
    parser.add_argument("-v", "--verbose", action="store_true", help="print where each problem is explained, too")
    parser.add_argument("--version", action="version", version=f"pallas {__version__}")
    return parser


def _print(problems: Iterable[Problem]) -> None:
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
