"""Every example, compiled: compared with tests/golden and read by the real tool. `--rewrite` writes the goldens."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from pallas_gen.plan import Plan, build_plan
from pallas_gen.project import contents, load
from pallas_gen.targets.compose import render as compose

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/agents.yaml"))
FLEETS = [*EXAMPLES, ROOT / "tests" / "generator" / "fleets" / "images"]
"""With one that has images of other people, which no example may have: nothing is downloaded for an example."""
FIRST = ROOT / "examples" / "01-hello"
HERE = PurePosixPath()

each_example = pytest.mark.parametrize("example", FLEETS, ids=lambda path: path.name)


def plan_of(example: Path) -> Plan:
    loaded = load.load(example / "agents.yaml", {})
    assert loaded.warnings == []
    return build_plan(loaded.fleet, loaded.config, loaded.project)


def rendered(example: Path, way: PurePosixPath = HERE) -> dict[PurePosixPath, str]:
    plan = plan_of(example)
    return compose.render(plan, way, contents.read(example, plan))


@each_example
def test_compose_is_what_it_was(example: Path, expected) -> None:
    for name, text in rendered(example).items():
        expected(ROOT / "tests" / "golden" / example.name / name, text)


def test_every_golden_is_one_that_an_example_writes() -> None:
    written = {ROOT / "tests" / "golden" / example.name / name for example in FLEETS for name in rendered(example)}
    assert {path for path in (ROOT / "tests" / "golden").rglob("*") if path.is_file()} == written


def test_deploy_compose_is_the_first_example(expected) -> None:
    way = PurePosixPath(os.path.relpath(FIRST, ROOT / "deploy" / "compose"))
    for name, text in rendered(FIRST, way).items():
        expected(ROOT / "deploy" / "compose" / name, text)


@each_example
@pytest.mark.docker
def test_docker_compose_accepts_it(example: Path, tmp_path: Path) -> None:
    assert shutil.which("docker")
    copy = shutil.copytree(example, tmp_path / example.name)
    (copy / "compose.yaml").write_text(rendered(example)[compose.FILE])
    done = _config(copy)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.docker
@pytest.mark.parametrize("option", [[], ["--build"]], ids=["up", "up --build"])
def test_up_without_images_says_what_makes_them(option: list[str], tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PALLAS_IMAGES", "nowhere-{name}:1")
    copy = shutil.copytree(FIRST, tmp_path / "hello")
    loaded = load.load(copy / "agents.yaml", os.environ)
    plan = build_plan(loaded.fleet, loaded.config, loaded.project)
    (copy / "compose.yaml").write_text(compose.render(plan, HERE, contents.read(copy, plan))[compose.FILE])
    command = ["docker", "compose", "--project-name", f"nowhere-{os.getpid()}", "up", "--detach", *option]
    done = subprocess.run(command, check=False, cwd=copy, capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert "this image is made by pallas-gen build" in last
    assert "denied" not in done.stderr


def _config(folder: Path) -> subprocess.CompletedProcess[str]:
    command = ["docker", "compose", "config", "-q"]
    return subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True, timeout=300)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2
