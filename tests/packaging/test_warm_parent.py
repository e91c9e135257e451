"""tests/warm_parent.py: what it forks is a process like any other."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.warm_parent import Forked, WarmParent

PROGRAM = """
import json, os, signal, sys

print("imported", os.getpid(), flush=True)

def main(arguments):
    print(json.dumps([arguments, sys.argv[1:], os.getcwd(), dict(os.environ), os.getpid()]), flush=True)
    if arguments == ["wait"]:
        signal.pause()
    if arguments == ["crash"]:
        raise ValueError("crashed")
    return 3
"""


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[WarmParent]:
    (tmp_path / "program.py").write_text(PROGRAM)
    parent = WarmParent(["program"], {**os.environ, "PYTHONPATH": str(tmp_path), "OF_THE_PARENT": "x"})
    yield parent
    parent.close()


def start(parent: WarmParent, folder: Path, *arguments: str) -> Forked:
    return parent.start(arguments, cwd=folder, env={"OF_THE_CHILD": "y"}, log=folder / "log")


def lines(folder: Path) -> list[str]:
    return (folder / "log").read_text().splitlines()


def test_a_program_has_arguments_a_folder_an_environment_and_an_exit_code_of_its_own(
    parent: WarmParent, tmp_path: Path
) -> None:
    process = start(parent, tmp_path, "one")
    assert (process.wait(60), process.poll(), process.returncode) == (3, 3, 3)
    (line,) = lines(tmp_path)
    assert json.loads(line) == [["one"], ["one"], str(tmp_path), {"OF_THE_CHILD": "y"}, process.pid]
    process.kill()  # nothing is left to be killed


def test_a_script_has_all_of_it_and_what_the_parent_has_imported(parent: WarmParent, tmp_path: Path) -> None:
    script = "import program, sys; print(__name__, sys.argv[1:]); sys.exit(program.main(['script']))"
    process = parent.start(["one"], cwd=tmp_path, env={"OF_THE_CHILD": "y"}, log=tmp_path / "log", script=script)
    assert process.wait(60) == 3
    first, second = lines(tmp_path)
    assert (first, json.loads(second)[0]) == ("__main__ ['one']", ["script"])


def test_a_crash_is_a_traceback_and_code_1_and_takes_nobody_along(parent: WarmParent, tmp_path: Path) -> None:
    assert start(parent, tmp_path, "crash").wait(60) == 1
    assert lines(tmp_path)[-1] == "ValueError: crashed"
    assert start(parent, tmp_path).wait(60) == 3


def test_a_signal_ends_one_of_them(parent: WarmParent, tmp_path: Path) -> None:
    first = start(parent, tmp_path, "wait")
    second = start(parent, tmp_path, "wait")
    first.terminate()
    assert first.wait(60) == -signal.SIGTERM
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(0)
    assert second.poll() is None
    second.kill()
    assert second.wait(60) == -signal.SIGKILL


def test_what_still_runs_ends_with_the_parent(parent: WarmParent, tmp_path: Path) -> None:
    process = start(parent, tmp_path, "wait")
    parent.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_one_that_is_shared_forks_for_all_and_ends_with_its_socket(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    path, env = tmp_path / "socket", {**os.environ, "PYTHONPATH": str(tmp_path)}
    first, second = (WarmParent(["program"], env, shared=str(path)) for _ in range(2))
    one, other = (start(parent, tmp_path, "wait").pid for parent in (first, second))
    server = parent_of(one)
    assert parent_of(other) == server
    first.close()
    until_gone(one)
    assert parent_of(other) == server, "of somebody else"
    path.unlink()
    until_gone(other)
    until_gone(server)
    second.close()


def test_one_that_has_ended_is_followed_by_another(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    path, env = tmp_path / "socket", {**os.environ, "PYTHONPATH": str(tmp_path)}
    for _ in range(2):
        parent = WarmParent(["program"], env, shared=str(path))
        child = start(parent, tmp_path, "wait").pid
        server = parent_of(child)
        os.kill(server, signal.SIGKILL)
        until_gone(server)
        os.kill(child, signal.SIGKILL)
        parent.close()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def until_gone(pid: int) -> None:
    """Wait for the end of a process that is no child of this one; its parent may not have asked for its code yet."""
    deadline = time.monotonic() + 60
    with contextlib.suppress(OSError):
        while " Z " not in Path(f"/proc/{pid}/stat").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
