"""A program of the fleet as a process: exit code 0 when told to stop, 1 for the world, 2 for what the user wrote.

Nothing is imported here before it is needed: `--help` and `--version` need hardly anything.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pallas_contract import __version__, names
from pallas_contract.problems import Problem, Refused
from pallas_service.argument_parser import ArgumentParser

_USUAL, _SELDOM = gc.get_threshold(), 1_000_000

type Form = Literal["text", "json", "sarif"]


class Failure(Exception):
    """A reason in the world why a program cannot run; the text is for the user."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a program whose settings are variables."""

    path: str
    """The fleet file or folder that is named; empty for none."""
    check: bool = False
    """Whether it is to start nothing, and say what would stop the start."""
    form: Form = "text"
    verbose: bool = False


def parse(name: str, arguments: Sequence[str], *, description: str, epilog: str) -> Arguments:
    """Return the arguments of a program whose other settings are variables.

    Raises:
        SystemExit: `--help` or `--version` (0), or an argument that there is not (2).
    """
    parser = ArgumentParser(
        prog=name, description=description, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = f"${names.ENV_AGENTS_CONFIG}, else {names.AGENTS_FILE}"
    parser.add_argument("path", nargs="?", metavar="PATH", help=f"the fleet file or its folder; default: {default}")
    parser.add_argument("-f", "--file", metavar="PATH", help="the same as an option")
    parser.add_argument("--check", action="store_true", help="start nothing; say what would stop the start")
    text = "with --check: problems as lines on stderr, or as one document on stdout"
    parser.add_argument("--format", dest="form", choices=["text", "json", "sarif"], default="text", help=text)
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="with --check: errors alone, which are all there are"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="with --check: where each problem is explained")
    parser.add_argument("--version", action="version", version=f"{name} {__version__}")
    options = parser.parse_args(arguments)
    if options.path and options.file and options.path != options.file:
        parser.error(f"PATH is {options.path}, and -f is {options.file}: give one of the two")
    return Arguments(options.path or options.file or "", options.check, options.form, options.verbose)


def environment(arguments: Arguments, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program that was told its fleet file: where it was told, that is in its variable."""
    return {**environ, names.ENV_AGENTS_CONFIG: str(names.fleet_file(arguments.path or None, environ))}


def check(arguments: Arguments, environ: Mapping[str, str], read: Callable[[], object]) -> int:
    """Run `read`, which raises `Refused` for what would stop the start; return 0 or 2, with every problem told."""
    folder = os.path.relpath(names.fleet_file(arguments.path or None, environ).parent)
    problems: Sequence[Problem] = ()
    try:
        read()
    except Refused as refused:
        problems = refused.problems
    tell(problems, folder, form=arguments.form, verbose=arguments.verbose)
    return 2 if problems else 0


def tell(problems: Iterable[Problem], folder: str, *, form: Form, verbose: bool) -> None:
    """Print problems as lines on stderr, or as one document on stdout.

    `folder` is the project's, as it is seen from where the command was started.
    """
    if form == "text":
        sys.stderr.writelines(f"{problem.text(verbose=verbose)}\n" for problem in problems)
        return
    from pallas_contract import reports  # noqa: PLC0415 - only where it is wanted

    document = [reports.located(problem, folder) for problem in problems]
    sys.stdout.write(reports.render(form, document, tool="pallas"))


def run(name: str, serve: Callable[[], int]) -> int:
    """Run `serve` and return its exit code, or that of why it cannot run, which goes to stderr without a traceback.

    `serve` raises `Refused` for what the user wrote, `Failure` for the world. It says when it has imported all
    (`collect_as_usual`).
    """
    gc.set_threshold(_SELDOM)
    atexit.register(gc.freeze)  # a last look at all objects for cycles takes longer than all else at the end
    # a stop that comes before it listens ends the process as quietly as one that comes after
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        return serve()
    except Refused as refused:
        for problem in refused.problems:
            sys.stderr.write(f"{problem}\n")
        return 2
    except Failure as failure:
        sys.stderr.write(f"{name}: {failure}\n")
        return 1
    finally:
        collect_as_usual()


def collect_as_usual() -> None:
    """Look for garbage as usual from now on: while modules are imported they leave hardly any."""
    gc.set_threshold(*_USUAL)
