"""`pallas logs`: what members have printed, of processes from the file of the run, else by the target's own tool."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path

from pallas_cli.running import target
from pallas_cli.trouble import Trouble
from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.fleet import source
from pallas_contract.launch import run_files
from pallas_contract.launch.run_files import RunFiles
from pallas_contract.problems import Problem, Refused, Where
from pallas_contract.validate import load

_POLL = 0.2
"""Seconds between two looks for further lines."""


def run(options: Namespace) -> int:
    """Print the lines; returns the exit code.

    Raises:
        Refused: nothing has run, and the fleet file is not there; or the member has printed nothing.
        Trouble: nothing runs, and nothing has.
    """
    if options.namespace:
        return target.tool(kubectl_command(options.namespace, options.name, follow=options.follow))
    running = target.find(options.file, output=options.output, ended=True)
    if running and running.stack:
        words = [*(["--follow"] if options.follow else []), *([names.slug(options.name)] if options.name else [])]
        command = target.compose_command(running.stack, "logs", *words)
        code = target.tool_lines(command, running.stack.files[0].parent)
        if code and (hint := _nearest(options)):
            sys.stderr.write(f"    {hint}\n")
        return code
    files = run_files.of(options.file)
    if options.output or not files.log.is_file():
        source.read(options.file)
        has_not = f"has no containers of {options.output}" if options.output else "has not as processes"
        hint = f"start it ({target.starts(options.file)}), or name where it runs: -n NAMESPACE"
        raise Trouble(f"{options.file}: this fleet does not run here, and {has_not}\n    {hint}")
    if running is None and not options.quiet:
        sys.stderr.write(f"{_of_before(options.file, files.log)}\n")
    for line in _chosen(lines(files, follow=options.follow), options.name, files.log):
        sys.stdout.write(line)
        sys.stdout.flush()
    return 0


def _nearest(options: Namespace) -> str:
    """Return the question whether a member of another name is meant, for one that the fleet file does not have."""
    name = names.slug(options.name or "")
    try:
        fleet = load.parse(source.read(options.file))
    except Refused:  # containers run on while the file is being edited
        return ""
    members = sorted(map(names.slug, (*fleet.agents, *fleet.services, names.REGISTRY, names.GATEWAY)))
    close = get_close_matches(name, members, n=1) if name and name not in members else []
    return f"did you mean `{close[0]}`?" if close else ""


def _of_before(config: Path, log: Path) -> str:
    """Return whose lines these are where nothing runs: containers that have ended since then have others."""
    ended = datetime.fromtimestamp(log.stat().st_mtime).isoformat(" ", "seconds")
    stack = target.stack_of(config)
    other = f"; those of its containers: pallas logs -o {stack.files[0].parent}" if stack else ""
    return f"{config}: nothing runs here; the last run as processes, which ended at {ended}{other}"


def kubectl_command(namespace: str, name: str | None, *, follow: bool) -> list[str]:
    """Return the command for the logs of a release, of one member or of all."""
    label = f"app.kubernetes.io/name={names.slug(name)}" if name else "app.kubernetes.io/component"
    options = ["--all-containers", "--prefix", "--tail=-1", "--ignore-errors", "--max-log-requests=1000"]
    return ["kubectl", "--namespace", namespace, "logs", f"--selector={label}", *options, *(["--follow"] * follow)]


def lines(
    files: RunFiles, *, follow: bool = False, pause: Callable[[], None] = lambda: time.sleep(_POLL)
) -> Iterator[str]:
    """Yield the lines of a run, the older file first; with `follow` further ones until the fleet has ended."""
    if files.older_log.is_file():
        yield from _text(files.older_log)
    while True:
        with files.log.open(encoding="utf-8", errors="replace") as file:
            ended = False
            while True:
                yield from file
                if not follow or ended:
                    return
                if _replaced(file.fileno(), files.log):
                    yield from file  # what came between the last look and the new file
                    break
                ended = run_files.holder(files.lock) is None  # once more: what it said last
                if not ended:
                    pause()


def _replaced(descriptor: int, path: Path) -> bool:
    try:
        return os.fstat(descriptor).st_ino != path.stat().st_ino
    except FileNotFoundError:  # between two files
        return False


def _text(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace") as file:
        yield from file


def _chosen(every: Iterator[str], name: str | None, log: Path) -> Iterator[str]:
    """Yield the lines of one member, or all.

    Raises:
        Refused: there is none of that name.
    """
    if name is None:
        yield from every
        return
    members = set()
    matched = False
    for line in every:
        member = line.partition(" ")[0]
        members.add(member)
        if names.slug(member) == names.slug(name):
            matched = True
            yield line
    if not matched:
        hint = f"{log} has lines of {', '.join(sorted(members))}" if members else f"{log} is empty"
        raise Refused(
            [Problem(Where(name), "has printed nothing, or there is no such member", hint, code=Code.NO_SUCH_LOG)]
        )
