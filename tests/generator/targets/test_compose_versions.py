"""compose 5 reads what compose 2 reads, in every example."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from pallas_gen.plan import build_plan
from pallas_gen.project import contents, load
from pallas_gen.targets.compose import render as compose

pytestmark = [pytest.mark.docker, pytest.mark.versions, pytest.mark.slow]

EXAMPLES = sorted(path.parent for path in (Path(__file__).parents[3] / "examples").glob("*/agents.yaml"))


@pytest.fixture(scope="module")
def newest(root: Path) -> dict[str, str]:
    """Return the environment in which `docker compose` is the newest."""
    folder = subprocess.run([root / "tools" / "versions"], check=True, capture_output=True, text=True).stdout.strip()
    return {**os.environ, "DOCKER_CONFIG": f"{folder}/docker"}


def run(folder: Path, env: dict[str, str], *arguments: str) -> str:
    command = ["docker", "compose", *arguments]
    done = subprocess.run(command, check=False, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def without_defaults(document: Any) -> Any:
    """Return a document without `create_host_path: false`, which only the newer one spells out."""
    if isinstance(document, dict):
        return {key: without_defaults(value) for key, value in document.items() if (key, value) != SPELT_OUT}
    return [without_defaults(value) for value in document] if isinstance(document, list) else document


SPELT_OUT = ("create_host_path", False)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_both_read_the_same(example: Path, tmp_path: Path, newest: dict[str, str]) -> None:
    older = run(tmp_path, dict(os.environ), "version", "--short").strip()
    newer = run(tmp_path, newest, "version", "--short").strip()
    assert newer.lstrip("v").startswith("5.7.")
    assert older.partition(".")[0] < newer.lstrip("v").partition(".")[0], "no older one is here to compare with"

    copy = shutil.copytree(example, tmp_path / example.name)
    project = load.load(example / "agents.yaml", {})
    plan = build_plan(project.fleet, project.config, project.project)
    files = compose.render(plan, PurePosixPath(), contents.read(example, plan))
    (copy / "compose.yaml").write_text(files[compose.FILE])
    documents = [json.loads(run(copy, env, "config", "--format", "json")) for env in (dict(os.environ), newest)]
    assert without_defaults(documents[0]) == without_defaults(documents[1])
