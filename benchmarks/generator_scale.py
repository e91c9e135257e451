"""Fleet files at the limits of what is read: each stage of the compiler on twice as many agents, in one process.

A flat fleet, a chain of dependencies, agents that each depend on twenty, and callers that may call every agent.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath

from benchmarks.method.report import Figure, at_most, ratio
from benchmarks.method.side_by_side import Effort, Sample, Spread, compare
from pallas_contract.validate import load as validate_load
from pallas_gen.plan import build_plan
from pallas_gen.project import contents
from pallas_gen.project import load as project_load
from pallas_gen.targets.compose import render

HEAD = "name: scale\nregistry_port: 65000\nnetworks: {pool: 10.0.0.0/8}\n"
FAN_OUT = 20
CALLERS = 300
SECONDS = 5
"""Most that the check of the largest may take."""

Shape = Callable[[int], str]
Stage = Callable[[Path], Callable[[], object]]
"""Folder -> what is timed, with all it needs made ready."""


def measure(effort: Effort) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        for label, (shape, full) in SHAPES.items():
            size = 20 if effort.quick else full
            small, large = (fleet(Path(name), shape, agents) for agents in (size // 2, size))
            for stage, prepare in STAGES.items():
                found = compare(partial(_timed, prepare(large)), partial(_timed, prepare(small)), effort)
                yield ratio(f"{label}: {stage} of {size:,} agents / {size // 2:,}", found, at_most(2.2), "s")
                if stage == "check":
                    seconds = Spread(found.ours, found.ours, found.ours, found.ratio.rounds)
                    yield Figure(f"{label}: check of {size:,} agents", seconds, at_most(SECONDS), "s")


def fleet(folder: Path, shape: Shape, size: int) -> Path:
    """A project of `size` agents of one card."""
    project = folder / f"{shape.__name__}-{size}"
    project.mkdir()
    (project / "agent.md").write_text("---\ntype: agent\nname: one\n---\nYou are one of many.\n")
    (project / "fastagent.config.yaml").write_text("default_model: passthrough\n")
    (project / "agents.yaml").write_text(HEAD + shape(size))
    return project


def flat(size: int) -> str:
    return "agents:\n" + "".join(_agent(number) for number in range(size))


def chain(size: int) -> str:
    return "agents:\n" + "".join(_agent(number, range(number + 1, min(number + 2, size))) for number in range(size))


def dense(size: int) -> str:
    return "agents:\n" + "".join(
        _agent(number, range(number + 1, min(number + 1 + FAN_OUT, size))) for number in range(size)
    )


def callers(size: int) -> str:
    tokens = ", ".join(f"caller{number}: {{file: secrets/{number}}}" for number in range(CALLERS))
    return f"access: {{tokens: {{{tokens}}}}}\n{flat(size)}"


def _agent(number: int, needs: range = range(0)) -> str:
    depends_on = f", depends_on: [{', '.join(f'agent{need}' for need in needs)}]" if needs else ""
    return f"  agent{number}: {{card: agent.md, port: {number + 1}{depends_on}}}\n"


def _check(folder: Path) -> Callable[[], object]:
    return partial(validate_load.load, folder / "agents.yaml")


def _project(folder: Path) -> Callable[[], object]:
    return partial(project_load.load, folder / "agents.yaml", {})


def _plan(folder: Path) -> Callable[[], object]:
    loaded = project_load.load(folder / "agents.yaml", {})
    return partial(build_plan, loaded.fleet, loaded.config, loaded.project)


def _compose(folder: Path) -> Callable[[], object]:
    loaded = project_load.load(folder / "agents.yaml", {})
    plan = build_plan(loaded.fleet, loaded.config, loaded.project)
    return partial(render.render, plan, PurePosixPath("."), contents.read(loaded.folder, plan))


SHAPES: dict[str, tuple[Shape, int]] = {
    "flat fleet": (flat, 4000),
    "chain": (chain, 3000),
    f"{FAN_OUT} dependencies each": (dense, 1000),
    f"{CALLERS} callers of every agent": (callers, 300),
}
STAGES: dict[str, Stage] = {"check": _check, "project": _project, "plan": _plan, "compose": _compose}


def _timed(work: Callable[[], object]) -> Sample:
    gc.collect()
    before, begun = time.process_time(), time.perf_counter()
    work()
    return Sample(time.perf_counter() - begun, time.process_time() - before)
