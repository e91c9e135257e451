"""Forked members: as good as new, on their own, gone with the supervisor. A small program stands in for an agent."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pallas_agent_runtime.local import child, guardian
from pallas_agent_runtime.local.programs import Member
from pallas_agent_runtime.local.warm import parent
from pallas_agent_runtime.local.warm.parent import WarmParent, usable
from pallas_service.http import sockets

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forked on Linux only")

RUN = f"test{os.getpid()}"
PREFIX = ("-P", "-m", "program")

PROGRAM = """
import json, os, random, signal, sys, threading, warnings

SEEN_BY_THE_IMPORT = os.environ.get("READ_BY_THE_IMPORT")
if __name__ == "program":
    {at_import}

def warm():
    pass

def main(arguments, settle=lambda: None):
    name = arguments[-1]
    if name == "crash":
        raise ValueError("crashed")
    settle()
    fds = sorted(os.listdir("/proc/self/fd"), key=int)
    report = {{
        "arguments": arguments, "argv": sys.argv[1:], "cwd": os.getcwd(), "path": sys.path, "flags": str(sys.flags),
        "env": {{key: value for key, value in os.environ.items() if key not in ("PALLAS_LISTEN_FD", "PALLAS_RUN")}},
        "stdin": os.readlink("/proc/self/fd/0"), "umask": os.umask(0o22), "leads": os.getpgid(0) == os.getpid(),
        "open": sum(os.path.exists(f"/proc/self/fd/{{number}}") for number in fds),
        "handlers": [str(signal.getsignal(number)) for number in signal.valid_signals()],
        "blocked": [str(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
        "threads": threading.active_count(), "filters": [str(entry) for entry in warnings.filters],
        "buffered": [stream.line_buffering for stream in (sys.stdout, sys.stderr)],
    }}
    print(json.dumps({{"pid": os.getpid(), "parent": os.getppid(), "random": random.random(),
        "alone": __name__ == "__main__",
        "listens": os.environ.get("PALLAS_LISTEN_FD") and os.fstat(int(os.environ["PALLAS_LISTEN_FD"])).st_ino,
        "same": report}}), flush=True)
    print("to stderr", file=sys.stderr, flush=True)
    if name.startswith("wait"):
        signal.pause()
    return 3

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""


SUPERVISOR = """
import asyncio, os, pathlib, sys
from pallas_agent_runtime.local.programs import Member
from pallas_agent_runtime.local.warm import parent

parent.PREFIX = ("-P", "-m", "program")

class Screen:
    def output(self, *_): ...
    def report(self, *_): ...

async def main():
    command = (sys.executable, *parent.PREFIX, "--agent", "wait")
    member = Member(
        name="wait", kind="agent", stage=1, command=command, cwd=pathlib.Path("/"), url="", health_url="",
        env=dict(os.environ),
    )
    async with parent.WarmParent([member], Screen(), "program") as warm:
        child = await warm.spawn(member, lambda line: print(line, flush=True))
        print(warm._child.pid, child.pid, flush=True)
        await child.wait()

asyncio.run(main())
"""


@dataclass
class Lines:
    """The supervisor's screen."""

    of_parent: list[str] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)

    def output(self, name: str, line: str) -> None:
        self.of_parent.append(line)

    def report(self, name: str, text: str, level: str = "info") -> None:
        self.reports.append(text)


@dataclass
class Running:
    """A member that was started, and what it writes."""

    lines: list[str] = field(default_factory=list)
    said: asyncio.Event = field(default_factory=asyncio.Event)
    child: Any = None

    def on_line(self, line: str) -> None:
        self.lines.append(line)
        self.said.set()

    @property
    async def first(self) -> dict[str, Any]:
        """What it tells of itself."""
        async with asyncio.timeout(60):
            await self.said.wait()
        told: dict[str, Any] = json.loads(self.lines[0])
        return told

    async def code(self) -> int:
        async with asyncio.timeout(60):
            return int(await self.child.wait())


class Fleet:
    """A warm parent in the folder of a program, and what is started with it."""

    def __init__(self, folder: Path, at_import: str = "pass") -> None:
        (folder / "program.py").write_text(PROGRAM.format(at_import=at_import))
        self.folder = folder
        self.screen = Lines()
        self.warm = WarmParent([self.member(name) for name in ("one", "wait_for_a_signal")], self.screen, "program")

    def member(self, name: str, **env: str) -> Member:
        return Member(
            name=name,
            kind="agent",
            stage=1,
            command=(sys.executable, *PREFIX, "--agent", name),
            cwd=self.folder,
            url="",
            health_url="",
            env={**os.environ, "PYTHONPATH": str(self.folder), "OWN": name, guardian.RUN: f"{RUN}/{name}", **env},
        )

    async def start(self, name: str, fd: int | None = None, **env: str) -> Running:
        running = Running()
        running.child = await self.warm.spawn(self.member(name, **env), running.on_line, fd)
        return running

    async def report(self, name: str, **env: str) -> dict[str, Any]:
        """What one that has ended told of itself."""
        running = await self.start(name, **env)
        assert await running.code() == 3
        return await running.first

    async def alone(self, name: str) -> Running:
        """The same in a process that was not forked."""
        running = Running()
        running.child = await child.spawn(self.member(name), running.on_line)
        return running


@pytest.fixture(autouse=True)
def program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program in place of an agent."""
    monkeypatch.setattr(parent, "PREFIX", PREFIX)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


async def test_a_fork_is_what_a_new_process_would_be_and_a_child_of_ours(fleet: Fleet) -> None:
    async with fleet.warm:
        await fleet.report("two")  # which may leave nothing behind for the next one
        forked = await fleet.start("one")
        assert await forked.code() == 3
        alone = await fleet.alone("one")
        assert await alone.code() == 3
        assert forked.lines[1:] == alone.lines[1:] == ["to stderr"]
        ours, theirs = await forked.first, await alone.first
        assert (ours["alone"], theirs["alone"]) == (False, True)
        assert ours["same"] == theirs["same"]
        assert ours["same"]["env"]["OWN"] == "one"
        assert ours["pid"] == forked.child.pid
        assert ours["parent"] == os.getpid()
    assert (fleet.screen.of_parent, fleet.screen.reports) == ([], [])


async def test_forks_share_no_random_numbers(fleet: Fleet) -> None:
    async with fleet.warm:
        told = [await fleet.report(name) for name in ("one", "two")]
    assert told[0]["random"] != told[1]["random"]


async def test_it_is_shown_by_its_own_command_and_mark(fleet: Fleet) -> None:
    async with fleet.warm:
        running = await fleet.start("wait")
        await running.first
        process = Path(f"/proc/{running.child.pid}")
        assert (process / "cmdline").read_text().endswith("-P -m program --agent wait\0")
        assert f"{guardian.RUN}={RUN}/wait" in (process / "environ").read_text().split("\0")
        other = await fleet.start("wait_for_a_signal")
        await other.first
        await asyncio.to_thread(guardian.end, f"{RUN}/wait")
        assert await running.code() == -signal.SIGKILL
        other.child.terminate()
        assert await other.code() == -signal.SIGTERM


async def test_it_has_the_socket_of_its_port(fleet: Fleet, port: int) -> None:
    with closing(sockets.reserve("127.0.0.1", port)) as listener:
        async with fleet.warm:
            running = await fleet.start("one", listener.fileno())
            assert (await running.first)["listens"] == os.fstat(listener.fileno()).st_ino
            await running.code()


async def test_a_crash_is_a_traceback_and_takes_nobody_along(fleet: Fleet) -> None:
    async with fleet.warm:
        waiting = await fleet.start("wait")
        await waiting.first
        crashing = await fleet.start("crash")
        assert await crashing.code() == 1
        assert crashing.lines[-1] == "ValueError: crashed"
        await fleet.report("one")
        waiting.child.kill()
        assert await waiting.code() == -signal.SIGKILL


async def test_its_forks_live_on_when_it_is_killed_and_another_takes_its_place(fleet: Fleet) -> None:
    async with fleet.warm:
        waiting = await fleet.start("wait")
        await waiting.first
        first = fleet.warm._child
        assert first is not None
        os.kill(first.pid, signal.SIGKILL)
        await first.wait()
        assert (await fleet.report("one"))["parent"] == os.getpid()
        assert fleet.warm._child is not first
        waiting.child.terminate()
        assert await waiting.code() == -signal.SIGTERM
    assert fleet.screen.reports == []


async def test_the_folder_of_the_only_agent_stays_when_it_is_killed(fleet: Fleet) -> None:
    home = fleet.folder / "home"
    agent = fleet.member("wait", PALLAS_HOME=str(home))
    async with WarmParent([agent], fleet.screen, "program") as warm:
        waiting = Running()
        waiting.child = await warm.spawn(agent, waiting.on_line)
        assert (await waiting.first)["same"]["env"]["PALLAS_HOME"] == str(home)
        assert warm._child is not None
        warm._child.kill()
        await warm._child.wait()
        assert home.is_dir()
        waiting.child.terminate()
        await waiting.code()
        assert not home.exists()


def gone(pid: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True


async def test_neither_it_nor_its_forks_outlive_a_killed_supervisor(fleet: Fleet) -> None:
    env = {**os.environ, "PYTHONPATH": str(fleet.folder)}
    supervisor = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SUPERVISOR, env=env, stdout=asyncio.subprocess.PIPE
    )
    assert supervisor.stdout is not None
    async with asyncio.timeout(60):
        lines = [(await supervisor.stdout.readline()).decode() for _ in range(3)]
        pids = [int(pid) for pid in next(line for line in lines if line[0].isdigit()).split()]
        assert any(f'"pid": {pids[1]}' in line for line in lines)
        supervisor.kill()
        await supervisor.wait()
        while not all(map(gone, pids)):
            await asyncio.sleep(0.01)


async def test_a_fork_that_nobody_knows_of_ends_before_it_begins(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the supervisor gave up waiting."""
    async with fleet.warm:
        await fleet.report("one")
        monkeypatch.setattr(parent.forker, "GO", b"no")
        running = await fleet.start("one")
        assert await running.code() == 1
        assert running.lines == []


async def test_one_whose_environment_gives_other_imports_begins_anew_alone(fleet: Fleet) -> None:
    async with fleet.warm:
        assert (await fleet.report("one", READ_BY_THE_IMPORT="1"))["alone"]
        assert not (await fleet.report("two", OTHER="1"))["alone"]


@pytest.mark.parametrize(
    ("at_import", "line"),
    [
        ("raise RuntimeError('broken')", "RuntimeError: broken"),
        (
            "threading.Thread(target=threading.Event().wait, daemon=True).start()",
            "the imports have started 1 threads, and none of them would be in a fork",
        ),
    ],
)
async def test_without_a_warm_parent_each_starts_alone(tmp_path: Path, at_import: str, line: str) -> None:
    fleet = Fleet(tmp_path, at_import)
    async with fleet.warm:
        for name in ("one", "two"):
            assert (await fleet.report(name))["alone"]
        assert not fleet.warm.forks(fleet.member("one"))
    assert fleet.screen.of_parent[-1] == line
    assert fleet.screen.reports == ["the warm parent has ended: each agent starts for itself, slower"]


async def test_one_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent, "_PATIENCE", 0.0)
    fleet = Fleet(tmp_path, "signal.pause()")
    async with fleet.warm:
        assert (await fleet.report("one"))["alone"]
    assert fleet.screen.reports == ["the warm parent took too long: each agent starts for itself, slower"]


async def test_what_is_no_agent_of_ours_is_executed(fleet: Fleet) -> None:
    running = Running()
    shell = replace(fleet.member("it"), command=("/bin/sh", "-c", "echo $PPID; exit 4"))
    assert (fleet.warm.forks(shell), fleet.warm.forks(fleet.member("one"))) == (False, True)
    async with fleet.warm:
        running.child = await fleet.warm.spawn(shell, running.on_line)
        assert await running.code() == 4
    assert running.lines == [str(os.getpid())]
    with pytest.raises(OSError, match="nowhere"):
        await fleet.warm.spawn(replace(shell, command=("/nowhere/it",)), print)


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert usable({})
    assert usable({"PALLAS_WARM_PARENT": "1"})
    assert not usable({"PALLAS_WARM_PARENT": "0"})
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not usable({})
