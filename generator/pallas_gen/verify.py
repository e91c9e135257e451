"""Files on disk against the plan: byte for byte, and read back as a target's own tool reads them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Where, printable, refuse_errors
from pallas_gen.output.drift import Drift, drift
from pallas_gen.plan import LISTENING, Plan, Workload
from pallas_gen.project.load import Loaded
from pallas_gen.targets import wording
from pallas_gen.targets.base import RenderContext, Target
from pallas_gen.targets.observed import ObservedWorkload, Unreadable, mebibytes, shared_env

Command = Callable[[Target, Iterable[str]], str]
"""The command line that writes a target with some of its options, for what a user is told to do."""

_DRIFT = {
    "missing": "is missing",
    "irregular": "is no file: a folder, a pipe, or a link to what is none",
    "edited": "was edited after pallas-gen wrote it",
    "outdated": "is not what pallas-gen would write now",
    "unknown": "is not what pallas-gen would write now",
    "leftover": "is left over from an earlier run",
    "foreign": "was not written by pallas-gen, and counts as if it had been",
}
_UNREADABLE = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""Raised by reading documents that were edited beyond recognition."""


@dataclass(slots=True)
class Report:
    """Targets that were compared, and the differences."""

    problems: list[Problem] = field(default_factory=list)
    checked: list[Target] = field(default_factory=list)
    absent: list[Target] = field(default_factory=list)
    """Those that would run the fleet, and were not written here."""


def verify(
    loaded: Loaded, plan: Plan, targets: Sequence[Target], *, output: Path | None, required: bool, command: Command
) -> Report:
    """Compare each of `targets` with the plan, where it was written: in `output`, or in its folder of the project.

    One that was not written anywhere is a problem where it is `required`, and where none was.

    Raises:
        Refused: the project cannot be compiled to a target that was written.
        OSError: a file cannot be read.
    """
    report = Report()
    for target in targets:
        folder = (output or loaded.folder / target.folder).resolve()
        if _is_written(target, folder):
            report.checked.append(target)
            context = RenderContext(loaded, plan, folder, target.written_with(folder))
            report.problems += _compare(target, context, command)
        elif required:
            where = Where(_display(folder / target.files[0]))
            hint = f"run `{command(target, ())}`"
            report.problems.append(Problem(where, "was never written, or is lost", hint, code=Code.NEVER_WRITTEN))
        elif target.read_back:  # a Dockerfile or a dashboard that nobody wanted is no news
            report.absent.append(target)
    if not report.checked and not required:
        commands = " or ".join(f"`{command(target, ())}`" for target in report.absent)
        where = Where(_display((output or loaded.folder).resolve()))
        report.problems.append(
            Problem(where, "nothing to compare: no target was written", f"run {commands}", code=Code.NOTHING_TO_COMPARE)
        )
    return report


def _is_written(target: Target, folder: Path) -> bool:
    """Return whether anything of it is there, its record too: what was lost or replaced since is to be named."""
    sums = target.sums()
    return any(os.path.lexists(folder / path) for path in (*target.files, *([sums] if sums else [])))


def _compare(target: Target, context: RenderContext, command: Command) -> Iterator[Problem]:
    # what a target refuses is an error of the fleet file, so it ends the run like all of them
    refuse_errors(problem for problem in target.problems(context.plan) if problem.level == "error")
    rewrite = command(target, sorted(context.options))
    entries = list(drift(target.render(context), context.output, target.owned))
    # what is lost is named, and nobody waits for a pipe
    readable = (context.output / target.files[0]).is_file() and all(entry.kind != "irregular" for entry in entries)
    stale = _stale(target, context) if readable else {}
    for entry in entries:
        # what it was written from says more than the line that would be another one
        if not (stale and entry.kind == "outdated" and entry.path == target.files[0]):
            yield _drift_problem(entry, context.output, rewrite)
    for path, difference in stale.items():
        message = f"{difference} since {_display(context.output / target.files[0])} was written"
        yield Problem(Where(_display(context.loaded.folder / path)), message, f"run `{rewrite}`", code=Code.OUT_OF_DATE)
    if target.read_back and readable:
        path = _display(context.output / target.files[0])
        try:
            remedy = f"`{rewrite} --diff` shows the difference, `{rewrite} --force` writes what the plan says"
            yield from differences(context.plan, target.read_back(context), path, remedy)
        except Unreadable as error:
            yield Problem(Where(path, error.line, error.column), str(error), error.hint, code=Code.NOT_READ_BACK)
        except _UNREADABLE as error:
            message = f"cannot be read back as pallas-gen writes it ({type(error).__name__}: {error})"
            yield Problem(Where(path), message, f"`{rewrite} --diff` shows the change", code=Code.NOT_READ_BACK)


