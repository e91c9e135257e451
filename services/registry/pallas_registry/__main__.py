"""`python -m pallas_registry`: exit code 0 when told to stop, 1 for the world, 2 for what the user wrote."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Mapping

from pallas_contract import names
from pallas_contract.launch import program
from pallas_contract.problems import Refused
from pallas_registry import settings
from pallas_registry.fleet_file import Follower, Loaded
from pallas_registry.registration import store
from pallas_registry.registration.store import RegistrationStore
from pallas_registry.settings import Settings
from pallas_service.http.sockets import CannotListen, listen
from pallas_service.sqlite_file import CannotStore


def main(env: Mapping[str, str] = os.environ) -> int:
    """Read the settings and the file, listen, serve until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # until the server takes over
    try:
        chosen = settings.read(env)
        follower = Follower(chosen.config)
        loaded = follower.first()
    except Refused as refused:
        for problem in refused.problems:
            print(problem, file=sys.stderr)  # noqa: T201
        return 2
    try:
        kept = store.opened(chosen.registrations) if chosen.registrations else store.MemoryRegistrations()
    except CannotStore as refused:
        print(f"pallas-registry: registrations cannot be kept in {refused}", file=sys.stderr)  # noqa: T201
        return 1
    default = settings.authority(program.registry_env(loaded.fleet, "local")[names.ENV_BIND])
    try:
        listener = listen(*(chosen.bind or default or ("", 0)))
    except CannotListen as refused:
        print(f"pallas-registry: {refused}", file=sys.stderr)  # noqa: T201
        return 1
    with contextlib.closing(kept):
        return _serve(chosen, loaded, follower, listener, kept)


def _serve(
    chosen: Settings, loaded: Loaded, follower: Follower, listener: socket.socket, kept: RegistrationStore
) -> int:
    # imported here: a bad file is answered without half a second for a web framework
    import structlog  # noqa: PLC0415
    import uvloop  # noqa: PLC0415

    from pallas_registry.server import serve  # noqa: PLC0415
    from pallas_service import logging  # noqa: PLC0415

    logging.configure(chosen.log_format, fleet=loaded.fleet.name, service="registry")
    log = structlog.get_logger()
    for warning in loaded.warnings:
        log.warning("fleet file", problem=str(warning))
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(chosen, loaded, follower, listener, kept))
    except Exception:
        log.exception("registry failed")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
