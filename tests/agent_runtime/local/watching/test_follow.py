"""Edits of a running fleet: taken over once they stand still and would run; one that is wrong changes nothing."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pallas_agent_runtime.local import ports
from pallas_agent_runtime.local.programs import Member
from pallas_agent_runtime.local.watching import follow, snapshot
from pallas_contract import names
from pallas_service.http import sockets
from tests.agent_runtime.local.watching.test_snapshot import AGENTS, FILES, START

PATIENCE = 60.0


@dataclass
class Stand:
    """A fleet that only notes what happens to it, and its project folder."""

    folder: Path
    events: list[str] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    """Agent -> what its check says."""
    taken: set[int] = field(default_factory=set)
    """Ports that other programs have."""
    checked: Callable[[], None] = lambda: None
    hanging: bool = False
    """Whether the code never ends loading."""
    ports: dict[str, int] = field(default_factory=dict)

    def add(self, member: Member, port: Any) -> None:
        self.ports[member.name] = port.number
        self.events.append(f"add {member.name}")

    async def remove(self, name: str) -> None:
        self.events.append(f"remove {name}")

    def report(self, text: str, level: str = "info") -> None:
        self.reports.append(f"{level}: {text}")

    @property
    def errors(self) -> list[str]:
        return [report for report in self.reports if report.startswith("error: ")]

    async def check(self, member: Member) -> str:
        self.events.append(f"check {member.name}")
        self.checked()
        if self.hanging:
            await asyncio.Event().wait()
        return self.problems.get(member.name, "")

    def hold(self, member: Member) -> Any:
        return FakePort(self, member)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.005)


class FakePort:
    def __init__(self, stand: Stand, member: Member) -> None:
        self._stand, self._name = stand, member.name
        self.number = ports.address(member)[1]
        if self.number in stand.taken:
            raise sockets.CannotListen(f"cannot listen on 127.0.0.1:{self.number}: address already in use")
        stand.events.append(f"hold {self.number}")

    def close(self) -> None:
        self._stand.events.append(f"close {self.number}")


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stand:
    monkeypatch.setattr(follow, "INTERVAL", 0.005)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return Stand(tmp_path)


@asynccontextmanager
async def following(stand: Stand, first: str = "") -> AsyncIterator[None]:
    """Follow the files of the stand, from when they have been looked at; `first` is saved as agents.yaml before."""
    config = stand.folder / "agents.yaml"
    started = snapshot.take(config, {}).members
    held = {name: stand.hold(member) for name, member in started.items()}
    stand.events.clear()
    begun = asyncio.Event()
    if first:
        stand.write("agents.yaml", first)
        begun.set()

    class Observed(follow.Follower):
        async def _stamps(self, paths: frozenset[str]) -> Any:
            stamps = await super()._stamps(paths)
            begun.set()
            return stamps

    follower = Observed(config, {}, stand, held, started=started, check=stand.check, hold=stand.hold)
    task = asyncio.create_task(follower.run())
    try:
        await begun.wait()
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
    assert task.cancelled()


async def test_an_edited_agent_restarts_alone(stand: Stand) -> None:
    async with following(stand):
        stand.write("agents/desk.py", f"{START}# another\n")
        await stand.until(lambda: "add desk" in stand.events)
    assert stand.events == ["check desk", "remove desk", "add desk"]
    assert stand.reports == [
        "info: trying desk as edited",
        "info: agents.yaml and its files have changed: restarting desk",
    ]


async def test_one_that_comes_starts_and_one_that_goes_stops(stand: Stand) -> None:
    scout = "  scout: {card: agents/clerk.md, port: 24209}\n  clerk: {"
    async with following(stand):
        stand.write("agents.yaml", AGENTS.replace("  clerk: {", scout))
        await stand.until(lambda: "add scout" in stand.events)
        come = stand.events[:]
        stand.events.clear()
        stand.write("agents.yaml", AGENTS)
        await stand.until(lambda: "add registry" in stand.events)
    assert sorted(come) == ["add registry", "add scout", "check scout", "hold 24209", "remove registry"]
    assert sorted(stand.events) == ["add registry", "close 24209", "remove registry", "remove scout"]


async def test_two_that_change_places_get_the_ports_of_each_other(stand: Stand) -> None:
    swapped = AGENTS.replace("24201", "00000").replace("24202", "24201").replace("00000", "24202")
    async with following(stand):
        stand.write("agents.yaml", swapped)
        await stand.until(lambda: {"add desk", "add clerk"} <= set(stand.events))
    assert (stand.ports["desk"], stand.ports["clerk"]) == (24202, 24201)
    assert stand.events.index("close 24201") < stand.events.index("hold 24201")


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("agents.yaml", "name: [", "agents.yaml:2:1: broken YAML"),
        (
            "agents.yaml",
            AGENTS.replace("clerk.md", "nobody.md"),
            "agents.clerk.card: there is no file agents/nobody.md",
        ),
        ("agents/desk.py", f"{START}raise LookupError\n", "no module named pandas"),
        ("agents.yaml", AGENTS.replace("24202", "24299"), "clerk cannot listen on 127.0.0.1:24299"),
    ],
)
async def test_a_broken_edit_changes_nothing_and_the_one_that_mends_it_is_taken_over(
    name: str, text: str, line: str, stand: Stand
) -> None:
    stand.taken.add(24299)
    async with following(stand):
        if name == "agents/desk.py":
            stand.problems = {"desk": "agents.yaml:4:3 agents.desk.module: no module named pandas\n"}
        stand.write(name, text)
        await stand.until(lambda: bool(stand.errors))
        assert not {event for event in stand.events if event.startswith(("add", "remove", "close"))}
        assert stand.errors[0].startswith("error: the edit is not taken over, what runs goes on as it was:\n  ")
        assert line in stand.errors[0]
        stand.problems = {}
        stand.write("agents.yaml", AGENTS)
        stand.write("agents/desk.py", f"{START}# mended\n")
        await stand.until(lambda: "add desk" in stand.events)
    assert [event for event in stand.events if event.startswith("add")] == ["add desk"]


async def test_an_edit_that_was_refused_and_is_taken_back_is_told_to_be_in_order_again(stand: Stand) -> None:
    async with following(stand):
        stand.write("agents.yaml", "name: [")
        await stand.until(lambda: bool(stand.errors))
        stand.write("agents.yaml", AGENTS)
        await stand.until(lambda: any("in order again" in report for report in stand.reports))
    assert not [event for event in stand.events if event.startswith(("add", "remove"))]


async def test_an_edit_that_comes_while_one_is_tried_is_the_one_that_counts(stand: Stand) -> None:
    edits = [f"{START}# the last one\n"]

    def edit() -> None:
        if edits:
            stand.write("agents/desk.py", edits.pop())

    stand.checked = edit
    async with following(stand):
        stand.write("agents/desk.py", f"{START}# another\n")
        await stand.until(lambda: "add desk" in stand.events)
    assert stand.events == ["check desk", "check desk", "remove desk", "add desk"]


async def test_data_that_the_code_writes_when_it_is_loaded_is_left_alone(stand: Stand) -> None:
    lines = iter(range(1000))
    stand.checked = lambda: stand.write("table.csv", "1," * next(lines))
    async with following(stand):
        stand.write("agents/desk.py", FILES["agents/desk.py"] + "# another\n")
        await stand.until(lambda: "add desk" in stand.events)
        stand.write("table.csv", "written by the agent")
        stand.write("agents/clerk.md", FILES["agents/clerk.md"] + "Be brief.\n")
        await stand.until(lambda: "add clerk" in stand.events)
    assert [event for event in stand.events if "desk" in event] == [
        "check desk",
        "check desk",
        "remove desk",
        "add desk",
    ]
    text = "warning: the code that names table.csv writes it when it is loaded: no longer followed"
    assert stand.reports.count(text) == 1


async def test_code_that_never_ends_loading_is_given_up_for_the_edit_that_mends_it(stand: Stand) -> None:
    stand.hanging = True
    async with following(stand):
        stand.write("agents/desk.py", f"{START}# hangs\n")
        await stand.until(lambda: "check desk" in stand.events)
        stand.hanging = False
        stand.write("agents/desk.py", f"{START}# mended\n")
        await stand.until(lambda: "add desk" in stand.events)
    assert stand.events == ["check desk", "check desk", "remove desk", "add desk"]


async def test_one_that_listens_elsewhere_on_its_port_is_not_in_its_own_way(stand: Stand) -> None:
    async with following(stand):
        stand.write("agents.yaml", AGENTS.replace("port: 24202}", "port: 24202, publish: 127.0.0.2}"))
        await stand.until(lambda: "add clerk" in stand.events or bool(stand.errors))
    assert not stand.errors
    assert stand.events.index("close 24202") < stand.events.index("hold 24202")


async def test_a_port_that_is_lost_on_the_way_costs_its_member_alone(stand: Stand) -> None:
    swapped = AGENTS.replace("24201", "00000").replace("24202", "24201").replace("00000", "24202")
    async with following(stand):
        stand.taken.add(24202)
        stand.write("agents.yaml", swapped)
        await stand.until(lambda: bool(stand.errors))
        assert "the edit is taken over without desk:\n  desk cannot listen on 127.0.0.1:24202" in stand.errors[0]
        assert "add desk" not in stand.events
        stand.taken.clear()
        stand.write("agents.yaml", f"{swapped}# again\n")
        await stand.until(lambda: "add desk" in stand.events)
    assert (stand.ports["desk"], stand.ports["clerk"]) == (24202, 24201)
    assert len(stand.errors) == 1


async def test_a_save_that_is_broken_before_the_first_look_ends_nothing(stand: Stand) -> None:
    async with following(stand, first="name: ["):
        await stand.until(lambda: bool(stand.errors))
        stand.write("agents.yaml", AGENTS)
        await stand.until(lambda: {"add desk", "add clerk"} <= set(stand.events))
    assert "agents.yaml:2:1: broken YAML" in stand.errors[0]


async def test_whatever_goes_wrong_the_fleet_is_followed_further(stand: Stand) -> None:
    async with following(stand):
        stand.checked = lambda: {}["nobody thought of it"]  # type: ignore[typeddict-item]
        stand.write("agents/desk.py", f"{START}# another\n")
        await stand.until(lambda: bool(stand.errors))
        assert "KeyError: 'nobody thought of it'" in stand.errors[0]
        stand.checked = lambda: None
        stand.write("agents/desk.py", f"{START}# a third\n")
        await stand.until(lambda: "add desk" in stand.events)


async def test_a_file_that_no_system_can_have_ends_nothing(stand: Stand) -> None:
    """Code may name one: a string of Python may hold NUL."""
    odd = START.replace("name='desk'", "name='desk', instruction=Path('a\\0b.md')")
    async with following(stand):
        stand.write("agents/desk.py", f"from pathlib import Path\n{odd}")
        await stand.until(lambda: bool(stand.errors))
        assert "there is no file a\\x00b.md" in stand.errors[0]
        stand.write("agents/desk.py", f"{START}# mended\n")
        await stand.until(lambda: "add desk" in stand.events)


async def test_a_look_that_fails_by_itself_is_told_once_and_followed_by_others(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = snapshot.stamps
    looks = 0

    def broken(*_: Any) -> Any:
        nonlocal looks
        looks += 1
        raise RuntimeError("can't start new thread")

    async with following(stand):
        monkeypatch.setattr(snapshot, "stamps", broken)
        await stand.until(lambda: looks > 5)
        monkeypatch.setattr(snapshot, "stamps", look)
        stand.write("agents/desk.py", f"{START}# another\n")
        await stand.until(lambda: "add desk" in stand.events)
    assert stand.errors == ["error: its files cannot be looked at: RuntimeError: can't start new thread"]
    assert stand.events == ["check desk", "remove desk", "add desk"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("pass", ""),
        ("sys.stderr.write('agents.yaml: no\\n'); sys.exit(2)", "agents.yaml: no\n"),
        ("sys.exit(3)", "desk: the check ended with 3"),
        ("assert sys.argv[1:] == ['--check'] and os.environ['PALLAS_RUN'] == 'run/desk.check'", ""),
    ],
)
async def test_an_agent_is_checked_by_its_own_command(
    code: str, text: str, member: Callable[..., Member], tmp_path: Path
) -> None:
    command = (sys.executable, "-c", f"import os, sys; {code}")
    desk = replace(member("desk"), command=command, cwd=tmp_path, env={"PALLAS_RUN": "run/desk", names.ENV_BIND: ""})
    assert await follow.check(desk) == text


async def test_a_check_that_never_ends_is_killed(member: Callable[..., Member], tmp_path: Path) -> None:
    command = (sys.executable, "-c", "import time; time.sleep(1000)")
    desk = replace(member("desk"), command=command, cwd=tmp_path, env={names.ENV_BIND: ""})
    assert await follow.check(desk, deadline=0.01) == "desk: its code was not loaded within 0.01 s"
