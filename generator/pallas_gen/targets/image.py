"""Plan -> a Dockerfile that bakes the project's code into the agent image."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import PurePosixPath

import jinja2

from pallas_contract import names
from pallas_gen.plan import Plan
from pallas_gen.targets.base import Target

FILE = PurePosixPath("Dockerfile.fleet")


def render(plan: Plan, project: PurePosixPath) -> dict[PurePosixPath, str]:
    """Render the Dockerfile; `project` is the way from its folder to the one of agents.yaml, the build's context.

    It copies what holds no secret by name, so no builder and no ignore file can let one in.
    """
    loader = jinja2.PackageLoader("pallas_gen")
    environment = jinja2.Environment(loader=loader, keep_trailing_newline=True)  # noqa: S701 - the output is no HTML
    # JSON lists, so that a name may hold spaces and quotes
    copies = [json.dumps([_literal(name), f"{names.PROJECT_DIR}/{name}"], ensure_ascii=False) for name in plan.entries]
    words = {
        "image": plan.base_image,
        "context": shlex.quote(str(project)),
        "tag": "my-fleet:1",
        "source": plan.source,
        "copies": [copy.replace("$", "\\$") for copy in copies],
    }
    return {FILE: environment.get_template(f"{FILE}.j2").render(words)}


def _literal(name: str) -> str:
    """`name` as a pattern of COPY that matches only itself."""
    return re.sub(r"([\[*?\\])", r"[\1]", name)


TARGET = Target(
    name="image",
    summary="Write Dockerfile.fleet, which bakes the project's code into the agent image.",
    noun="Dockerfile.fleet",
    files=(FILE,),
    render=lambda context: render(context.plan, context.project),
)
