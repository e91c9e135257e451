"""The shape of a target: one row of `table.TARGETS`, from which the command line makes a verb.

A row is imported with every command, `--help` too: what its functions need they import when they are called.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pallas_contract import names
from pallas_contract.problems import Problem

if TYPE_CHECKING:
    from pallas_gen.output.write import Files
    from pallas_gen.plan import Plan
    from pallas_gen.project.load import Loaded
    from pallas_gen.targets.observed import ObservedWorkload


DOCKERFILE = "Dockerfile.fleet"
"""The file that bakes a project's code into an image of the user's, in the project's folder."""


@dataclass(frozen=True, slots=True)
class RenderContext:
    """Everything a target may look at while it renders."""

    loaded: Loaded
    plan: Plan
    output: Path
    """The folder that is written to, absolute."""
    options: frozenset[str] = frozenset()
    """Those of the target's own options that were given."""

    @property
    def project(self) -> PurePosixPath:
        """Return the way from the output folder to the one of agents.yaml."""
        return PurePosixPath(os.path.relpath(self.loaded.folder, self.output))

    @property
    def build(self) -> str:
        """Return the command that builds the fleet's images, for the shell."""
        file = os.path.relpath(self.loaded.folder / self.plan.source)
        return shlex.join(["pallas-gen", "build", *(["-f", file] if file != names.AGENTS_FILE else [])])

    @property
    def builds(self) -> bool:
        """Return whether there is an image to build: a program runs one of those that `pallas-gen build` makes."""
        image = self.loaded.fleet.image
        baked = image.code == "baked" and (self.loaded.folder / DOCKERFILE).is_file()
        return baked or any(workload.image in self.plan.own_images for workload in self.plan.workloads)


def no_problems(plan: Plan) -> Iterator[Problem]:
    """Refuse nothing."""
    yield from ()


def no_conflicts(context: RenderContext) -> Iterator[Problem]:
    """Find nothing."""
    yield from ()


def no_next_steps(context: RenderContext) -> Iterator[str]:
    """Advise nothing."""
    yield from ()


def no_files(context: RenderContext) -> Files:
    """Add nothing."""
    return {}


def no_sums() -> PurePosixPath | None:
    """Return no file."""
    return None


def no_options(output: Path) -> frozenset[str]:
    """Return no option."""
    return frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Something that a fleet is compiled to; the verb `pallas-gen NAME` writes it."""

    name: str
    summary: str
    """One line of `pallas-gen --help`."""
    noun: str
    """What it is called in a sentence."""
    files: tuple[PurePosixPath, ...]
    """Of the files in the output folder those by which one sees that it was written; the first is what a user runs."""
    render: Callable[[RenderContext], Files]
    """The files by their path in the output folder. It may read the project's folder, and raises Refused for what it
    finds there and cannot use."""
    problems: Callable[[Plan], Iterable[Problem]] = no_problems
    """Errors and warnings about what the plan says and this target cannot do."""
    read_back: Callable[[RenderContext], Mapping[str, ObservedWorkload]] | None = None
    """The programs that the files in the output folder run, by host. None: the files run no fleet by themselves. It
    raises Unreadable, and KeyError, TypeError and the like for files that were edited beyond recognition."""
    stale: Callable[[RenderContext], Mapping[str, str]] | None = None
    """Path in the project's folder -> how what lies there differs from what the files in the output folder were written
    from. It raises Unreadable."""
    sums: Callable[[], PurePosixPath | None] = no_sums
    """The record of what was written, if there is one: by it too one sees that it was."""
    folder: str = ""
    """Default of the output folder, in the project's folder."""
    owned: tuple[str, ...] = ()
    """Folders in the output folder in which every file counts, whoever wrote it."""
    mounted: bool = True
    """Whether containers see the project's files themselves, so that it matters who may read them."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of this target alone, each a flag, with its line of help."""
    written_with: Callable[[Path], frozenset[str]] = no_options
    """Which of them the files in an output folder were written with."""
    beside: Callable[[RenderContext], Files] = no_files
    """Files for the user, written with the others and run by nobody: neither printed nor verified."""
    conflicts: Callable[[RenderContext], Iterable[Problem]] = no_conflicts
    """Warnings about what runs on this machine and the next steps would change, asked after the files were written."""
    next_steps: Callable[[RenderContext], Iterable[str]] = no_next_steps
    """Lines to print after the files were written."""
