"""Copies of the examples that do not get into each other's way."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.ports import free_ports, pool


def copy_example(example: Path, folder: Path, *, name: str = "", more: str = "") -> Path:
    """Copy `example` below `folder` with ports and subnets of its own, perhaps another `name`, and `more` keys.

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
    if "defaults:" not in text:  # a busy machine takes long to connect
        text += 'defaults: {env: {PALLAS_CONNECT_TIMEOUT: "30"}}\n'
    if "networks:" not in text + more:
        text += f"networks: {{pool: {pool()}}}\n"
    config.write_text(text + more)
    return config
