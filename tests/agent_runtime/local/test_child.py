"""A real child: its output, its end, its group. `sh` stands in for a member."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pallas_agent_runtime.local import guardian
from pallas_agent_runtime.local.child import lines, spawn
from pallas_agent_runtime.local.programs import Member
from pallas_service.http import sockets

SUPERVISOR = """
import asyncio, os, pathlib
from pallas_agent_runtime.local.programs import Member
from pallas_agent_runtime.local.child import spawn

async def main():
    command = ("/bin/sh", "-c", "echo $$; exec sleep 3600")
    member = Member(
        name="it", kind="agent", stage=1, command=command, cwd=pathlib.Path("/"), url="", health_url="", env=os.environ
    )
    child = await spawn(member, lambda line: print(line, flush=True))
    await child.wait()

asyncio.run(main())
"""


GUARDED = SUPERVISOR.replace("exec sleep 3600", "setsid sleep 3600 & echo $!; exec sleep 3600").replace(
    "    child = await spawn(member, lambda",
    """    with guardian.watching() as run:
        member = replace(member, env={**os.environ, guardian.RUN: f"{run}/it"})
        child = await spawn(member, lambda""",
)
GUARDED = "from dataclasses import replace\nfrom pallas_agent_runtime.local import guardian\n" + GUARDED.replace(
    "    await child.wait()", "        await child.wait()"
)
"""What it starts has a session of its own, as MCP servers on stdio do."""


def member(*command: str) -> Member:
    return Member(
        name="it", kind="agent", stage=1, command=command, cwd=Path("/"), url="", health_url="", env=dict(os.environ)
    )


async def test_the_folder_of_a_service_that_keeps_something_is_there_for_its_user_only(tmp_path: Path) -> None:
    service = replace(
        shell("touch $PALLAS_STATE/it; stat -c %a $PALLAS_STATE"),
        kind="service",
        state=True,
        cwd=tmp_path,
        env={**os.environ, "PALLAS_STATE": ".pallas/services/it"},
    )
    for _ in range(2):  # it is there already, the second time
        printed: list[str] = []
        assert await (await spawn(service, printed.append)).wait() == 0
        assert printed == ["700"]
    assert (tmp_path / ".pallas/services/it/it").exists()


def shell(script: str) -> Member:
    return member("/bin/sh", "-c", script)


def gone(pid: int) -> bool:
    """Whether the process has ended; one that nobody has reaped yet counts as ended."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True


async def until_gone(pid: int) -> None:
    """Wait until the process has been ended, which by itself it would be in an hour."""
    try:
        async with asyncio.timeout(60):
            while not gone(pid):
                await asyncio.sleep(0.01)
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        raise


async def test_the_folder_of_an_agent_is_for_its_user_only_and_goes_with_what_one_that_was_killed_has_left(
    tmp_path: Path,
) -> None:
    home = tmp_path / "homes" / "it"
    agent = replace(
        shell("touch $PALLAS_HOME/it; stat -c %a $PALLAS_HOME; kill -9 $$"),
        env={**os.environ, "PALLAS_HOME": str(home)},
    )
    for _ in range(2):  # it is made anew for the next one
        printed: list[str] = []
        assert await (await spawn(agent, printed.append)).wait() == -signal.SIGKILL
        assert printed == ["700"]
        assert list(home.parent.iterdir()) == []


async def test_the_end_of_a_member_is_told_also_where_nothing_can_be_cleared_up_after_it(monkeypatch):
    """No thread is left, for example, where an agent has taken all."""
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))

    def broken(_mark: str) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(guardian, "end", broken)
    member = replace(shell("exit 3"), env={**os.environ, guardian.RUN: "run/it"})
    assert await (await spawn(member, lambda _: None)).wait() == 3
    assert [type(error) for error in reported] == [RuntimeError]


async def test_output_of_both_streams_is_heard_before_the_exit_code():
    heard: list[str] = []
    child = await spawn(shell("echo out; echo err >&2; printf half; exit 3"), heard.append)
    assert await child.wait() == 3
    assert heard == ["out", "err", "half"]


async def test_a_child_writes_on_to_the_end_when_nobody_can_show_its_lines():
    """The terminal is gone, or something that nobody thought of. A pipe holds 64 KiB: here there is more to come."""
    heard: list[str] = []
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))

    def broken(line: str) -> None:
        heard.append(line)
        raise BrokenPipeError

    child = await spawn(shell("trap '' PIPE; seq 1 30000 && exit 3"), broken)
    assert await child.wait() == 3
    assert heard == [str(number) for number in range(1, 30001)]
    assert [type(error) for error in reported] == [BrokenPipeError]


async def test_a_child_inherits_the_socket_of_its_port_and_no_other(port):
    heard: list[str] = []
    with closing(sockets.reserve("127.0.0.1", port)) as one, closing(socket.socket()) as other:
        listing = f"echo $PALLAS_LISTEN_FD; readlink /proc/self/fd/{one.fileno()} /proc/self/fd/{other.fileno()}"
        child = await spawn(shell(listing), heard.append, one.fileno())
        await child.wait()
        assert heard == [str(one.fileno()), f"socket:[{os.fstat(one.fileno()).st_ino}]"]