def _stale(target: Target, context: RenderContext) -> Mapping[str, str]:
    try:
        return target.stale(context) if target.stale else {}
    except Unreadable:  # named by who reads it back
        return {}


def _drift_problem(entry: Drift, folder: Path, rewrite: str) -> Problem:
    path = _display(folder / entry.path)
    where = Where(path, entry.line, 1) if entry.line else Where(path)
    hints = {
        "irregular": f"remove it, and run `{rewrite}`",
        "edited": f"`{rewrite} --diff` shows the change, `{rewrite} --force` takes it back",
        "unknown": f"`{rewrite} --diff` shows the difference, `{rewrite} --force` overwrites it",
        "leftover": "remove it",
        "foreign": "remove it, or keep it elsewhere",
    }
    return Problem(where, _DRIFT[entry.kind], hints.get(entry.kind, f"run `{rewrite}`"), code=Code.FILE_DIFFERS)


def _display(path: Path) -> str:
    """Return where it is from here, on one line that acts on no terminal and that every document can hold."""
    return printable(os.path.relpath(path)).replace("\n", "\\n")


def differences(plan: Plan, observed: Mapping[str, ObservedWorkload], path: str, remedy: str = "") -> Iterator[Problem]:
    """Yield everything in which what was read back at `path` is not the plan, with what to do about it.

    No value of a variable is in the messages: they go into logs of CI.
    """
    hosts = {workload.host for workload in plan.workloads}
    for host in sorted(hosts ^ observed.keys()):
        message = "is not in the plan" if host in observed else "is missing"
        yield Problem(Where(path, field=host), message, remedy, code=Code.WORKLOAD_DIFFERS)
    for workload in plan.workloads:
        if workload.host in observed:
            for name, message in wording.changes(observed[workload.host], planned(plan, workload)):
                where = Where(path, field=f"{workload.host}.{name}")
                yield Problem(where, message, remedy, code=Code.WORKLOAD_DIFFERS)


def planned(plan: Plan, workload: Workload) -> ObservedWorkload:
    """Return what every target must have of one program."""
    edges = {*plan.edges, *((names.REGISTRY, host) for host in plan.workload(names.REGISTRY).calls)}
    peers = {host for edge in edges if workload.host in edge for host in edge} - {workload.host}
    callers = {caller for caller, called in edges if called == workload.host and workload.kind in LISTENING}
    collector = workload.collector if plan.isolated else None
    foreign = workload.foreign
    return ObservedWorkload(
        image=workload.image,
        command=(*(foreign.entrypoint if foreign else ()), *workload.command),
        env=shared_env(workload.env),
        port=workload.port,
        probe=next(reversed(foreign.health_command), "") if foreign else workload.health_url,
        order=tuple(sorted(workload.waits_for)),
        secrets=tuple(sorted(f"{secret.target}: {PurePosixPath(secret.file)}" for secret in workload.secrets)),
        limits=(workload.resources.cpus, mebibytes(workload.resources.memory)),
        peers=tuple(sorted(peers)) if plan.isolated else (),
        keeps=(names.STATE_DIR,) if workload.state else (),
        callers=tuple(sorted(callers)) if plan.isolated else (),
        collector=f"{collector.host}:{collector.port}" if collector else "",
    )
