"""A chart rendered by the real `helm template`, read back as data."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from pallas_contract.fleet.source import Loader
from pallas_gen.targets.observed import Unreadable

TIMEOUT = 300
"""Seconds; a thousand agents take about ten."""


def render(folder: Path, secrets: Iterable[str], *, values: Path | None = None) -> list[dict[str, Any]]:
    """Return the objects of the chart in `folder`, with the file `values` over its own.

    `secrets` are names of secret entries; each gets a Secret's name in place of its content.

    Raises:
        Unreadable: there is no helm, or it refuses the chart.
    """
    if not shutil.which("helm"):
        hint = "install Helm 3 or 4 and put it on PATH"
        raise Unreadable("helm is not installed: it is needed to read the chart back", hint)
    # its chart refuses a secret without content; no content is needed to compare
    options = [f"--set=secrets.{name}.existingSecret=any" for name in secrets]
    # by its name from its folder: helm splits a path at each comma
    options += [f"--values={values.name}"] if values else []
    command = ["helm", "template", "verify", str(folder), "--namespace", "verify", *options]
    cwd = values.parent if values else folder
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT, cwd=cwd)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise Unreadable(f"helm has not rendered this chart within {TIMEOUT} s") from None
    if done.returncode:
        raise Unreadable(f"helm refuses this chart: {done.stderr.strip()}")
    return [document for document in yaml.load_all(done.stdout, Loader=Loader) if document]
