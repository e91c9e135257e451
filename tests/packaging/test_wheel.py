"""The wheel carries all that its commands need: its file list, and `pallas-gen` run from it alone."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parent.parent.parent
ROOMS = {
    "contract": "",
    "generator": "",
    "services/common": "",
    "services/registry": "",
    "services/agent-runtime": "",
    "testing": "",
    "deploy/helm/pallas": "pallas_gen/chart",
}

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(list(map(str, command)), check=False, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    return next(folder.glob("*.whl"))


def test_every_tracked_file_of_every_room_is_in_it(wheel: Path) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = set()
    for room, place in ROOMS.items():
        files = run("git", "ls-files", "--cached", "--others", "--exclude-standard", room).splitlines()
        expected |= {str(PurePosixPath(place) / Path(file).relative_to(room)) for file in files}
    assert inside == expected
    assert "pallas_gen/templates/Dockerfile.fleet.j2" in inside


def test_pallas_gen_runs_from_it_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    uv = Path(sys.executable).parent / "uv"
    python = tmp_path / "venv" / "bin" / "python"
    run(uv, "venv", "-q", "--python", sys.executable, tmp_path / "venv")
    lock = ROOT / "requirements" / "generator.lock"
    run(uv, "pip", "install", "-q", "--python", python, "--require-hashes", "-r", lock)
    run(uv, "pip", "install", "-q", "--python", python, "--no-deps", wheel)
    example = os.path.relpath(ROOT / "examples" / "02-pallas" / "agents.yaml", tmp_path)
    command = tmp_path / "venv" / "bin" / "pallas-gen"
    assert run(command, "compose", "-f", example, "-o", "out", cwd=tmp_path) == "wrote out/compose.yaml\n"
    assert "research:" in (tmp_path / "out" / "compose.yaml").read_text()
    assert "wrote out/chart/templates/workloads.yaml" in run(
        command, "helm", "-f", example, "-o", "out/chart", cwd=tmp_path
    )
    assert run(command, "image", "-f", example, "--stdout", cwd=tmp_path).count("FROM ") == 1
