"""The row of compose in the table of targets."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Refused, Where
from pallas_gen.targets.base import RenderContext, Target
from pallas_gen.targets.compose import FILE

if TYPE_CHECKING:
    from pallas_gen.output.write import Files
    from pallas_gen.targets.observed import ObservedWorkload


def _render(context: RenderContext) -> Files:
    from pallas_gen.project import contents
    from pallas_gen.targets.compose import render, subnets

    plan = context.plan
    try:
        return render.render(plan, context.project, contents.read(context.loaded.folder, plan))
    except subnets.PoolExhausted:
        where = Where(plan.source, field="networks.pool")
        hint = "set `networks: {pool: 10.64.0.0/12}` or another larger private range"
        raise Refused(
            [Problem(where, f"the address pool {plan.pool} is too small for this fleet", hint, code=Code.ADDRESS_POOL)]
        ) from None
    except render.NoProjectName:
        where = Where(plan.source, field="name")
        message = f"no compose project can be called `{plan.name}`: it has no letter from a to z and no digit"
        hint = "write `name` in Latin letters; `title` and `description` of an agent may be in any script"
        raise Refused([Problem(where, message, hint, code=Code.COMPOSE_NAME)]) from None


def _read_back(context: RenderContext) -> dict[str, ObservedWorkload]:
    from pallas_gen.targets.compose import read_back

    return read_back.workloads(read_back.read(context.output / FILE), context.plan, context.project)


def _stale(context: RenderContext) -> dict[str, str]:
    from pallas_gen.project import contents
    from pallas_gen.targets.compose import read_back

    recorded = read_back.recorded(read_back.read(context.output / FILE))
    current = contents.by_entry(context.plan, contents.read(context.loaded.folder, context.plan))
    return contents.changes(recorded, current) if recorded else {}


def _conflicts(context: RenderContext) -> Iterator[Problem]:
    from pallas_gen.targets.compose import render, running

    return running.problems(render.project_name(context.plan.name), context.output / FILE)


def _next_steps(context: RenderContext) -> Iterator[str]:
    from pallas_gen.targets.compose import render

    project = render.project_name(context.plan.name)
    if project != context.plan.name:
        yield f"the compose project is `{project}`: `{context.plan.name}` cannot be the name of one"
    file = os.path.relpath(context.output / FILE)
    option = ["-f", file] if file != str(FILE) else []
    build = f"{context.build} && " if context.builds else ""
    yield f"next: {build}{shlex.join(['docker', 'compose', *option, 'up', '--wait'])}"


def _beside(context: RenderContext) -> Files:
    from pallas_gen.project import env_example

    loaded = context.loaded
    return env_example.files(loaded.fleet, loaded.config, context.plan.source, context.output)


TARGET = Target(
    name="compose",
    summary="Write compose.yaml: one service per agent, and the registry.",
    noun="compose",
    files=(FILE,),
    render=_render,
    read_back=_read_back,
    stale=_stale,
    beside=_beside,
    conflicts=_conflicts,
    next_steps=_next_steps,
)
