"""Blocks of commands that are run as they stand, by a shell: ours for real, stand-ins for docker and its like.

Those that need agents, containers or a cluster are run by the end-to-end tests.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.documentation import commands, fleets
from tests.documentation.blocks import ROOT, Block, of

CONFIG = f"{fleets.CONFIG}    fetch: {{command: uvx, args: [fetch]}}\n"
STAND_IN = """\
#!/bin/sh
echo "$(basename "$0") $*" >> "$LOG"
[ "$1 $2" != "image inspect" ] || exit 1
for word in "$@"; do
    case "$word" in type=local,dest=*) folder=${word#type=local,dest=} ;; esac
done
[ -n "$folder" ] || exit 0
mkdir "$folder" && echo '{}' > "$folder/servers.failed.json"
echo '{"python fetch": {"requirements": ["fetch==1 --hash=sha256:aa"]}}' > "$folder/servers.lock.json"
"""
"""It writes down how it was called; no image is here, and a build with an output leaves a lock of servers."""
OUTSIDE = ("docker", "helm", "make", "pip")
MADE = {
    "pallas-gen compose": "compose.yaml",
    "pallas-gen helm": "chart/Chart.yaml",
    "pallas-gen helm --values-only -o values": "values/values.yaml",
    "pallas-gen lock": "servers.lock.json",
    ".venv/bin/pallas-gen compose -f examples/02-pallas/agents.yaml": "examples/02-pallas/compose.yaml",
    "mkdir -p secrets": "secrets",
    "pallas init desk": "desk/agents.yaml",
}
"""What a command leaves."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a fleet, its servers on stdio, the examples and the tools that pages take for granted."""
    folder, tools = tmp_path / "project", tmp_path / "tools"
    for name in (folder / "examples", folder / ".venv", tools):
        name.mkdir(parents=True)
    for name in OUTSIDE:
        (tools / name).write_text(STAND_IN)
        (tools / name).chmod(0o755)
    fleets.check(folder, "", CONFIG)
    for downloaded in (
        folder,
        folder / "dist",
    ):  # a release, with names alone in its sums
        downloaded.mkdir(exist_ok=True)
        (downloaded / "chart.tgz").write_text("x")
        (downloaded / "SHA256SUMS").write_text(f"{hashlib.sha256(b'x').hexdigest()}  chart.tgz\n")
    shutil.copytree(ROOT / "examples" / "02-pallas", folder / "examples" / "02-pallas")
    (folder / ".venv" / "bin").symlink_to(Path(shutil.which("pallas-gen") or "pallas-gen").parent)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
    monkeypatch.delenv("PALLAS_IMAGES", raising=False)
    return folder


@pytest.mark.parametrize("block", of("offline"), ids=str)
def test_a_shell_runs_the_block_to_its_end(block: Block, project: Path) -> None:
    command = ["sh", "-e", "-c", block.text]
    done = subprocess.run(command, check=False, cwd=project, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    log = project.with_name("log")
    calls = log.read_text().splitlines() if log.is_file() else []
    for words in commands.simple(block.text):
        line = " ".join(words)
        assert commands.program(words) not in OUTSIDE or line in calls
        assert line not in MADE or (project / MADE[line]).exists()


def test_a_key_of_the_models_page_is_kept_as_it_is(project: Path) -> None:
    (block,) = [block for block in of("offline") if block.page == "docs/models.md"]
    subprocess.run(["sh", "-e", "-c", block.text], check=True, cwd=project, timeout=300)
    assert (project / "secrets" / "OPENAI_API_KEY.txt").read_text() == "sk-of-a-test"
