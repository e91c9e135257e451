"""Plan -> a Dockerfile that bakes the project's code into the agent image."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pallas_contract import names
from pallas_gen.targets.base import DOCKERFILE, RenderContext, Target

if TYPE_CHECKING:
    from pallas_gen.dependencies.recipe import Recipe
    from pallas_gen.plan import Plan

FILE = PurePosixPath(DOCKERFILE)

_SETTINGS = (
    "type=secret,id=pip,target=/etc/pip.conf",
    "type=secret,id=npm,target=/root/.npmrc",
    "type=secret,id=certificates",
    "type=cache,target=/var/cache/pip",
    "type=cache,target=/var/cache/npm",
)
SETTINGS = " ".join(f"--mount={mount}" for mount in _SETTINGS)
"""Options of RUN for a step that fetches packages: the settings of pip and npm on this machine, and their caches."""


def render(plan: Plan, project: PurePosixPath) -> dict[PurePosixPath, str]:
    """Render the Dockerfile; `project` is the way from its folder to the one of agents.yaml, the build's context.

    It copies what holds no secret by name, so no builder and no ignore file can let one in.
    """
    tag = "my-fleet:1"
    comment = (
        "The project's code baked into the agent image: "
        f"`docker build -f {FILE} -t {tag} {shlex.quote(str(project))}`, then `image: {tag}` in {plan.source}."
    )
    # JSON lists, so that a name may hold spaces and quotes
    copies = [json.dumps([_literal(name), f"{names.PROJECT_DIR}/{name}"], ensure_ascii=False) for name in plan.entries]
    escaped = [copy.replace("$", "\\$") for copy in copies]
    text = dockerfile(plan.recipe, comment, base=plan.base_image, python=plan.python_image, copies=escaped)
    return {FILE: text}


def dockerfile(recipe: Recipe, comment: str, *, base: str, python: str, copies: Sequence[str] = ()) -> str:
    """Return a Dockerfile that puts what is in `recipe` on top of `base`, which was built from `python`.

    Without `copies` it needs no context.
    """
    import jinja2

    loader = jinja2.PackageLoader("pallas_gen")
    environment = jinja2.Environment(loader=loader, keep_trailing_newline=True)  # noqa: S701 - the output is no HTML
    names_of_files = [name for name, _ in recipe.requirements]
    words = {
        "comment": comment,
        "image": base,
        "python": python,
        "inputs": [(stage, files) for stage, files in _inputs(recipe).items() if files],
        "servers": recipe.node or recipe.servers,
        # a uv.lock is read together with its pyproject.toml
        "requirements": "." if len(names_of_files) > 1 else next(iter(names_of_files), ""),
        "packages": " ".join(recipe.packages),
        "mounts": f"--mount=type=bind,from=tools,target=/build {SETTINGS}",
        # the agent image has no pip: that of the image it is made from is lent to the build
        "pip": f"--mount=type=bind,from={python},source=/usr/local/lib/python3.13,target=/opt/pip",
        "copies": copies,
    }
    return environment.get_template(f"{FILE}.j2").render(words)


def _inputs(recipe: Recipe) -> dict[str, list[tuple[str, str]]]:
    """Return stage -> paths and texts of the files that a step of the build reads.

    A stage for each reader, so that docker keeps the servers when a requirement changes.
    """
    servers = recipe.node or bool(recipe.servers)
    if not recipe.requirements and not servers:
        return {}
    from pallas_gen.dependencies import requirements

    folder = resources.files("pallas_gen.dependencies")
    tools = servers or requirements.UV_LOCK in dict(recipe.requirements)
    programs = ("bake.py", *(["launch.py"] if servers else []), *(["tools.lock"] if tools else []))
    return {
        "tools": [(f"/{name}", (folder / name).read_text("utf-8")) for name in programs],
        "server-list": [("/servers.json", recipe.server_list())] if servers else [],
        "requirements": [
            (f"/{name}", text if text.endswith("\n") else f"{text}\n") for name, text in recipe.requirements
        ],
    }


def _literal(name: str) -> str:
    """`name` as a pattern of COPY that matches only itself."""
    return re.sub(r"([\[*?\\])", r"[\1]", name)


def _next_steps(context: RenderContext) -> Iterator[str]:
    """Yield how it is built: by `pallas-gen build` under the name that the fleet file has for it."""
    if context.loaded.fleet.written.image.agent is not None:
        yield f"next: {context.build}"
    else:
        yield f"next: write `image: NAME:TAG` into {context.plan.source}, and run {context.build}"


TARGET = Target(
    name="image",
    summary="Write Dockerfile.fleet, which bakes the project's code into the agent image.",
    noun="Dockerfile.fleet",
    files=(FILE,),
    render=lambda context: render(context.plan, context.project),
    next_steps=_next_steps,
)
