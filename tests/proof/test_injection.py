"""What injected faults lead to, as it is measured: over a registry that is made up."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pallas_testing.fleet import Fleet, start
from pallas_testing.fleet.events import Change
from pallas_testing.fleet.start import Running
from pallas_testing.project import fleet_file
from pallas_testing.targets import table
from pallas_testing.targets.base import Order
from proof import injection
from proof.faults import CALLERS, FAULTS, LEAVES, TARGETS, Fault
from proof.injection import Effects, effects, measured
from tests.testing.fleet.registry_stub import Stub

FILE = """\
name: made-up
agents:
  harper: {module: a, port: 1, depends_on: [research, engineering]}
  research: {module: b, port: 2, depends_on: [tech_research]}
  tech_research: {module: c, port: 3}
  engineering: {module: d, port: 4}
"""


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setattr(table, "target", lambda _, order: Stub(order))
    monkeypatch.setattr(injection, "INTERVAL", 0.0)
    monkeypatch.setattr(injection, "HUNG", 0.01)
    monkeypatch.setattr(injection, "PATIENCE", 30.0)
    monkeypatch.setattr(injection, "SETTLED", 0.1)
    (tmp_path / "agents.yaml").write_text(FILE)
    with start.running("stub", Order(tmp_path / "agents.yaml", tmp_path), {}) as running:
        yield running


def kill(fleet: Fleet, agent: str) -> None:
    fleet.faults.kill(agent)


def injected(running: Running, count: int = 1, **facts: Any) -> Effects:
    fault = Fault("1", "kill", ("stub",), **{"inject": kill, **facts})
    result = effects(running, fault, count, random.Random(1))
    running.events.catch_up(30)
    return result


def changing(agent: str, status: str) -> Any:
    """Return a fault that hits its agent, and also changes another one."""

    def inject(fleet: Fleet, hit: str) -> None:
        assert isinstance(fleet._target, Stub)
        fleet._target.change(agent, status)
        fleet.faults.kill(hit)
        fleet._target.change(agent, "ok")

    return inject


def test_a_fault_is_noticed_and_undone_each_time(running: Running) -> None:
    result = injected(running, 3)
    assert (len(result.noticed), len(result.back), result.wrong) == (3, 3, [])
    assert all(state == "ok" for state in running.target.states.values())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("agent", "status", "wrong"),
    [("harper", "degraded", 0), ("harper", "error", 1), ("research", "degraded", 0)],
)
def test_callers_may_be_degraded_and_no_more(
    running: Running, monkeypatch: pytest.MonkeyPatch, agent: str, status: str, wrong: int
) -> None:
    monkeypatch.setattr(injection, "LEAVES", ("tech_research",))
    assert len(injected(running, inject=changing(agent, status)).wrong) == wrong


def test_who_calls_nobody_may_not_change_for_another(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injection, "LEAVES", ("tech_research",))
    assert len(injected(running, inject=changing("engineering", "degraded")).wrong) == 2


def test_a_fault_that_nobody_is_to_notice_counts_every_change(running: Running) -> None:
    assert injected(running, status="", inject=lambda *_: None).wrong == []
    assert injected(running, status="").wrong


def test_where_another_one_takes_the_place_only_its_return_is_measured(running: Running) -> None:
    result = injected(running, status=None)
    assert (result.noticed, len(result.back)) == ([], 1)


def test_what_happens_when_its_verb_is_over_counts_from_then(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injection, "until", lambda *_: 1000.0)
    result = injected(running, late={"stub": "until it is gone"})
    assert result.noticed == [1000.0 - result.injected[0]]
    assert injected(running, late={"cluster": "until it is gone"}).noticed == [1000.0]


def test_what_was_noticed_before_its_verb_was_over_took_no_time(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(injection, "until", lambda *_: 0.0)
    assert injected(running, late={"stub": "until it is gone"}).noticed == [0.0]


def test_what_befalls_all_is_noticed_of_all(running: Running) -> None:
    def all_of_them(fleet: Fleet, _: str) -> None:
        for agent in fleet.agents:
            fleet.faults.kill(agent)

    assert len(injected(running, inject=all_of_them, everybody=True).noticed) == 1


def test_a_state_that_never_comes_is_an_error(running: Running) -> None:
    times = iter([0.0, 0.0, 31.0, 31.0])
    with pytest.raises(TimeoutError, match="harper: not error after 30 s"):
        injection.until(running.events, 0, ["harper"], "error", clock=lambda: next(times))


def test_each_measure_says_what_was_done(running: Running) -> None:
    result = Effects(
        noticed=[1.0], back=[2.0], wrong=[Change("research", "ok", "error", "silent", "NoAnswer")], injected=[3.0]
    )
    noticed = Fault("1", "kill", ("compose",), kill)
    assert [(m.what, list(m.values), m.bound) for m in measured(noticed, "compose", result)] == [
        ("kill until `error`", [1.0], 6.0),
        ("undone until `ok` again (kill)", [2.0], None),
        ("wrong states of other agents (kill: research: ok -> error, silent)", [1], 0),
    ]
    late = Fault("3", "remove", ("cluster",), kill, late={"cluster": "until its pods are gone"})
    assert [(m.what, list(m.values), m.bound) for m in measured(late, "cluster", result)][:2] == [
        ("remove until its pods are gone", [3.0], None),
        ("remove until `error`", [1.0], 6.0),
    ]
    assert "until its pods" not in next(m.what for m in measured(late, "compose", result))
    replaced = Fault("1", "kill", ("processes",), kill, status=None, bound=None, everybody=True)
    assert [m.what for m in measured(replaced, "processes", result)] == ["kill until all run again and are `ok`"]
    borne = Fault("7", "slow", ("compose",), kill, status="", bound=None)
    assert [(m.what, m.bound) for m in measured(borne, "compose", Effects())] == [("changes of any agent (slow)", 0)]


def test_the_table_is_about_agents_that_are_there(root: Path) -> None:
    fleet = fleet_file.read(root / "examples" / "02-pallas" / "agents.yaml")
    assert set(LEAVES) == set(CALLERS) <= set(fleet.agents)
    assert {target for fault in FAULTS for target in fault.targets} == set(TARGETS)
    assert all(fault.bound is not None for fault in FAULTS if fault.status)
