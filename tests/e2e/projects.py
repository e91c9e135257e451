"""Copies of the examples that do not get into each other's way."""

from __future__ import annotations

import random
import re
import shutil
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

_BELOW_EPHEMERAL = range(20_000, 32_000)
"""Not the ports that the system gives to outgoing connections: one of those could take a port of ours meanwhile."""


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on, all different."""
    found: list[int] = []
    with ExitStack() as held:
        for port in random.sample(_BELOW_EPHEMERAL, len(_BELOW_EPHEMERAL)):
            if len(found) == count:
                return found
            with suppress(OSError):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
                found.append(port)
    raise OSError(f"fewer than {count} free ports")


def copy_example(example: Path, folder: Path, *, name: str = "", more: str = "") -> Path:
    """Copy `example` below `folder` with ports of its own, perhaps another `name`, and `more` top-level keys.

    Returns the path of the copy's agents.yaml.
    """
    project = shutil.copytree(example, folder / example.name, ignore=shutil.ignore_patterns("__pycache__"))
    config = project / "agents.yaml"
    ports = iter(free_ports(20))
    text = re.sub(r"(port: )\d+", lambda match: f"{match[1]}{next(ports)}", config.read_text())
    if "registry_port" not in text:
        text += f"registry_port: {next(ports)}\n"
    if name:
        text = re.sub(r"^name: .*$", f"name: {name}", text, count=1, flags=re.MULTILINE)
    config.write_text(text + more)
    return config
