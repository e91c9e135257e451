"""The shape of a target: one row of `table.TARGETS`, from which the command line makes a verb."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.problems import Problem
from pallas_gen.output.write import Files
from pallas_gen.plan import Plan


@dataclass(frozen=True, slots=True)
class RenderContext:
    """Everything a target may look at while it renders."""

    fleet: ResolvedFleet
    plan: Plan
    folder: Path
    """The project's folder, the one of agents.yaml."""
    project: PurePosixPath
    """The same folder, relative to the one that is written to."""
    options: frozenset[str] = frozenset()
    """Those of the target's own options that were given."""


def no_problems(plan: Plan) -> Iterator[Problem]:
    """Refuse nothing."""
    yield from ()


def no_next_steps(context: RenderContext, output: Path) -> Iterator[str]:
    """Advise nothing."""
    yield from ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Something that a fleet is compiled to; the verb `pallas-gen NAME` writes it."""

    name: str
    summary: str
    """One line of `pallas-gen --help`."""
    render: Callable[[RenderContext], Files]
    """The files by their path in the output folder. It may read the project's folder, and raises Refused for what it
    finds there and cannot use."""
    problems: Callable[[Plan], Iterable[Problem]] = no_problems
    """Errors and warnings about what the plan says and this target cannot do."""
    folder: str = ""
    """Default of the output folder, in the project's folder."""
    mounted: bool = True
    """Whether containers see the project's files themselves, so that it matters who may read them."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of this target alone, each a flag, with its line of help."""
    next_steps: Callable[[RenderContext, Path], Iterable[str]] = no_next_steps
    """Lines to print after the files were written into the folder."""
