"""The row of Helm in the table of targets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pallas_gen.output import write
from pallas_gen.output.write import Files
from pallas_gen.project import configmaps
from pallas_gen.targets.base import RenderContext, Target
from pallas_gen.targets.helm import chart, render

VALUES_ONLY = "values-only"


def _render(context: RenderContext) -> Files:
    delivery = configmaps.read(context.folder, context.plan)
    if VALUES_ONLY in context.options:
        return render.render_values(context.plan, delivery)
    files = render.render(context.plan, delivery, chart.read())
    # values.yaml has a checksum of its own in its header; the copies cannot have one
    return files | {write.SUMS: write.sums({path: files[path] for path in files if path != render.FILE})}


def _next_steps(context: RenderContext, output: Path) -> Iterator[str]:
    return render.next_steps(context.plan, os.path.relpath(output), os.path.relpath(context.folder))


TARGET = Target(
    name="helm",
    summary="Write a Helm chart: the kit's own, and the values that make it this fleet.",
    render=_render,
    problems=render.problems,
    folder="chart",
    mounted=False,
    options={VALUES_ONLY: "Write values.yaml alone, for the published chart."},
    next_steps=_next_steps,
)
