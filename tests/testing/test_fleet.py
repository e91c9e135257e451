"""A fleet as a test has it, over a registry that is made up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pallas_testing.answers.answer import Answer
from pallas_testing.answers.calls import Call
from pallas_testing.fleet import face, report, start
from pallas_testing.fleet.face import Fleet
from pallas_testing.fleet.start import Running
from pallas_testing.targets import table
from pallas_testing.targets.base import CannotDisturb, CannotStart, FaultEnded, Order
from tests.testing.fleet.registry_stub import Stub

FILE = """\
name: made-up
agents:
  harper: {module: a, port: 1, depends_on: [tech_research]}
  tech_research: {module: b, port: 2}
"""


@pytest.fixture
def order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Order:
    monkeypatch.setitem(table.TARGETS, "stub", f"{Stub.__module__}:Stub")
    (tmp_path / "agents.yaml").write_text(FILE)
    return Order(tmp_path / "agents.yaml", tmp_path)


@pytest.fixture
def running(order: Order, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setattr(table, "target", lambda _, order: Stub(order))
    with start.running("stub", order, {}) as running:
        yield running


@pytest.fixture
def stub(running: Running) -> Stub:
    assert isinstance(running.target, Stub)
    return running.target


@pytest.fixture
def fleet(running: Running) -> Fleet:
    return Fleet(running)


def test_it_saw_the_states_since_the_test_began(fleet: Fleet, stub: Stub) -> None:
    stub.change("tech_research", "error")
    stub.change("tech_research", "starting")
    stub.change("tech_research", "ok")
    assert fleet.registry.saw("tech_research", "ok", "error", "ok")
    assert [change.new for change in fleet.registry.events] == ["error", "starting", "ok"]


def test_it_did_not_see_what_was_before_or_in_another_order(running: Running, stub: Stub) -> None:
    stub.change("tech_research", "error")
    stub.change("harper", "degraded", "Unreachable: tech_research")
    running.events.catch_up(10)
    fleet = Fleet(running)
    stub.change("tech_research", "ok", "back")
    running.events.catch_up(10)
    with pytest.raises(AssertionError) as failure:
        fleet.registry.saw("tech_research", "ok", "error", within=0)
    assert str(failure.value).splitlines() == [
        "tech_research was not seen ok -> error within 0 s",
        "seen: error -> ok",
        "not any more: error",
        "tech_research: error -> ok, back",
    ]


def test_what_arrives_late_is_none_of_the_next_tests(running: Running, stub: Stub) -> None:
    running.events.catch_up(10)
    stub.told.clear()
    stub.change("harper", "error")
    stub.change("harper", "ok")
    fleet = Fleet(running)
    stub.told.set()
    stub.change("harper", "error", "its own")
    running.events.catch_up(10)
    assert [change.reason for change in fleet.registry.events] == ["its own"]


def test_what_it_waits_for_comes_or_it_says_what_it_saw(fleet: Fleet, stub: Stub) -> None:
    fleet.wait_for({"harper": "ok", "tech_research": "ok"}, within=0)
    stub.change("harper", "degraded")
    with pytest.raises(AssertionError) as failure:
        fleet.wait_for({"harper": "ok", "tech_research": "ok"}, within=0)
    first, second = str(failure.value).splitlines()
    assert first == "waited 0 s in vain for harper ok, tech-research ok; seen:"
    assert second.endswith("s  {'harper': 'degraded'}")


def test_it_waits_for_a_function_whatever_that_raises(fleet: Fleet) -> None:
    answers = iter([0, 1])
    fleet.wait_for(lambda: next(answers), within=60)
    with pytest.raises(AssertionError, match=r"in vain for dict.clear; seen:\n +\S+ s  None"):
        fleet.wait_for({}.clear, within=0)
    with pytest.raises(AssertionError, match="ValueError: invalid literal for int"):
        fleet.wait_for(lambda: int("x"), within=0)


def test_sessions_that_are_left_are_named(fleet: Fleet, stub: Stub) -> None:
    assert fleet.no_sessions_left()
    stub.metrics = "pallas_sessions 2.0\npallas_calls_in_flight 0.0\n"
    with pytest.raises(AssertionError) as failure:
        fleet.no_sessions_left(within=0)
    first, second = str(failure.value).splitlines()
    assert first == "waited 0 s in vain for agents that nobody uses; seen:"
    assert second.endswith(" s  harper: 2 session(s) open; tech_research: 2 session(s) open")
    stub.metrics = "pallas_calls_in_flight 1.0\n"  # one of scope `request` has no sessions
    with pytest.raises(AssertionError, match=r" s  harper: 1 call\(s\) under way; "):
        fleet.no_sessions_left(within=0)


def test_agents_that_count_nothing_are_not_taken_for_unused(fleet: Fleet, stub: Stub) -> None:
    stub.metrics = "other_metric 0.0\n"
    with pytest.raises(
        AssertionError, match="harper: its metrics have none of pallas_sessions, pallas_calls_in_flight"
    ):
        fleet.no_sessions_left(within=0)


def test_a_secret_that_got_out_is_told_by_its_place_only(fleet: Fleet, stub: Stub) -> None:
    assert fleet.no_secret("never-planted")
    fleet.answers.append(Answer("it is harper-canary", (), Call("harper", "harper__harper", 0.0)))
    with pytest.raises(AssertionError) as failure:
        fleet.no_secret("harper-canary")
    assert str(failure.value).splitlines() == [
        "the secret is in",
        "the log of harper, line 2",
        "answer 1 of harper, line 1",
    ]


def test_a_fault_is_undone_and_waited_for(fleet: Fleet, stub: Stub) -> None:
    fleet.faults.kill("harper")
    fleet.wait_for({"harper": "error"})
    fleet.restore()
    assert stub.done == ["kill harper", "restore harper", "/readyz", "POST /agents/harper/recheck"]
    assert fleet.registry.state("harper").status == "ok"


def test_the_callers_of_who_was_disturbed_are_looked_at_as_well(fleet: Fleet, stub: Stub) -> None:
    fleet.faults.kill("tech_research")
    fleet.restore()
    assert stub.done[2:] == ["/readyz", "POST /agents/tech_research/recheck", "POST /agents/harper/recheck"]


def test_a_fault_that_ended_by_itself_is_told_once_the_fleet_is_up_again(
    fleet: Fleet, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(agent: str) -> None:
        Stub.restore(stub, agent)
        raise FaultEnded("kill: it had ended")

    monkeypatch.setattr(stub, "restore", end)
    fleet.faults.kill("harper")
    with pytest.raises(FaultEnded, match="kill: it had ended"):
        fleet.restore()
    assert stub.done[1:] == ["restore harper", "/readyz", "POST /agents/harper/recheck"]


def test_an_agent_is_back_when_it_says_so_itself_and_the_registry_has_looked(fleet: Fleet, stub: Stub) -> None:
    fleet.faults.kill("harper")
    stub.unready = 1
    fleet.restore()
    assert stub.done[2:] == ["/readyz", "/readyz", "POST /agents/harper/recheck"]
    assert [change.new for change in fleet.registry.events] == ["error", "ok"]


@pytest.mark.parametrize(("url", "expected"), [(None, "ok"), ("", "error")])
def test_who_cannot_be_reached_or_is_no_agent_is_not_asked(
    fleet: Fleet, stub: Stub, monkeypatch: pytest.MonkeyPatch, url: str | None, expected: str
) -> None:
    def refuse(_: str) -> str:
        raise LookupError("not published")

    monkeypatch.setattr(fleet, "_expected", {"harper": expected})
    monkeypatch.setattr(face, "PATIENCE", 10)
    if url is None:
        monkeypatch.setattr(stub, "url", refuse)
    else:
        monkeypatch.setattr(stub, "restore", lambda _: None)
    fleet.faults.kill("harper")
    fleet.faults.members["model"] = None
    fleet.restore()
    assert stub.done[1:] == (["restore harper", "POST /agents/harper/recheck"] if url is None else [])


def test_a_fault_that_the_target_has_not_is_refused_by_name(fleet: Fleet) -> None:
    with pytest.raises(CannotDisturb, match="pause: not on stub"):
        fleet.faults.pause("harper")
    assert fleet.faults.done == []


def test_an_agent_that_is_not_in_the_file_is_no_agent(fleet: Fleet) -> None:
    with pytest.raises(KeyError, match="no agent research: harper, tech_research"):
        fleet.agent("research")


def test_the_report_shows_who_is_unwell_and_what_was_called(fleet: Fleet, stub: Stub, running: Running) -> None:
    fleet.faults.kill("tech_research")
    running.events.catch_up(10)
    fleet.answers.append(Answer("", (), Call("harper", "harper__harper", 0.0, 1.5)))
    sections = dict(report.sections(fleet))
    assert sections == {
        "fleet on stub: registry": "harper: ok\ntech-research: error\n"
        "(change) tech_research: ok -> error, connection refused\nkill tech_research",
        "fleet: calls behind the last answer": "harper (1.50 s)",
        "fleet: log of tech_research (error)": "first line of tech_research\nkey=tech_research-canary",
    }


def test_a_service_is_waited_for_too(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    order.file.write_text(FILE + "services: {model: {module: m, port: 3}}\n")
    stub = Stub(order)
    stub.services = [{"name": "model", "status": "ok"}]
    monkeypatch.setattr(table, "target", lambda *_: stub)
    with start.running("stub", order, {}) as running:
        fleet = Fleet(running)
        fleet.faults.kill("model")
        stub.services = [{"name": "model", "status": "error"}]
        monkeypatch.setattr(face, "PATIENCE", 0)
        monkeypatch.setattr(stub, "answers", lambda _: False)
        with pytest.raises(AssertionError, match="in vain for model itself"):
            fleet.restore()
        monkeypatch.setattr(stub, "answers", lambda _: True)
        with pytest.raises(AssertionError, match="in vain for a look at model"):
            fleet.restore()
        stub.services = [{"name": "model", "status": "ok"}]
        fleet.restore()


def test_the_report_shows_services_that_are_not_well(fleet: Fleet, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    stub.services = [
        {"name": "model", "status": "error", "message": "connection refused", "reason": "ConnectionRefused"},
        {"name": "tools", "status": "ok"},
        {"name": "database", "status": "unknown", "reason": "NotProbed"},
        {"name": "gateway", "status": "error"},
    ]

    def logs(member: str) -> str:
        if member == "gateway":
            raise LookupError("no container")
        return f"the last words of {member}"

    monkeypatch.setattr(stub, "logs", logs)
    assert dict(report.sections(fleet)) == {
        "fleet on stub: registry": "harper: ok\ntech-research: ok\nmodel: error: connection refused\ngateway: error",
        "fleet: log of model (error)": "the last words of model",
        "fleet: log of gateway (error)": "it cannot be read: no container",
    }


def test_a_report_survives_a_registry_that_is_gone(fleet: Fleet, stub: Stub) -> None:
    stub.end = "`stub` has ended"
    stub.url = lambda _: "http://127.0.0.1:1"  # type: ignore[method-assign]
    fleet.registry.url = "http://127.0.0.1:1"
    text = dict(report.sections(fleet))["fleet on stub: registry"]
    assert text.startswith("the registry does not answer: ")
    assert text.endswith("\n`stub` has ended")


def test_a_refusal_is_not_waited_out(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(Stub):
        def start(self) -> None:
            super().start()
            self.change("harper", "error", "agents.yaml:2:3: no such module: a", "InputRefused")

    monkeypatch.setattr(table, "target", lambda _, order: Refusing(order))
    with pytest.raises(CannotStart) as failure, start.running("stub", order, {}, patience=20):
        raise AssertionError("it is not up")
    assert str(failure.value).splitlines()[:4] == [
        "an agent refuses its input:",
        "harper error: agents.yaml:2:3: no such module: a",
        "--- fleet: log of harper (error)",
        "first line of harper",
    ]
    with start.running("stub", order, {"harper": "error"}, patience=20):
        """Where the user expects that, it is no failure."""


def test_a_start_that_is_under_way_is_waited_for(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Stub):
        def pending(self) -> str:
            return "`up` is under way"

    monkeypatch.setattr(table, "target", lambda _, order: Slow(order))
    with pytest.raises(CannotStart, match="s  `up` is under way"), start.running("stub", order, {}, patience=0):
        raise AssertionError("it is not up")


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("end", "`stub` has ended with exit code 2", "`stub` has ended with exit code 2"),
        ("states", {"harper": "starting", "tech_research": "ok"}, "log of harper (starting)\nfirst line of harper"),
        ("services", [{"name": "model", "status": "error"}], "log of model (error)\nfirst line of model"),
    ],
)
def test_a_fleet_that_does_not_come_up_says_why_and_is_stopped(
    order: Order, monkeypatch: pytest.MonkeyPatch, attribute: str, value: object, message: str
) -> None:
    class Broken(Stub):
        def start(self) -> None:
            super().start()
            self.states["harper"] = "starting"
            setattr(self, attribute, value)

    monkeypatch.setattr(table, "target", lambda _, order: Broken(order))
    with pytest.raises(CannotStart) as failure, start.running("stub", order, {}, patience=0):
        raise AssertionError("it is not up")
    assert message in str(failure.value)
    assert Stub.last.done == ["stop"]


def test_a_fleet_may_be_expected_to_come_up_unwell(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unwell(Stub):
        def start(self) -> None:
            super().start()
            self.change("harper", "degraded")

    monkeypatch.setattr(table, "target", lambda _, order: Unwell(order))
    with start.running("stub", order, {"harper": "degraded"}, patience=0) as running:
        assert running.expected == {"harper": "degraded", "tech-research": "ok"}


def test_a_fleet_is_up_when_its_gateway_is_ready_too(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    """And so it is when a fault is undone."""
    order.file.write_text(FILE + "gateway: {agents: [harper]}\n")
    stub = Stub(order)
    stub.unready = 2
    monkeypatch.setattr(table, "target", lambda *_: stub)
    with start.running("stub", order, {}) as running:
        assert stub.done == ["/readyz", "/readyz", "/readyz"]
        fleet = Fleet(running)
        fleet.faults.kill("harper")
        stub.done.clear()
        fleet.restore()
        assert stub.done == ["restore harper", "/readyz", "POST /agents/harper/recheck", "/readyz"]


def test_a_gateway_that_never_is_ready_is_named(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    order.file.write_text(FILE + "gateway: {agents: [harper]}\n")
    stub = Stub(order)
    stub.unready = 1000
    monkeypatch.setattr(table, "target", lambda *_: stub)
    with (
        pytest.raises(CannotStart, match="the gateway answers /readyz with 503"),
        start.running("stub", order, {}, patience=0),
    ):
        pass


@pytest.mark.parametrize(("expected", "asked"), [({}, ["harper"]), ({"harper": "error"}, [])])
def test_a_gateway_has_to_reach_the_agents_that_come_up(
    order: Order, monkeypatch: pytest.MonkeyPatch, expected: dict[str, str], asked: list[str]
) -> None:
    """Beside the registry: a Service of Kubernetes leads to a pod later than DNS does."""
    order.file.write_text(FILE + "gateway: {agents: [harper]}\n")
    answers = ["harper: refused", "", ""]
    questions = []

    class Late(Stub):
        def start(self) -> None:
            super().start()
            self.change("harper", expected.get("harper", "ok"))

        def unreached(self, caller: str, members: Sequence[str]) -> str:
            questions.append((caller, list(members)))
            return answers.pop(0)

    monkeypatch.setattr(table, "target", lambda _, order: Late(order))
    with (
        pytest.raises(CannotStart, match="the gateway does not reach those behind it: harper: refused"),
        start.running("stub", order, expected, patience=0),
    ):
        raise AssertionError("it is not up")
    with start.running("stub", order, expected, patience=0):
        assert questions == [("gateway", asked)] * 2


@pytest.mark.parametrize(
    ("expected", "asked"),
    [
        ({}, ["harper", "tech_research", "home_tools", "lamp"]),
        ({"harper": "degraded"}, ["harper", "tech_research", "lamp"]),
    ],
)
def test_a_gateway_has_to_reach_what_is_called_through_it_too(
    order: Order, monkeypatch: pytest.MonkeyPatch, expected: dict[str, str], asked: list[str]
) -> None:
    """Or an agent that is `ok` is asked before it has the tools of a service; one that is not may never get them."""
    order.file.write_text("""\
name: made-up
gateway: {agents: [harper]}
agents:
  harper: {module: a, port: 1, depends_on: [home-tools]}
  tech_research: {module: b, port: 2, through: gateway, depends_on: [plain]}
services:
  home_tools: {module: h, port: 3, through: gateway}
  lamp: {image: l, port: 4, through: gateway}
  plain: {module: p, port: 5}
""")
    questions = []

    class Asked(Stub):
        def start(self) -> None:
            super().start()
            self.change("harper", expected.get("harper", "ok"))

        def unreached(self, caller: str, members: Sequence[str]) -> str:
            questions.append(list(members))
            return ""

    monkeypatch.setattr(table, "target", lambda _, order: Asked(order))
    with start.running("stub", order, expected, patience=60):
        assert questions == [asked]


def test_a_gateway_that_is_not_published_is_not_asked(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    order.file.write_text(FILE + "gateway: {agents: [harper]}\n")
    stub = Stub(order)

    def url(member: str) -> str:
        if member == "gateway":
            raise LookupError("not published")
        return Stub.url(stub, member)

    monkeypatch.setattr(stub, "url", url)
    monkeypatch.setattr(table, "target", lambda *_: stub)
    with start.running("stub", order, {}):
        assert stub.done == []
