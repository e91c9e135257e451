"""`python -m pallas_gateway`: exit code 0 when told to stop, 1 for the world, 2 for what the user wrote."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_contract import names
from pallas_service import program

if TYPE_CHECKING:
    from pallas_gateway.settings import Settings

NAME = "pallas_gateway"


def main(environ: Mapping[str, str] = os.environ) -> int:
    """Read the settings, listen, serve until SIGTERM; return the exit code."""
    return program.run(NAME, lambda: _serve(environ))


def _read(environ: Mapping[str, str]) -> Settings:
    from pallas_gateway import settings  # noqa: PLC0415

    path = Path(environ.get(names.ENV_AGENTS_CONFIG) or names.AGENTS_FILE)
    return settings.read(path, environ, Path(names.SECRETS_DIR))


def _serve(environ: Mapping[str, str]) -> int:
    from pallas_gateway import unused_imports  # noqa: PLC0415 - `--help` needs none of it
    from pallas_service import compiled_texts, deferred_models, late_imports  # noqa: PLC0415

    compiled_texts.begin()
    deferred_models.defer()
    late_imports.install(unused_imports.DISTRIBUTIONS)
    with late_imports.without(*unused_imports.OPTIONAL):
        import logging  # noqa: PLC0415

        import structlog  # noqa: PLC0415

        from pallas_gateway import serve  # noqa: PLC0415
        from pallas_service.logging import configure  # noqa: PLC0415
        from pallas_service.sqlite_file import CannotStore  # noqa: PLC0415

    read = _read(environ)
    for name, value in read.variables.items():  # OpenTelemetry and the like look for theirs here
        os.environ.setdefault(name, value)
    configure(environ.get(names.ENV_LOG_FORMAT) or "json", fleet=read.fleet.name, service="gateway")
    logging.getLogger("mcp").setLevel(logging.WARNING)  # it says of every call that its session ends, and there is none
    for warning in read.warnings:
        structlog.get_logger(__name__).warning("fleet file", problem=str(warning))
    deferred_models.as_usual()
    compiled_texts.end()
    program.collect_as_usual()
    try:
        serve.run(read)
    except CannotStore as error:
        raise program.Failure(f"its state cannot be kept in {error}") from None
    return 0


if __name__ == "__main__":
    arguments = program.parse(
        NAME,
        sys.argv[1:],
        description="Serve the gateway of a fleet: one guarded door in front of its agents.",
        epilog=f"Settings are those of `gateway` in agents.yaml and ${names.ENV_BIND} (address:port).\n"
        "`pallas` starts it with the agents.",
    )
    env = program.environment(arguments, os.environ)
    sys.exit(program.check(arguments, env, lambda: _read(env)) if arguments.check else main(env))
