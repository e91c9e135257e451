"""Start order, back-off and stopping, over hours of a clock that jumps."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from subprocess import SubprocessError
from typing import Any

import pytest

from pallas_agent_runtime.local import supervisor
from pallas_agent_runtime.local.restarts import Slots, Timing
from pallas_contract.validate import load
from tests.agent_runtime.local.conftest import FakePort
from tests.problem_lines import without_codes


def test_starts_a_member_once_what_it_needs_is_ready(world, member):
    code = world.run(
        member("registry", stage=0, kind="registry"),
        member("tech", stage=1),
        member("research", "tech", stage=2),
        member("harper", "research", stage=3),
        until=60,
    )
    assert code == 0
    assert world.order("start") == ["registry", "tech", "research", "harper"]
    assert world.times("start", "tech") == [0.0]
    assert world.times("start", "research") == [1.0]
    assert world.times("start", "harper") == [2.0]
    assert "all up; Ctrl-C stops all" in world.said


def test_an_agent_that_is_not_well_is_named_with_its_reason(world, member, life):
    world.conditions["scout"] = "degraded: Unreachable: notes"
    world.run(member("scout"), member("right"), until=10)
    assert "all up" not in world.said
    assert "pallas : up, but not all is well; Ctrl-C stops all\n  scout is degraded: Unreachable: notes\n" in world.said
    world.lives["right"] = [life(ready=None)]
    world.run(member("scout"), member("right"), until=100)
    assert "up, but without right; Ctrl-C stops all\n  scout is degraded: Unreachable: notes\n" in world.said


def test_no_more_start_at_a_time_than_there_are_cores(world, member):
    agents = [member(f"agent{i}") for i in range(10)]
    world.run(*agents, until=60, cores=2)
    starts = [world.times("start", agent.name)[0] for agent in agents]
    assert starts == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]


def test_of_forks_two_start_for_each_core_beside_the_others(world, member):
    others, forks = ["registry", "model", "argos"], [f"agent{i}" for i in range(6)]
    world.run(*map(member, [*others, *forks]), until=60, cores=2, forks=forks)
    starts = {name: world.times("start", name)[0] for name in [*others, *forks]}
    assert [starts[name] for name in others] == [0.0, 0.0, 1.0]
    assert [starts[name] for name in forks] == [0.0] * 4 + [1.0] * 2
    assert "starting 9 agents, 2 at a time, of forks 4\n" in world.said


async def test_who_waits_for_a_fork_that_comes_no_more_starts_as_one_of_the_others(member):
    forks = {"one", "two"}
    slots = Slots(1, lambda member: member.name in forks)
    under_way, most = 0, 0

    async def start(name: str) -> None:
        nonlocal under_way, most
        async with slots.of(member(name)):
            under_way += 1
            most = max(most, under_way)
            for _ in range(5):
                await asyncio.sleep(0)
            under_way -= 1

    async with asyncio.TaskGroup() as group, slots.of(member("one")), slots.of(member("two")):
        for name in ("one", "two", "two"):
            group.create_task(start(name))
        await asyncio.sleep(0)
        forks.clear()  # the warm parent has ended, or hangs
        group.create_task(start("other"))
        assert under_way == 0
    assert (under_way, most) == (0, 1)


def test_the_deadline_does_not_shrink_with_the_size_of_the_fleet(world, member, life):
    world.lives = {f"agent{i}": [life(ready=10)] for i in range(40)}
    world.run(*(member(name) for name in world.lives), until=300, cores=2)
    assert "not ready" not in world.said
    assert "all up" in world.said


def test_one_that_starts_fast_is_seen_at_once_and_a_slow_one_asked_seldom(world, member, life):
    """The next one of a fleet waits for its slot: of twenty forks in 3.4 s two thirds were pauses between questions."""
    world.lives = {"fast": [life(ready=0.1)], "slow": [life(ready=10)]}
    world.run(member("fast"), member("slow"), until=20)
    assert [at for at, name in world.asked if name == "fast"] == [0.0, 0.03125, 0.0625, 0.09375, 0.125]
    assert len([name for _, name in world.asked if name == "slow"]) == 16 + 8 + 36 + 1


def test_an_agent_that_is_late_is_reported_and_the_fleet_goes_on(world, member, life):
    world.lives["slow"] = [life(ready=75, says=("one", "loading"))]
    world.run(member("slow"), member("top", "slow", stage=2), until=100)
    assert world.times("start", "top") == [60.0]
    assert (
        "slow   : not ready after 60 s (connection refused); the fleet goes on without it. Its last lines:"
        in world.said
    )
    assert "lines:\n  one\n  loading\n" in world.said
    assert "up, but without slow" in world.said
    assert "slow   : ready after 75.0 s" in world.said


def test_a_late_agent_does_not_hold_up_the_queue_for_ever(world, member, life):
    world.lives["slow"] = [life(ready=None)]
    world.run(member("slow"), member("next"), until=100, cores=1)
    assert world.times("start", "next") == [60.0]


def test_a_dead_agent_starts_again_with_back_off(world, member, life):
    world.lives["flaky"] = [life(ready=None, ends=1.0)]
    world.run(member("flaky"), until=160)
    starts = world.times("start", "flaky")
    pauses = [round(later - earlier - 1.0, 1) for earlier, later in pairwise(starts)]
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    assert "flaky  : exited with code 1; starting it again in 0.5 s" in world.said


def test_the_back_off_starts_anew_after_a_healthy_minute(world, member, life):
    world.lives["flaky"] = [life(ends=2), life(ends=2), life(ends=90), life(ends=2), life()]
    world.run(member("flaky"), until=200)
    assert world.times("start", "flaky") == [0.0, 2.5, 5.5, 96.0, 99.0]


def test_a_restarted_agent_is_reported_ready_again(world, member, life):
    world.lives["flaky"] = [life(ends=5, code=-9), life(ready=3)]
    world.run(member("flaky"), until=30)
    assert "flaky  : was ended by SIGKILL; starting it again in 0.5 s" in world.said
    assert "flaky  : ready again after 3.0 s" in world.said


def test_dependents_wait_for_an_agent_that_needs_a_second_start(world, member, life):
    world.lives["flaky"] = [life(ready=None, ends=2), life()]
    world.run(member("flaky"), member("top", "flaky", stage=2), until=10)
    assert world.times("start", "top") == [3.5]
    assert "all up" in world.said


def test_dependents_of_a_crashing_agent_start_when_its_time_is_over(world, member, life):
    world.lives["flaky"] = [life(ready=None, ends=2)]
    world.run(member("flaky"), member("top", "flaky", stage=2), until=100)
    assert world.times("start", "top") == [60.0]
    assert "up, but without flaky" in world.said


def test_an_agent_that_refuses_its_input_is_not_started_again(world, member, life):
    world.lives["wrong"] = [life(ready=None, ends=1, code=2)]
    code = world.run(member("wrong"), member("right"), until=120)
    assert code == 0
    assert world.times("start", "wrong") == [0.0]
    assert "wrong  : exited with code 2: refused its input" in world.said
    assert "up, but without wrong" in world.said


def test_what_goes_on_beside_is_told_after_the_table(world, member):
    world.also = "talk to it at http://127.0.0.1:1/console"
    world.run(member("top"), until=10)
    assert world.said.index("all up; Ctrl-C stops all") < world.said.index("pallas : talk to it at http://127.0.0.1:1")


def test_ends_when_no_agent_is_left(world, member, life):
    world.lives["wrong"] = [life(ready=None, ends=1, code=2)]
    code = world.run(member("registry", stage=0, kind="registry"), member("wrong"), until=120)
    assert code == 2
    assert world.times("term", "registry") == [1.0]
    assert "no agent is left: stopping" in world.said


def test_a_member_that_cannot_be_started_is_tried_again(world, member, life):
    world.lives["odd"] = [life(code=127), life()]
    world.run(member("odd"), until=10)
    assert "odd    : cannot be started: no such interpreter; starting it again in 0.5 s" in world.said
    assert "odd    : ready after 1.0 s" in world.said


@pytest.mark.parametrize(
    "error", [ValueError("embedded null byte"), SubprocessError("preexec_fn"), RuntimeError("can't start new thread")]
)
def test_what_no_process_can_be_started_with_stops_no_other(world, member, life, monkeypatch, error):
    """Also where no check of ours has seen it before."""
    world.lives["odd"] = [life(code=127)]
    monkeypatch.setattr("tests.agent_runtime.local.conftest.FileNotFoundError", lambda _: error, raising=False)
    world.run(member("odd"), member("sound"), until=10)
    assert f"odd    : cannot be started: {error}; starting it again in 0.5 s" in world.said
    assert "sound  : ready after 1.0 s" in world.said


class Unthought(Exception):
    """No part of the supervisor knows it."""


def test_whatever_an_agent_answers_it_is_asked_again_and_no_other_ends(world, member, monkeypatch):
    """Also something that nobody has thought of: its answer to whether it is ready, and how it is."""
    asked = {"odd": 0}
    check, condition = world._check, world._condition

    async def odd_check(url: str) -> str:
        asked[url] = asked.get(url, 0) + 1
        if url == "odd" and asked[url] < 20:
            raise Unthought("secret")
        return await check(url)

    async def odd_condition(asked_member: Any) -> str:
        if asked_member.name == "odd":
            raise Unthought("secret")
        return await condition(asked_member)

    monkeypatch.setattr(world, "_check", odd_check)
    monkeypatch.setattr(world, "_condition", odd_condition)
    assert world.run(member("odd"), member("sound"), member("top", "odd", stage=2), until=100) == 0
    assert "odd    : ready after" in world.said
    assert world.times("start", "top")[0] < 60
    assert "\n  odd is cannot be asked: Unthought\n" in world.said
    assert world.order("exit")[0] == "top", "all ran until they were told to stop"
    assert "secret" not in world.said


def test_a_member_that_can_never_be_asked_is_late_with_the_reason(world, member, monkeypatch):
    async def check(url: str) -> str:
        raise Unthought

    monkeypatch.setattr(world, "_check", check)
    world.run(member("odd"), until=100)
    assert "odd    : not ready after 60 s (it cannot be asked: Unthought); the fleet goes on without it\n" in world.said


def test_a_port_is_handed_over_before_each_life_and_taken_back_after_it(world, member, life):
    world.lives["flaky"] = [life(ends=2), life()]
    world.run(member("flaky"), until=30)
    steps = [what for _, what, _ in world.events if what not in ("term",)]
    assert steps == ["hand over", "start", "exit", "take back"] * 2


def test_the_answer_of_another_program_makes_no_member_ready(world, member):
    world.strangers["model"] = "nginx (pid 12)"
    world.run(member("model", kind="service"), member("top", "model", stage=2), until=100)
    assert world.times("start", "top") == [60.0]
    reason = "another program answers on its port: nginx (pid 12)"
    assert f"model  : not ready after 60 s ({reason}); the fleet goes on without it\n" in world.said


def test_the_registry_is_told_why_an_agent_is_not_up(world, member, life):
    world.lives["flaky"] = [life(ready=None, ends=2, says=("token of mine",)), life()]
    world.run(
        member("registry", stage=0, kind="registry"),
        member("flaky"),
        member("top", "flaky", stage=2),
        until=10,
        cores=3,
    )
    starting = ("Starting", "not up yet")
    waiting = ("Starting", "waits for flaky")
    crashed = ("Exited", "exited with code 1; it is started again")
    assert world.absences[-6:] == [
        (0.0, {"flaky": starting, "top": waiting}),
        (2.0, {"flaky": crashed, "top": waiting}),
        (3.5, {"top": waiting}),
        (3.5, {"top": ("Starting", "waits for its turn to start")}),
        (3.5, {"top": starting}),
        (4.5, {}),
    ]


def test_the_registry_is_told_what_an_agent_refused_and_nothing_else_of_its_output(world, member, life):
    lines = ("warning: a note", "agents.yaml:4:3 agents.wrong.module: no module named `pandas`", "    install it")
    world.lives["wrong"] = [life(ready=None, ends=1, code=2, says=("\x1b[1mtoken\x1b[0m", *lines))]
    world.run(member("wrong"), member("right"), until=10)
    refused = {"wrong": ("InputRefused", "agents.yaml:4:3 agents.wrong.module: no module named `pandas`")}
    assert world.absences[-1][1] == refused
    world.lives["wrong"] = [life(ready=None, ends=1, code=2)]
    world.run(member("wrong"), member("right"), until=10)
    assert world.absences[-1][1] == {"wrong": ("InputRefused", "it refused its input")}


def test_an_exit_is_told_with_the_last_line_before_it(world, member, life):
    world.lives["flaky"] = [life(ready=None, ends=2, code=3, says=("\x1b[31mERROR\x1b[0m: in use", "  a hint")), life()]
    world.run(member("flaky"), until=10)
    assert "exited with code 3 (its last line: ERROR: in use); starting it again in 0.5 s" in world.said


def test_what_an_earlier_life_said_last_is_not_told_of_the_next_one(world, member, life):
    world.lives["flaky"] = [
        life(ready=None, ends=2, code=3, says=("ERROR: in use",)),
        life(ready=None, ends=2, code=4),
        life(ready=75),
    ]
    world.run(member("flaky"), until=100)
    assert "exited with code 4; starting it again in 1 s" in world.said
    assert "not ready after 60 s (connection refused); the fleet goes on without it\n" in world.said


def test_a_terminal_has_a_live_line_for_each_member_until_all_are_up(world, member, life):
    world.terminal = True
    world.lives["slow"] = [life(ready=7)]
    world.run(member("slow"), member("top", "slow", stage=2), until=30)
    colourless = re.sub(r"\x1b\[[0-9;]*m", "", world.said)
    said = re.sub(" +", " ", re.sub(r"\r?\x1b\[[0-9;?]*[A-Za-z]", "\n", colourless))
    assert re.search(r"^slow starting 5 s", said, re.MULTILINE)
    assert re.search(r"^top waiting waits for slow", said, re.MULTILINE)
    after = said.partition("all up; Ctrl-C stops all")[2]
    assert "waits for" not in after
    assert "starting 5" not in after


def test_without_a_terminal_there_are_plain_lines_only(world, member, life):
    world.lives["slow"] = [life(ready=7)]
    world.run(member("slow"), member("top", "slow", stage=2), until=30)
    assert "\x1b" not in world.said
    assert "waits for slow" not in world.said


@pytest.fixture
def tower(member):
    return [
        member("registry", stage=0, kind="registry"),
        member("model", stage=0, kind="service"),
        member("research", stage=1),
        member("harper", "research", stage=2),
    ]


def test_stops_callers_before_those_they_call(world, tower):
    assert world.run(*tower, until=30) == 0
    assert world.order("term")[:2] == ["harper", "research"]
    assert set(world.order("term")[2:]) == {"registry", "model"}
    assert world.order("exit")[:2] == ["harper", "research"]
    assert world.times("term", "research") == [30.1]


def test_what_ignores_the_signal_is_killed_within_the_grace_period(world, tower, life):
    world.lives["harper"] = [life(heeds=None)]
    world.lives["model"] = [life(heeds=None)]
    assert world.run(*tower, until=30) == 1
    assert world.times("term", "research") == [33.3]
    assert world.times("kill", "harper") == world.times("kill", "model") == [40.0]
    assert world.order("kill") == ["model", "harper"]
    assert "harper   : did not end within 10 s: killed" in world.said


def test_a_second_signal_kills_at_once(world, tower, life):
    world.lives = {one.name: [life(heeds=None)] for one in tower}
    assert world.run(*tower, until=30, again=30.5) == 130
    assert sorted(world.order("kill")) == sorted(one.name for one in tower)
    assert world.events[-1][0] == 30.5


def test_stopping_during_the_start_leaves_nothing_running(world, tower, life):
    world.lives["research"] = [life(ready=None)]
    assert world.run(*tower, until=5) == 0
    assert world.order("start") == ["registry", "model", "research"]
    assert sorted(world.order("exit")) == ["model", "registry", "research"]


def test_stopping_between_two_lives_starts_no_third(world, member, life):
    world.lives["flaky"] = [life(ready=None, ends=1)]
    assert world.run(member("flaky"), until=3.7, timing=Timing(first_pause=20)) == 0
    assert world.times("start", "flaky") == [0.0]


def test_the_table_names_state_address_process_and_start_time(world, member):
    world.run(member("research"), until=30)
    row = next(line for line in world.said.splitlines() if "http://research/mcp" in line)
    assert row.split() == ["research", "ready", "http://research/mcp", "1001", "1.0", "s"]


def test_members_come_and_go_while_the_fleet_runs(world, member, life):
    """What a follower of the files does, by which the fleet also goes on without an agent."""
    world.lives["wrong"] = [life(ready=None, ends=1, code=2), life()]
    world.lives["deaf"] = [life(heeds=None)]

    async def following() -> None:
        supervisor = world.supervisor
        await asyncio.sleep(10)
        await supervisor.remove("wrong")
        supervisor.add(member("wrong"), FakePort(world, "wrong"))
        supervisor.add(member("top", "wrong", stage=2), FakePort(world, "top"))
        await asyncio.sleep(10)
        await supervisor.remove("deaf")
        await asyncio.sleep(1000)

    code = world.run(member("wrong"), member("deaf"), until=100, following=following)
    assert code == 0
    assert world.times("start", "wrong") == [0.0, 10.0]
    assert world.times("start", "top") == [11.0]
    assert world.times("kill", "deaf") == [30.0]
    assert "deaf   : did not end within 10 s: killed" in world.said
    assert world.order("term") == ["deaf", "top", "wrong"]
    assert "no agent is left" not in world.said


def test_a_stop_waits_for_a_member_that_is_ending_already(world, member, life):
    world.lives["slow"] = [life(heeds=5)]

    async def following() -> None:
        await asyncio.sleep(10)
        await world.supervisor.remove("slow")

    assert world.run(member("slow"), member("other"), until=11, following=following) == 0
    assert world.times("exit", "slow") == [15.0]
    assert world.order("kill") == []


@pytest.mark.parametrize("count", [2, 3])
def test_replicas_of_one_port_are_told(tmp_path, count):
    replicas = f"replicas: {count}, instance_scope: request"
    text = f"name: x\nagents: {{a: {{module: a, port: 1, {replicas}}}, b: {{module: b, port: 2, replicas: 1}}}}\n"
    (tmp_path / "agents.yaml").write_text(text)
    fleet, tree, _ = load.load(tmp_path / "agents.yaml")
    (told,) = supervisor.replicas(fleet, tree)
    said = f"{count} replicas share one port: as processes one of them runs"
    assert without_codes(str(told)) == f"warning: agents.yaml:2:34 agents.a.replicas: {said}"
