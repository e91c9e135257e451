"""The row of Helm in the table of targets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pallas_gen.targets.base import RenderContext, Target
from pallas_gen.targets.helm import FILE

if TYPE_CHECKING:
    from pallas_contract.problems import Problem
    from pallas_gen.output.write import Files
    from pallas_gen.plan import Plan
    from pallas_gen.targets.observed import ObservedWorkload

VALUES_ONLY = "values-only"
CHART = PurePosixPath("Chart.yaml")


def _render(context: RenderContext) -> Files:
    from pallas_gen.output import write
    from pallas_gen.project import configmaps
    from pallas_gen.targets.helm import chart, render

    delivery = configmaps.read(context.loaded.folder, context.plan)
    if VALUES_ONLY in context.options:
        return render.render_values(context.plan, delivery)
    files = render.render(context.plan, delivery, chart.read())
    # values.yaml has a checksum of its own in its header; the copies cannot have one
    return files | {write.SUMS: write.sums({path: files[path] for path in files if path != FILE})}


def _problems(plan: Plan) -> Iterator[Problem]:
    from pallas_gen.targets.helm import render

    return render.problems(plan)


def _read_back(context: RenderContext) -> dict[str, ObservedWorkload]:
    from pallas_gen.targets.helm import read_back

    values_only = VALUES_ONLY in context.options
    manifests = read_back.objects(context.output, context.plan, values_only=values_only)
    return read_back.workloads(manifests, context.plan)


def _stale(context: RenderContext) -> dict[str, str]:
    from pallas_gen.project import configmaps, contents
    from pallas_gen.targets.helm import read_back

    recorded = read_back.recorded(context.output / FILE)
    delivery = configmaps.read(context.loaded.folder, context.plan)
    return contents.changes(recorded, delivery.all) if recorded else {}


def _written_with(output: Path) -> frozenset[str]:
    from pallas_gen.output import write

    whole = any(os.path.lexists(output / path) for path in (CHART, write.SUMS))
    return frozenset() if whole else frozenset({VALUES_ONLY})


def _sums() -> PurePosixPath:
    from pallas_gen.output import write

    return write.SUMS


def _next_steps(context: RenderContext) -> Iterator[str]:
    from pallas_gen.targets.helm import render

    chart_folder = os.path.relpath(context.output)
    build = context.build if context.builds else ""
    return render.next_steps(context.plan, chart_folder, os.path.relpath(context.loaded.folder), build)


TARGET = Target(
    name="helm",
    summary="Write a Helm chart: the kit's own, and the values that make it this fleet.",
    noun="chart",
    files=(FILE, CHART),
    render=_render,
    problems=_problems,
    read_back=_read_back,
    stale=_stale,
    sums=_sums,
    folder="chart",
    owned=("charts", "crds", "files", "templates"),
    mounted=False,
    options={VALUES_ONLY: "Write values.yaml alone, for the published chart."},
    written_with=_written_with,
    next_steps=_next_steps,
)
