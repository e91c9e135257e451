"""Plan -> a Dockerfile that bakes the project's code into the agent image."""

from __future__ import annotations

from pathlib import PurePosixPath

import jinja2

from pallas_contract import __version__, names
from pallas_gen.plan import Plan

FILE = PurePosixPath("Dockerfile.fleet")
IGNORE_FILE = PurePosixPath("Dockerfile.fleet.dockerignore")

_ALWAYS = (".git", ".venv", "__pycache__", "compose.yaml", names.DOTENV_FILE, names.SECRETS_FILE)


def render(plan: Plan) -> dict[PurePosixPath, str]:
    """The Dockerfile and its ignore file; secrets stay out of the image, also those the plan names elsewhere."""
    loader = jinja2.PackageLoader("pallas_gen")
    environment = jinja2.Environment(loader=loader, keep_trailing_newline=True)  # noqa: S701 - the output is no HTML
    patterns = sorted({*_ALWAYS, *plan.hidden})
    words = {
        "image": f"pallas-agent:{__version__}",
        "tag": "my-fleet:1",
        "source": plan.source,
        "project": names.PROJECT_DIR,
        "ignored": [*patterns, *(f"**/{pattern}" for pattern in patterns if "/" not in pattern)],
    }
    return {file: environment.get_template(f"{file}.j2").render(words) for file in (FILE, IGNORE_FILE)}
