"""What was measured, step by step, as JSON: when, on what machine, at what scale, from what seed."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

FOLDER = Path(".proof")
"""Where each step leaves its results, so that the steps may be run one by one."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One thing that was measured for a row; `values` are in `unit`, the largest of them has the `bound`, if any.

    `text` says what cannot be counted. `target` is what ran the fleet, empty where none did.
    """

    row: str
    what: str
    target: str = ""
    values: Sequence[float] = ()
    unit: str = "s"
    bound: float | None = None
    text: str = ""

    @property
    def held(self) -> bool:
        """The bound holds, or there is none; nothing is said to have failed."""
        return "FAILED" not in self.text and (self.bound is None or not self.values or max(self.values) <= self.bound)


@dataclass(frozen=True, slots=True)
class Step:
    """A step that was run. `scale` is the share of the full durations and counts, 1 for all of them.

    `commit` is the one that was checked out, short, with a + where files were changed. A step that is not `whole` was
    interrupted, or failed.
    """

    name: str
    date: str
    machine: str
    scale: float
    seed: int
    measures: Sequence[Measure] = ()
    commit: str = ""
    whole: bool = False


def begun(name: str, scale: float, seed: int) -> Step:
    """Return a step that begins now, without any measure."""
    return Step(name, datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), machine(), scale, seed, commit=commit())


def commit() -> str:
    """Return the commit that is checked out, with a + where files that belong to it were changed; empty without git."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*", "--abbrev=10"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine() -> str:
    """Return what the figures are of, and how much else it had to do when the step began."""
    cpuinfo = Path("/proc/cpuinfo").read_text("utf-8")
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    cores = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    python = platform.python_version()
    name = model[1] if model else platform.machine()
    return f"{name}, {cores} cores, {memory:.0f} GiB, CPython {python}, load {load:.1f} at the beginning"


def write(step: Step, folder: Path = FOLDER) -> None:
    """Write a step, in place of what an earlier run of it has left."""
    folder.mkdir(exist_ok=True)
    (folder / f"{step.name}.json").write_text(json.dumps(asdict(step), indent=1) + "\n", "utf-8")


def has(step: Step, folder: Path = FOLDER) -> bool:
    """Return whether a step was run as a whole at this commit and seed, and at this scale or more."""
    path = folder / f"{step.name}.json"
    if not path.is_file():
        return False
    (before,) = read(path)
    same = (before.commit, before.seed) == (step.commit, step.seed)
    return bool(step.commit) and same and before.whole and before.scale >= step.scale


def newest(published: Path, folder: Path = FOLDER) -> list[Step]:
    """Return the steps of the folder, and of those published before the others and what is newer, by their names."""
    steps = {step.name: step for step in (read(published) if published.is_file() else [])}
    for step in read(folder) if folder.is_dir() else []:
        if step.name not in steps or step.date >= steps[step.name].date:
            steps[step.name] = step
    return [steps[name] for name in sorted(steps)]


def read(path: Path) -> list[Step]:
    """Read the steps of a folder, or of one file that holds one or all of them, by their names."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    contents = [json.loads(file.read_text("utf-8")) for file in files]
    trees = [tree for content in contents for tree in (content if isinstance(content, list) else [content])]
    return sorted(map(_step, trees), key=lambda step: step.name)


def together(steps: Sequence[Step]) -> str:
    """Return all steps as one JSON text."""
    return json.dumps([asdict(step) for step in steps], indent=1) + "\n"


def _step(tree: Mapping[str, object]) -> Step:
    measures = tuple(Measure(**measure) for measure in tree["measures"])  # type: ignore[attr-defined]
    return Step(**{**tree, "measures": measures})  # type: ignore[arg-type]
