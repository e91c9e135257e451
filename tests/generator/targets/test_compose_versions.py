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


def rendered(example: Path) -> str:
    project = load.load(example / "agents.yaml", {})
    plan = build_plan(project.fleet, project.config, project.project)
    return compose.render(plan, PurePosixPath(), contents.read(example, plan))[compose.FILE]


SPELT_OUT = ("create_host_path", False)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_both_read_the_same(example: Path, tmp_path: Path, newest: dict[str, str]) -> None:
    older = run(tmp_path, dict(os.environ), "version", "--short").strip()
    newer = run(tmp_path, newest, "version", "--short").strip()
    assert newer.lstrip("v").startswith("5.7.")
    assert older.partition(".")[0] < newer.lstrip("v").partition(".")[0], "no older one is here to compare with"

    copy = shutil.copytree(example, tmp_path / example.name)
    (copy / "compose.yaml").write_text(rendered(example))
    documents = [json.loads(run(copy, env, "config", "--format", "json")) for env in (dict(os.environ), newest)]
    assert without_defaults(documents[0]) == without_defaults(documents[1])


BUILDX = """\
#!/bin/sh
case "$*" in
docker-cli-plugin-metadata) echo '{"SchemaVersion": "0.1.0", "Vendor": "tests", "Version": "v0.17.0"}' ;;
*bake*) exec "$REAL_BUILDX" bake --file - --progress plain ;;
*) exec "$REAL_BUILDX" "$@" ;;
esac
"""
"""buildx as compose 5 asks for it, 0.17, where Debian has 0.13: only the options that this one lacks are left out."""


@pytest.fixture(params=["older", "newest"])
def environ(request: pytest.FixtureRequest, newest: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The environment of a compose; beside the newest there is a buildx that it takes."""
    if request.param == "older":
        return dict(os.environ)
    plugins = tmp_path / "docker" / "cli-plugins"
    plugins.mkdir(parents=True)
    (plugins / "docker-compose").symlink_to(Path(newest["DOCKER_CONFIG"], "cli-plugins", "docker-compose"))
    (plugins / "docker-buildx").write_text(BUILDX)
    (plugins / "docker-buildx").chmod(0o755)
    info = ["docker", "info", "--format", "{{json .ClientInfo.Plugins}}"]
    listed = json.loads(subprocess.run(info, check=True, capture_output=True, text=True).stdout)
    real = next(plugin["Path"] for plugin in listed if plugin["Name"] == "buildx")
    return {**os.environ, "DOCKER_CONFIG": str(plugins.parent), "REAL_BUILDX": real}


def test_both_name_the_command_that_makes_a_missing_image(environ: dict[str, str], tmp_path: Path) -> None:
    """Decision 0030. Nothing is made before: no network is left."""
    project = shutil.copytree(EXAMPLES[0], tmp_path / "project")
    missing = f"missing-{os.getpid()}"
    (project / "compose.yaml").write_text(rendered(EXAMPLES[0]).replace("pallas-agent:", f"{missing}:"))
    up = ["docker", "compose", "--project-name", missing, "up", "--detach"]
    done = subprocess.run(up, check=False, cwd=project, env=environ, capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if "unable to prepare context" in line]
    assert [compose.NOT_BUILT_HERE in line for line in lines] == [True], done.stderr
    networks = ["docker", "network", "ls", "--quiet", "--filter", f"label=com.docker.compose.project={missing}"]
    assert subprocess.run(networks, check=True, capture_output=True, text=True).stdout == ""
