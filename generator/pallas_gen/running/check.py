"""One question for all targets: is what runs the plan?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Where
from pallas_gen.plan import Plan
from pallas_gen.running import compose, kubernetes
from pallas_gen.running.tool import Run
from pallas_gen.targets.compose import render


def problems(plan: Plan, folder: Path, namespace: str | None, *, environ: Mapping[str, str], run: Run) -> list[Problem]:
    """Return everything in which the fleet that runs is not the plan: in containers, or as the release in a namespace.

    `folder` is that of the fleet file. Who cannot be asked is a problem too.
    """
    try:
        if namespace:
            return sorted(kubernetes.problems(plan, namespace, run))
        return sorted(compose.problems(plan, folder, environ, run))
    except compose.NoAnswer as error:
        hint = "see that it is installed, started, and that this user may use it; `pallas-gen doctor` says more"
        return [Problem(Where("verify --running"), str(error), hint, code=Code.ENGINE_AWAY)]
    except render.NoProjectName:
        message = f"no compose project can be called `{plan.name}`, so none can run"
        where = Where(plan.source, field="name")
        return [Problem(where, message, "write `name` in Latin letters", code=Code.COMPOSE_NAME)]
