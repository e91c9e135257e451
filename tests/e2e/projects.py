"""Copies of the examples that do not get into each other's way."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_ports, pool


def edited(example: Path, folder: Path, *, more: str = "", file: str = "agents.yaml") -> Path:
    """Copy `example` below `folder`, with `more` keys, for the plugin to start; return the path of the fleet `file`."""
    project = shutil.copytree(example, folder / example.name, ignore=shutil.ignore_patterns("__pycache__"))
    config = project / file
    config.write_text(config.read_text() + _patience(config.read_text()) + more)
    return config


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
    text += _patience(text)
    if "networks:" not in text + more:
        text += f"networks: {{pool: {pool()}}}\n"
    config.write_text(text + more)
    return config


@contextmanager
def own_image(config: Path) -> Iterator[None]:
    """Rename a fleet that has an image of its own, so that this is made from the kit's of now, and take it away again.

    Under its usual name one of an earlier run would be taken, with the runtime of then.
    """
    own = re.search(r"^name: (.*)$", config.read_text(), flags=re.MULTILINE)
    assert own
    name = f"{own[1]}-{os.getpid()}"
    config.write_text(config.read_text().replace(own[0], f"name: {name}", 1))
    try:
        yield
    finally:
        listed = ["docker", "images", "--quiet", f"{name}-agent"]
        images = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split()
        if images:  # none where the build has failed, which is then the failure
            subprocess.run(["docker", "rmi", "--force", *images], check=True, capture_output=True)


def _patience(text: str) -> str:
    """Return keys for a busy machine, which takes long to connect."""
    return "" if "defaults:" in text else 'defaults: {env: {PALLAS_CONNECT_TIMEOUT: "30"}}\n'
