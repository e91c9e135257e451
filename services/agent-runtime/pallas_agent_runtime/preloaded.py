"""An agent as a program that is imported once for many processes: `pallas` forks its agents from one that has it.

It imports what an agent imports when it is served, so that a fork has it already.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn.lifespan.off  # noqa: F401 - by name, when the server starts

from pallas_agent_runtime import cli, engine, log_levels, serve  # noqa: F401 - `cli` imports them when it needs them
from pallas_agent_runtime.health import providers  # noqa: F401 - imported with the first check
from pallas_contract import names
from pallas_contract.fleet import fastagent
from pallas_contract.fleet.images import ResolvedImages
from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.resolved import ResolvedAgent
from pallas_contract.validate.code import models

engine.preload("")
for model in (Fleet, ResolvedAgent, ResolvedImages):  # built at their first use otherwise, by each fork for itself
    model.model_rebuild()


def warm() -> None:
    """Import what the provider of the project's default model needs; a project that cannot be read has none."""
    project = Path(os.environ[names.ENV_AGENTS_CONFIG]).parent
    declared, _ = fastagent.load(project)
    provider = models.provider_of(declared.default_model)
    engine.preload(provider.name if provider else "")


def main(arguments: Sequence[str], settle: Callable[[], None]) -> int:
    """Run the command of an agent (forker.Program)."""
    return cli.main(arguments, settle)