async def test_terminate_is_a_polite_signal():
    heard: list[str] = []
    started = asyncio.Event()
    script = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.02; done"
    child = await spawn(shell(script), lambda line: (heard.append(line), started.set()))
    await started.wait()
    child.terminate()
    assert await child.wait() == 0
    assert heard == ["up", "bye"]


async def test_kill_ends_what_the_child_started_too():
    heard: list[str] = []
    started = asyncio.Event()
    child = await spawn(shell("sleep 3600 & echo $!; wait"), lambda line: (heard.append(line), started.set()))
    await started.wait()
    child.kill()
    assert await child.wait() == -signal.SIGKILL
    await until_gone(int(heard[0]))


async def test_what_a_child_leaves_behind_is_ended():
    heard: list[str] = []
    child = await spawn(shell("sleep 3600 & echo $!"), heard.append)
    async with asyncio.timeout(60):
        assert await child.wait() == 0
    await until_gone(int(heard[0]))


async def test_signals_to_the_dead_are_harmless():
    child = await spawn(shell("exit 0"), print)
    await child.wait()
    child.terminate()
    child.kill()


async def test_a_missing_program_is_an_oserror():
    with pytest.raises(OSError, match="nowhere"):
        await spawn(member("/nowhere/python"), print)


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux")
def test_children_do_not_outlive_a_killed_supervisor():
    parent = subprocess.Popen([sys.executable, "-c", SUPERVISOR], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout as out:
        child = int(out.readline())
        assert not gone(child)
        parent.kill()
        parent.wait()
    asyncio.run(until_gone(child))


@pytest.mark.skipif(sys.platform != "linux", reason="a process tells its environment in /proc")
@pytest.mark.parametrize("last", [signal.SIGKILL, signal.SIGTERM])
def test_what_children_have_started_does_not_outlive_a_killed_supervisor_either(last: signal.Signals):
    parent = subprocess.Popen([sys.executable, "-c", GUARDED], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout as out:
        child, grandchild = int(out.readline()), int(out.readline())
        assert not gone(child)
        assert not gone(grandchild)
        parent.send_signal(last)
        parent.wait()
    asyncio.run(until_gone(child))
    asyncio.run(until_gone(grandchild))


@pytest.mark.skipif(sys.platform != "linux", reason="a process tells its environment in /proc")
async def test_what_a_killed_child_has_started_is_ended_wherever_it_went():
    heard: list[str] = []
    started = asyncio.Event()
    member = shell("setsid sleep 60 & echo $!; wait")
    marked = replace(member, env={**member.env, guardian.RUN: f"test-{os.getpid()}/it"})
    child = await spawn(marked, lambda line: (heard.append(line), started.set()))
    await started.wait()
    os.kill(child.pid, signal.SIGKILL)
    assert await child.wait() == -signal.SIGKILL
    assert gone(int(heard[0]))


def test_what_shows_no_variables_in_the_middle_of_an_exec_is_found_at_the_second_look(monkeypatch):
    with subprocess.Popen(["sleep", "60"]) as process:
        looks = iter([[], [process.pid], [], []])
        monkeypatch.setattr(guardian, "_marked", lambda mark: next(looks))
        guardian.end("run/it")
    assert process.returncode == -signal.SIGKILL
    assert list(looks) == []


async def test_the_end_of_a_member_is_not_that_of_one_whose_name_begins_with_its_name():
    run = f"test-{os.getpid()}"
    members = {
        name: await spawn(replace(shell("sleep 60"), env={**os.environ, guardian.RUN: f"{run}/{name}"}), print)
        for name in ("research", "research_two")
    }
    members["research"].terminate()
    assert await members["research"].wait() == -signal.SIGTERM
    members["research_two"].terminate()  # a kill before would be its end
    assert await members["research_two"].wait() == -signal.SIGTERM
    guardian.end(f"{run}/")


async def test_the_end_of_a_run_is_that_of_each_member():
    run = f"test-{os.getpid()}"
    members = [
        await spawn(replace(shell("sleep 60"), env={**os.environ, guardian.RUN: f"{run}/{name}"}), print)
        for name in ("a", "b")
    ]
    guardian.end(f"{run}/")
    assert [await member.wait() for member in members] == [-signal.SIGKILL] * 2


async def test_lines_of_any_length_and_encoding():
    stream = asyncio.StreamReader()
    stream.feed_data(b"short\r\n" + b"x" * 70_000 + b"\n\xff\n\nlast")
    stream.feed_eof()
    found = [line async for line in lines(stream)]
    assert found[0] == "short"
    assert "".join(found[1:-3]) == "x" * 70_000
    assert max(map(len, found)) <= 128 * 1024
    assert found[-3:] == ["\ufffd", "", "last"]
