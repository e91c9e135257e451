"""A stack whose run was killed is taken down by the next one, and no other is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from . import leftovers

OWN = """
import pathlib, sys
from tests.e2e import leftovers
with leftovers.owned(sys.argv[1], None, pathlib.Path(sys.argv[2])):
    print(flush=True)
    sys.stdin.read()
"""


def test_only_what_nobody_owns_any_longer_is_taken_down(root: Path, tmp_path: Path) -> None:
    removed: list[str] = []
    command = [sys.executable, "-c", OWN, "theirs", tmp_path]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with leftovers.owned("ours", removed.append, tmp_path):
            assert removed == []
        other.kill()
    with leftovers.owned("ours", removed.append, tmp_path):
        assert removed == ["theirs"]
    with leftovers.owned("ours", removed.append, tmp_path):
        assert removed == ["theirs"]
