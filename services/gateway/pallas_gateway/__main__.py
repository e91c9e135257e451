"""`python -m pallas_gateway`: exit code 0 when told to stop, 1 for the world, 2 for what the user wrote."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pallas_contract import __version__, names
from pallas_contract.problems import Refused
from pallas_service.http.sockets import CannotListen


def parse(arguments: Sequence[str]) -> None:
    """Refuse all arguments but `--help` and `--version`: the gateway's settings are agents.yaml and variables.

    Raises:
        SystemExit: it was one of the two (0), or any other (2).
    """
    parser = argparse.ArgumentParser(
        prog="pallas_gateway",
        description="Serve the gateway of a fleet: one guarded door in front of its agents.",
        epilog=f"Settings are those of `gateway` in agents.yaml (${names.ENV_AGENTS_CONFIG}, default: "
        f"{names.AGENTS_FILE}) and ${names.ENV_BIND} (address:port). `pallas` starts it with the agents.",
    )
    parser.add_argument("--version", action="version", version=f"pallas_gateway {__version__}")
    parser.parse_args(arguments)


def main(environ: Mapping[str, str] = os.environ) -> int:
    """Read the settings, listen, serve until SIGTERM."""
    # a stop that comes before it listens ends the process as quietly as one that comes after
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # imported here: `--help` needs none of it
    import structlog  # noqa: PLC0415

    from pallas_gateway import serve, settings  # noqa: PLC0415
    from pallas_service import logging  # noqa: PLC0415

    path = Path(environ.get(names.ENV_AGENTS_CONFIG) or names.AGENTS_FILE)
    try:
        read = settings.read(path, environ, Path(names.SECRETS_DIR))
    except Refused as refused:
        for problem in refused.problems:
            sys.stderr.write(f"{problem}\n")
        return 2
    logging.configure(environ.get(names.ENV_LOG_FORMAT) or "json", fleet=read.fleet.name, service="gateway")
    for warning in read.warnings:
        structlog.get_logger(__name__).warning("fleet file", problem=str(warning))
    try:
        serve.run(read)
    except CannotListen as failure:
        sys.stderr.write(f"pallas_gateway: {failure}\n")
        return 1
    return 0


if __name__ == "__main__":
    parse(sys.argv[1:])
    sys.exit(main())
