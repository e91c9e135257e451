"""`pallas stop`: end the fleet on the target that runs it, in order, and wait until it has ended."""

from __future__ import annotations

import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from pallas_cli.running import target
from pallas_cli.trouble import Trouble
from pallas_contract.codes import Code
from pallas_contract.fleet import source
from pallas_contract.launch import run_files
from pallas_contract.problems import Problem, Refused, Where

PATIENCE = 60.0
"""Seconds for processes to end; `pallas` kills what has not after 10."""
_POLL = 0.1


def run(options: Namespace) -> int:
    """End what runs; nothing that runs is no failure. Returns the exit code.

    Raises:
        Refused: a release is to be stopped, which is Helm's to take away; or nothing runs, and no fleet file is there.
        Trouble: it does not end.
    """
    if options.namespace:
        hint = f"take it away: helm uninstall RELEASE --namespace {options.namespace}"
        raise Refused(
            [
                Problem(
                    Where("-n"),
                    "a release is not stopped from here: it belongs to Helm",
                    hint,
                    code=Code.RELEASE_NOT_STOPPED,
                )
            ]
        )
    running = target.find(options.file, output=options.output)
    if running is None:
        source.read(options.file)
        sys.stdout.write(f"{options.file}: this fleet does not run here\n")
        return 0
    if running.stack:
        return target.tool(target.compose_command(running.stack, "stop"), running.stack.files[0].parent)
    end(run_files.of(options.file).lock)
    sys.stdout.write(f"{options.file}: stopped\n")
    return 0


def end(lock: Path, *, patience: float = PATIENCE, pause: Callable[[], None] = lambda: time.sleep(_POLL)) -> None:
    """Ask the process that holds `lock` to end, and wait until it has.

    Raises:
        Trouble: it may not be asked, or still runs after `patience` seconds.
    """
    deadline = time.monotonic() + patience
    asked = 0
    while (pid := run_files.holder(lock)) is not None:
        if pid and pid != asked:
            try:
                os.kill(pid, signal.SIGTERM)
            except PermissionError:
                raise Trouble(f"process {pid} is another user's: only that one may stop it") from None
            except ProcessLookupError:  # it has ended meanwhile
                continue
            asked = pid
        if time.monotonic() > deadline:
            raise Trouble(f"process {pid} still runs after {patience:g} s: kill {pid}")
        pause()
