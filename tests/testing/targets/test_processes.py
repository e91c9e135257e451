"""The fleet as processes: what of one output is whose, and which process answers at a port."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pallas_agent_runtime.local.warm import forker
from pallas_testing.project import fleet_file
from pallas_testing.targets import processes, table
from pallas_testing.targets.base import Order
from pallas_testing.targets.listeners import listener
from pallas_testing.targets.processes import Processes

OUTPUT = """\
pallas        : starting 2 agents, 2 at a time
research      | {"event": "ready"}
tech_research | research | not research's
research      : was ended by SIGKILL; starting it again in 0.5 s
"""
CHILD = "import sys; print(flush=True); sys.stdin.read()"


def test_a_log_has_the_lines_of_its_member_and_those_about_it(tmp_path: Path) -> None:
    fleet = table.target("processes", Order(tmp_path / "agents.yaml", tmp_path))
    assert fleet.logs("research") == ""
    (tmp_path / "pallas.log").write_text(OUTPUT)
    assert fleet.logs("research").splitlines() == [
        '{"event": "ready"}',
        "pallas: was ended by SIGKILL; starting it again in 0.5 s",
    ]
    assert fleet.logs("tech_research") == "research | not research's"


def test_of_a_socket_that_is_shared_the_child_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert listener(port) == os.getpid()
        with subprocess.Popen(
            [sys.executable, "-I", "-c", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[server.fileno()],
        ) as child:
            assert child.stdout is not None
            child.stdout.readline()
            assert listener(port) == child.pid
            child.communicate()
    assert listener(port) is None


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_what_an_agent_is_forked_from_is_not_taken_for_it() -> None:
    """It would be killed in the agent's place, and the agent lives on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = [sys.executable, "-I", "-c", CHILD]
        held = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "pass_fds": [server.fileno()]}
        with subprocess.Popen([*command, forker.__name__], **held) as parent:  # type: ignore[call-overload]
            assert parent.stdout.readline()
            assert listener(server.getsockname()[1]) is None
            with subprocess.Popen(command, **held) as agent:  # type: ignore[call-overload]
                assert agent.stdout.readline()
                assert listener(server.getsockname()[1]) == agent.pid
                agent.communicate()
            parent.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_supervisor_is_never_taken_for_an_agent_that_has_just_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agents.yaml").write_text("name: x\nregistry_port: 24200\nagents:\n  a: {card: a.md, port: 24201}\n")
    target = Processes(Order(tmp_path / "agents.yaml", tmp_path))
    target.file = fleet_file.read(tmp_path / "agents.yaml")
    monkeypatch.setattr(processes, "listener", lambda _: 7)
    assert target._pid("a") == 7
    monkeypatch.setattr(Processes, "supervisor", 7)
    with pytest.raises(LookupError, match="a has no process now"):
        target.kill("a")
    assert not target.answers("a")
    monkeypatch.setattr(processes, "listener", lambda _: 8)
    assert target.answers("a")
