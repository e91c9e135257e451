"""Everything that the doctor looks at, in one run: a project that is refused hides nothing of the machine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from pallas_contract.fleet import source
from pallas_contract.problems import Problem, Refused
from pallas_gen.doctor import fleet, tools
from pallas_gen.doctor.finding import Finding, State
from pallas_gen.doctor.machine import Machine
from pallas_gen.plan import build_plan
from pallas_gen.project import load
from pallas_gen.project.load import Loaded
from pallas_gen.targets.table import TARGETS


def examine(file: Path, machine: Machine, targets: Collection[str], *, project: bool = True) -> list[Finding]:
    """Return all findings about this machine and the fleet file `file`; of the machine alone without a `project`.

    A tool that is missing is an error for one of `targets`, a warning for one whose files are beside the fleet file.
    """
    findings = list(tools.tools(machine, _wanted(file.parent, targets)))
    if not project:
        return findings
    try:
        loaded = load.load(file, machine.environ)
    except Refused as refused:
        return [*findings, *_of_project(refused.problems)]
    absent = loaded.absent_here if "processes" in targets or not targets else []
    problems = [*loaded.warnings, *loaded.unreadable, *absent]
    findings += _of_project(problems) if problems else [_fine(file, loaded)]
    engine = any(finding.subject == "Docker Engine" and finding.state == "ok" for finding in findings)
    images = _wanted(file.parent, targets).get("compose") if engine else None
    return [*findings, *_of_fleet(file, loaded, machine, targets=targets, images=images)]


def _wanted(folder: Path, targets: Collection[str]) -> Mapping[str, State]:
    """Return the state of a missing tool, by the target that needs it; one that nothing asks for is a note."""
    written = [
        target.name for target in TARGETS if any((folder / target.folder / path).is_file() for path in target.files)
    ]
    warnings: dict[str, State] = dict.fromkeys(written, "warning")
    return warnings | dict.fromkeys(targets, "error")


def _of_project(problems: Collection[Problem]) -> list[Finding]:
    return [Finding.of("project", problem) for problem in problems]


def _fine(file: Path, loaded: Loaded) -> Finding:
    count = len(loaded.fleet.agents)
    return Finding("project", "ok", str(file), f"{count} agent{'s' if count != 1 else ''}, no errors")


def _of_fleet(
    file: Path, loaded: Loaded, machine: Machine, *, targets: Collection[str], images: State | None
) -> Iterator[Finding]:
    """Yield the findings about a fleet; `images` is the state of a missing one, None where none are looked for."""
    yield from fleet.keys(loaded, machine)
    yield from fleet.ports(loaded, source.read(file), file, machine, targets=targets)
    if images:
        plan = build_plan(loaded.fleet, loaded.config, loaded.project)
        yield from fleet.images(plan, file, machine, images)
    yield from fleet.hosts(loaded, machine)
    yield from fleet.running(loaded, file, machine)
