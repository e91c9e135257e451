"""tools/cluster: what `down` finds when others have made network namespaces meanwhile; in namespaces of its own."""

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
