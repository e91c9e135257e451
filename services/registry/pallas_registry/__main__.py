"""`python -m pallas_registry`: exit code 0 when told to stop, 1 for the world, 2 for what the user wrote."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pallas_contract import __version__, names
from pallas_contract.problems import Refused
from pallas_service import extras

if TYPE_CHECKING:
    import socket

    from pallas_registry.fleet_file import FleetReading, FleetWatcher
    from pallas_registry.registration.store import RegistrationStore
    from pallas_registry.settings import Settings

EXTRA = "registry"


def command() -> int:
    """Entry point `pallas-registry`: answer `--help` and `--version`, then serve.

    It exits with 2 where the packages of its extra are not installed.
    """
    parse(sys.argv[1:])
    if absent := extras.missing(EXTRA):
        sys.stderr.write(extras.advice("pallas-registry", EXTRA, absent))
        return 2
    return main()


def parse(arguments: Sequence[str]) -> None:
    """Refuse all arguments but `--help` and `--version`: the registry's settings are variables.

    Raises:
        SystemExit: it was one of the two (0), or any other (2).
    """
    parser = argparse.ArgumentParser(
        prog="pallas-registry",
        description="Serve the registry of a fleet: it finds the agents, probes them and publishes what it knows.",
        epilog=f"Settings are variables: ${names.ENV_AGENTS_CONFIG} (default: {names.AGENTS_FILE}), "
        f"${names.ENV_BIND} (address:port) and those of docs/registry.md. `pallas` starts it with the agents.",
    )
    parser.add_argument("--version", action="version", version=f"pallas-registry {__version__}")
    parser.parse_args(arguments)


def main(env: Mapping[str, str] = os.environ) -> int:
    """Read the settings and the file, listen, serve until SIGTERM."""
    # imported here: `--help` needs none of the extra's packages
    from pallas_contract.launch import program  # noqa: PLC0415
    from pallas_registry import settings  # noqa: PLC0415
    from pallas_registry.fleet_file import FleetWatcher  # noqa: PLC0415
    from pallas_registry.registration import store  # noqa: PLC0415
    from pallas_service.http.sockets import CannotListen, listen  # noqa: PLC0415
    from pallas_service.sqlite_file import CannotStore  # noqa: PLC0415

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # until the server takes over
    try:
        registry_settings = settings.read(env)
        watcher = FleetWatcher(registry_settings.config)
        reading = watcher.first()
    except Refused as refused:
        for problem in refused.problems:
            print(problem, file=sys.stderr)  # noqa: T201
        return 2
    try:
        path = registry_settings.registrations
        registrations = store.opened(path) if path else store.MemoryRegistrations()
    except CannotStore as refused:
        print(f"pallas-registry: registrations cannot be kept in {refused}", file=sys.stderr)  # noqa: T201
        return 1
    default = settings.authority(program.registry(reading.fleet, "local").env[names.ENV_BIND])
    try:
        listener = listen(*(registry_settings.bind or default or ("", 0)), env.get(names.ENV_LISTEN_FD, ""))
    except CannotListen as refused:
        print(f"pallas-registry: {refused}", file=sys.stderr)  # noqa: T201
        return 1
    with contextlib.closing(registrations):
        return _serve(registry_settings, reading, watcher, listener=listener, store=registrations)


def _serve(
    settings: Settings,
    reading: FleetReading,
    watcher: FleetWatcher,
    *,
    listener: socket.socket,
    store: RegistrationStore,
) -> int:
    # imported here: a bad file is answered without half a second for a web framework
    import asyncio  # noqa: PLC0415

    import structlog  # noqa: PLC0415
    import uvloop  # noqa: PLC0415

    from pallas_registry.server import serve  # noqa: PLC0415
    from pallas_service import logging  # noqa: PLC0415

    logging.configure(settings.log_format, fleet=reading.fleet.name, service="registry")
    log = structlog.get_logger()
    for warning in reading.warnings:
        log.warning("fleet file", problem=str(warning))
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(settings, reading, watcher, listener=listener, store=store))
    except Exception:
        log.exception("registry failed")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(command())
