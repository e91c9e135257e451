"""A chart rendered by the real `helm template`, read back as data."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from pallas_gen.output import yaml as yaml_out
from pallas_gen.targets.observed import Unreadable

TIMEOUT = 300
"""Seconds; a thousand agents take about ten."""
_SOURCE = "# Source: "
"""What begins the line by which helm says which template follows."""


def render(folder: Path, secrets: Iterable[str], *, values: Path | None = None) -> list[dict[str, Any]]:
    """Return the objects of the chart in `folder`, with the file `values` over its own.

    `secrets` are names of secret entries; each gets a Secret's name in place of its content.

    Raises:
        Unreadable: there is no helm, it refuses the chart, or what it prints cannot be read.
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
        done = subprocess.run(command, check=False, capture_output=True, timeout=TIMEOUT, cwd=cwd)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise Unreadable(f"helm has not rendered this chart within {TIMEOUT} s") from None
    if done.returncode:
        log, word, message = _decoded(done.stderr).strip().partition("Error:")
        raise Unreadable(f"helm refuses this chart: {word}{message}" if word else f"helm refuses this chart: {log}")
    return _documents(_decoded(done.stdout))


def _decoded(output: bytes) -> str:
    # helm prints the names of templates as they are, in UTF-8 or not
    return output.decode("utf-8", errors="replace")


def _documents(text: str) -> list[dict[str, Any]]:
    """Return the objects that helm has printed, which takes YAML of templates that other readers refuse.

    Raises:
        Unreadable: some of it cannot be read; it names the template where that is known.
    """
    try:
        return [document for document in yaml_out.load_all(text) if document]
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date or a number that there is not
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        before = text.split("\n")[: mark.line] if mark else []
        sources = [line.removeprefix(_SOURCE) for line in before if line.startswith(_SOURCE)]
        reason = error.problem if isinstance(error, yaml.MarkedYAMLError) else str(error).partition("\n")[0]
        message = f"helm renders {sources[-1] if sources else 'this chart'} to YAML that cannot be read back: {reason}"
        raise Unreadable(message, "readers of YAML differ: put quotes around texts such as a lone `=`") from None
