"""`pallas VERB` is a verb of this package; `pallas` without one is the runtime's command line, which runs the fleet.

Exit codes: 0 done, 1 the world is not as needed, 2 the input is wrong, 130 ended by Ctrl-C.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Protocol

from pallas_cli import arguments as command_line
from pallas_cli.trouble import Trouble
from pallas_contract import extras
from pallas_contract.problems import Refused

WORLD = 1
INPUT = 2
INTERRUPTED = 130
"""As a shell reports Ctrl-C: 128 and the number of SIGINT."""

_CLIENTS = {"call", "chat"}
"""Verbs that speak MCP."""
_LIGHT = {"init", "add", "up", "completion"}
"""Verbs for which hardly any package is imported here: `up` has its own beginning in the runtime."""


class Verb(Protocol):
    """A module with a verb; it is imported when the verb is run, so that `--help` stays declarations alone."""

    def run(self, options: Namespace) -> int:
        """Return the exit code."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0].startswith("-"):
        from pallas_cli import runtime  # noqa: PLC0415 - who runs no fleet needs none of its modules

        return runtime.fleet(words, command_line.summary())
    gc.set_threshold(200_000)  # looks for cycles are a twentieth of a short command, which leaves none
    atexit.register(gc.freeze)  # a last look at all objects for cycles is a sixth of a short command
    options = command_line.parse(words)
    if options.verb in _LIGHT:
        return _ran(options)
    from pallas_service import compiled_texts  # noqa: PLC0415 - not for verbs that compile nothing

    compiled_texts.begin()
    try:
        return _ran(options)
    finally:
        compiled_texts.end()


def _ran(options: Namespace) -> int:
    try:
        verb = _imported(options.verb)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("pallas_"):
            raise
        sys.stderr.write(extras.advice(f"pallas {options.verb}", "agent", [error.name or ""]))
        return INPUT
    return _run(verb, options)


def _imported(verb: str) -> Verb:
    """Import the module of a verb. A client of an agent uses a few of the SDK's 700 models: they wait for their use.

    Raises:
        ModuleNotFoundError: of an extra that is not installed.
    """
    module = command_line.MODULES[verb]
    if verb not in _CLIENTS:
        return importlib.import_module(module)
    from pallas_service import deferred_models  # noqa: PLC0415 - it imports pydantic, which few verbs need

    deferred_models.defer()
    try:
        return importlib.import_module(module)
    finally:
        deferred_models.as_usual()


def _run(verb: Verb, options: Namespace) -> int:
    try:
        return verb.run(options)
    except Refused as refused:
        sys.stderr.writelines(f"{problem.text(verbose=options.verbose)}\n" for problem in refused.problems)
        return INPUT
    except Trouble as trouble:
        sys.stderr.write(f"pallas {options.verb}: {trouble}\n")
    except BrokenPipeError:  # the reader of a pipe has gone: `pallas logs | head`
        with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:  # else Python's last flush fails
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"pallas {options.verb}: {where}{(error.strerror or str(error)).lower()}\n")
    except KeyboardInterrupt:
        return INTERRUPTED
    return WORLD
