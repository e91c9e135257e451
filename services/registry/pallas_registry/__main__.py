"""`python -m pallas_registry`: exit code 0 when told to stop, 1 for the world, 2 for what the user wrote."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pallas_contract import extras, names
from pallas_service import program

if TYPE_CHECKING:
    import socket

    from pallas_registry.fleet_file import FleetReading, FleetWatcher
    from pallas_registry.registration.store import RegistrationStore
    from pallas_registry.settings import Settings

NAME = "pallas-registry"
EXTRA = "registry"


def command() -> int:
    """Entry point `pallas-registry`: answer `--help` and `--version`, then serve.

    It exits with 2 where the packages of its extra are not installed.
    """
    arguments = program.parse(
        NAME,
        sys.argv[1:],
        description="Serve the registry of a fleet: it finds the agents, probes them and publishes what it knows.",
        epilog=f"Other settings are variables: ${names.ENV_BIND} (address:port) and those of docs/registry.md.\n"
        f"`pallas` starts it with the agents.\n\nexample:\n  {NAME} desk",
    )
    if absent := extras.missing(EXTRA):
        sys.stderr.write(extras.advice(NAME, EXTRA, absent))
        return 2
    env = program.environment(arguments, os.environ)
    return program.check(arguments, env, lambda: _read(env)) if arguments.check else main(env)


def main(env: Mapping[str, str] = os.environ) -> int:
    """Read the settings and the file, listen, serve until SIGTERM; return the exit code."""
    return program.run(NAME, lambda: _start(env))


def _read(env: Mapping[str, str]) -> FleetReading:
    from pallas_registry import settings  # noqa: PLC0415
    from pallas_registry.fleet_file import FleetWatcher  # noqa: PLC0415

    return FleetWatcher(settings.read(env).config).first()


def _start(env: Mapping[str, str]) -> int:
    # imported here: `--help` needs none of the extra's packages
    from pallas_registry import unused_imports  # noqa: PLC0415
    from pallas_service import compiled_texts, deferred_models, late_imports  # noqa: PLC0415

    compiled_texts.begin()
    late_imports.install(unused_imports.ALL)
    deferred_models.defer()  # of the fleet file's a registry uses the outermost, of FastAPI's none
    with late_imports.without(*unused_imports.OPTIONAL):
        import fastapi  # noqa: F401, PLC0415
        import structlog  # noqa: F401, PLC0415
    from pallas_contract.launch.program import registry  # noqa: PLC0415
    from pallas_registry import settings  # noqa: PLC0415
    from pallas_registry.fleet_file import FleetWatcher  # noqa: PLC0415
    from pallas_registry.registration import store  # noqa: PLC0415
    from pallas_service.http.sockets import listen  # noqa: PLC0415
    from pallas_service.sqlite_file import CannotStore  # noqa: PLC0415

    registry_settings = settings.read(env)
    watcher = FleetWatcher(registry_settings.config)
    reading = watcher.first()
    by_itself = registry(reading.fleet, "local").env  # what it has not been told, as of one that is started by hand
    try:
        path = registry_settings.registrations
        if path is None and registry_settings.placement == "local" and names.ENV_REGISTRATIONS in by_itself:
            path = registry_settings.config.parent / by_itself[names.ENV_REGISTRATIONS]
        registrations = store.opened(path) if path else store.MemoryRegistrations()
    except CannotStore as failure:
        raise program.Failure(f"registrations cannot be kept in {failure}") from None
    with contextlib.closing(registrations):
        default = settings.authority(by_itself[names.ENV_BIND])
        listener = listen(*(registry_settings.bind or default or ("", 0)), env.get(names.ENV_LISTEN_FD, ""))
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
    from pallas_service import compiled_texts, deferred_models, logging  # noqa: PLC0415
    from pallas_service.http.shutdown import REST, leave_in_time  # noqa: PLC0415

    deferred_models.as_usual()
    compiled_texts.end()
    program.collect_as_usual()

    logging.configure(settings.log_format, fleet=reading.fleet.name, service="registry")
    log = structlog.get_logger()
    for warning in reading.warnings:
        log.warning("fleet file", problem=str(warning))
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(settings, reading, watcher, listener=listener, store=store))
            leave_in_time(REST)
    except Exception:
        log.exception("registry failed")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(command())
