"""A chart rendered by the real `helm template`, read back as data."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from pallas_gen.output import write

TIMEOUT = 300
"""Seconds; a thousand agents take about ten."""


class Unrenderable(Exception):
    """Helm is missing, or did not take the chart; the text says which."""


def render(files: Mapping[PurePosixPath, str], secrets: Mapping[str, str]) -> list[dict[str, Any]]:
    """The objects of a chart. `secrets` are names of secret entries; they get a Secret's name in place of content.

    Raises:
        Unrenderable: there is no helm, or it refuses the chart.
    """
    if not shutil.which("helm"):
        raise Unrenderable("helm is not installed: it is needed to read the chart back")
    given = [f"--set=secrets.{name}.existingSecret=given" for name in secrets.values()]
    with tempfile.TemporaryDirectory(prefix="pallas-gen-") as folder:
        write.write(files, Path(folder))
        command = ["helm", "template", "verify", folder, "--namespace", "verify", *given]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT)  # noqa: S603
    if done.returncode:
        raise Unrenderable(done.stderr.strip())
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [item for item in yaml.load_all(done.stdout, Loader=loader) if item]
