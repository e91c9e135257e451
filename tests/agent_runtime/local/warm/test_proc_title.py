"""What others read of a process once it has a name of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pallas_agent_runtime.local.warm import proc_title

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux")

NAMED = """
import os, subprocess, sys
from pallas_agent_runtime.local.warm import proc_title

proc_title.set_command_line(sys.argv[1:])
os.environ["MARK"] = "a/b"
proc_title.set_variable("MARK", "a/b")
for file in ("cmdline", "environ"):
    print(open(f"/proc/self/{file}", "rb").read(), flush=True)
subprocess.run(["env"])
try:
    proc_title.set_variable("MARK", "x" * 8)
except ValueError as error:
    print(error)
"""


def run(*arguments: str, **env: str) -> list[str]:
    command = [sys.executable, "-P", "-c", NAMED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"LC_ALL": "C.UTF-8", **env})
    return done.stdout.splitlines()


def test_a_process_shows_its_command_and_mark_and_passes_on_its_variables() -> None:
    command_line, environ, *variables, refusal = run("pallas", "--agent", "jarvis", MARK="-----", LAST="z")
    assert command_line == repr(b"pallas --agent jarvis\0")
    # What was longer before leaves nothing but NULs behind.
    assert environ == repr(b"LC_ALL=C.UTF-8\0MARK=a/b\0\0\0LAST=z\0")
    assert sorted(variables) == ["LAST=z", "LC_ALL=C.UTF-8", "MARK=a/b"]
    assert refusal == "no room for MARK=xxxxxxxx"


def test_a_command_that_is_too_long_is_cut() -> None:
    script = (
        "import sys; from pallas_agent_runtime.local.warm import proc_title as p; p.set_command_line(['x' * 9999]);"
    )
    script += "print(len(open('/proc/self/cmdline').read()))"
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= len(" ".join([sys.executable, "-P", "-c", script])) + 1


def test_only_a_whole_variable_is_written_over() -> None:
    with pytest.raises(ValueError, match="no room for NOT_THERE=1"):
        proc_title.set_variable("NOT_THERE", "1")
    assert "NOT_THERE" not in os.environ
