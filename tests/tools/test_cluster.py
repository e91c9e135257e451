"""tools/cluster: what `down` finds when others have made network namespaces, and what `load` sends to the nodes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.root

HIDDEN = """
set -e
mount --make-rprivate /
mount -t tmpfs none /run
mkdir -p /run/netns "$CLUSTER_DIR/run"
# as containerd makes it, which mounts nothing but the namespace
touch /run/netns/cni-1
mount --bind /proc/self/ns/net /run/netns/cni-1
ip netns add other
{others}
tools/cluster down
ls /run/netns
test ! -e "$CLUSTER_DIR/run"
"""
"""A pod's namespace, and a mount of /run/netns that hides it."""


def run(root: Path, folder: Path, others: str) -> subprocess.CompletedProcess[str]:
    command = ["unshare", "--mount", "--net", "bash", "-c", HIDDEN.replace("{others}", others)]
    env = os.environ | {"CLUSTER_DIR": str(folder)}
    return subprocess.run(command, cwd=root, env=env, check=False, capture_output=True, text=True, timeout=120)


def test_a_hidden_network_namespace_is_deleted(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, "ip netns del other")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_one_that_is_hidden_by_somebody_elses_fails_nothing_and_is_named(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, "")
    assert (done.returncode, done.stdout.split()) == (0, ["cni-1", "other"]), done.stderr
    assert "left in /run/netns, which others use: cni-1" in done.stderr


DOCKER = """#!/bin/sh
case $1 in
  image) echo "sha256:$5" ;;
  save) shift; echo "an archive of $*" ;;
esac
"""
CTR = """#!/bin/bash
case ${*:6} in
  "tag --force sha256:old"* | "tag --force sha256:host.example:5000/old"*) echo "${*:8}" >> "$LOG" ;;
  "import -") cat >> "$LOG" ;;
  *) exit 1 ;;
esac
"""


def test_nodes_give_what_they_have_another_name_and_are_sent_the_rest(root: Path, tmp_path: Path) -> None:
    for name, text in (("docker", DOCKER), ("ctr", CTR)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(tmp_path / "log")}
    images = ["old", "team/new:2", "old:later", "host.example:5000/old"]
    subprocess.run(["tools/cluster", "load", *images], cwd=root, env=env, check=True, timeout=120)
    assert (tmp_path / "log").read_text().splitlines() == [
        "sha256:old docker.io/library/old:latest",
        "sha256:old:later docker.io/library/old:later",
        "sha256:host.example:5000/old host.example:5000/old:latest",
        "an archive of team/new:2",
    ]
