"""The networks of a compose project: whom a fault takes from which, and how it is brought back."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, DockerException, NotFound

from pallas_testing.targets import edges
from pallas_testing.targets.base import CannotDisturb, FaultEnded
from pallas_testing.targets.edges import Edges
from pallas_testing.targets.relay import Course

COURSE = Course(latency=1.0, jitter=0.0, cut_after=None)


class Engine:
    """An engine that notes who is taken from which network, and brought back with which names."""

    def __init__(self, **members: Mapping[str, str]) -> None:
        self.done: list[str] = []
        self.members = {
            name: SimpleNamespace(
                name=name,
                attrs={
                    "Config": {"Env": ["PEERS=http://tech-research:9000/mcp"]},
                    "NetworkSettings": {
                        "Networks": {
                            network: {"Aliases": [name, f"from.{name}"], "IPAddress": address}
                            for network, address in networks.items()
                        }
                    },
                },
                reload=lambda: None,
                exec_run=lambda *_, **__: SimpleNamespace(exit_code=0, output=b""),
            )
            for name, networks in members.items()
        }
        names = dict.fromkeys(network for networks in members.values() for network in networks)
        self.networks = SimpleNamespace(list=lambda **_: [self._network(name) for name in names])
        self.containers = SimpleNamespace(list=self._list)

    def _network(self, name: str) -> Any:
        def connect(container: Any, **options: Any) -> None:
            aliases = ",".join(options["aliases"])
            self.done.append(f"{name} + {container.name} at {options['ipv4_address']} as {aliases}")

        return SimpleNamespace(
            name=name, connect=connect, disconnect=lambda container: self.done.append(f"{name} - {container.name}")
        )

    def _list(self, *, filters: Mapping[str, Any], ignore_removed: bool) -> list[Any]:
        assert ignore_removed
        service = filters["label"][1].partition("com.docker.compose.service=")[2]
        return [self.members[service]] if service in self.members else []


@pytest.fixture
def engine() -> Engine:
    return Engine(
        harper={"p_call.harper.tech-research": "10.0.0.2", "p_agent.harper": "10.1.0.2"},
        registry={"p_agent.harper": "10.1.0.3"},
        **{"tech-research": {"p_call.harper.tech-research": "10.0.0.3"}},
    )


def test_a_partition_takes_the_caller_away_and_back_as_it_was(engine: Engine) -> None:
    undo = Edges(engine, "p").partition("tech_research", "harper")  # type: ignore[arg-type]
    assert engine.done == ["p_call.harper.tech-research - harper"]
    undo()
    assert engine.done[1:] == ["p_call.harper.tech-research + harper at 10.0.0.2 as harper,from.harper"]


def test_the_registry_is_taken_from_the_network_on_which_it_probes(engine: Engine) -> None:
    Edges(engine, "p").partition("harper", "registry")()  # type: ignore[arg-type]
    assert engine.done == [
        "p_agent.harper - registry",
        "p_agent.harper + registry at 10.1.0.3 as registry,from.registry",
    ]


def test_who_has_no_edge_is_refused_by_the_name_of_the_fault(engine: Engine) -> None:
    with pytest.raises(CannotDisturb, match=r"^partition: registry and tech_research have no network of their own"):
        Edges(engine, "p").partition("registry", "tech_research")  # type: ignore[arg-type]
    with pytest.raises(CannotDisturb, match=r"^slow: tech_research does not call harper on a network of their own"):
        Edges(engine, "p").lead("slow", "tech_research", "harper", COURSE)  # type: ignore[arg-type]
    assert engine.done == []


@pytest.mark.parametrize("member", ["harper", "tech_research"])
def test_replicas_are_led_by_no_relay(engine: Engine, monkeypatch: pytest.MonkeyPatch, member: str) -> None:
    containers = Edges._containers
    monkeypatch.setattr(Edges, "_containers", lambda self, name: containers(self, name) * (1 + (name == member)))
    with pytest.raises(CannotDisturb, match=f"^slow: {member} runs as 2 replicas, .*: scale {member} to 1$"):
        Edges(engine, "p").lead("slow", "harper", "tech_research", COURSE)  # type: ignore[arg-type]
    assert engine.done == []


def relay(engine: Engine, status: str = "running") -> Any:
    """Return a relay's container; `gone` is one that somebody has removed."""

    def reload() -> None:
        if status == "gone":
            raise NotFound("no such container")

    return SimpleNamespace(
        remove=lambda **_: engine.done.append("relay gone"),
        reload=reload,
        status=status,
        attrs={"State": {"ExitCode": 137}},
        logs=lambda: b"ready\nno more memory\n",
    )


def test_a_relay_has_the_name_of_the_callee_until_the_end(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments: list[str] = []

    def start(_: Edges, asking: Any, network: Any, name: str, words: list[str]) -> Any:
        arguments.extend([asking.name, network.name, name, *words[1:]])
        return relay(engine)

    monkeypatch.setattr(Edges, "_relay", start)
    undo = Edges(engine, "p").lead("slow", "harper", "tech_research", COURSE)  # type: ignore[arg-type]
    edge = "p_call.harper.tech-research"
    assert arguments == ["harper", edge, "tech-research", "10.0.0.3", "9000"]
    assert engine.done == [f"{edge} - tech-research", f"{edge} + tech-research at 10.0.0.3 as from.tech-research"]
    undo()
    whole = f"{edge} + tech-research at 10.0.0.3 as tech-research,from.tech-research"
    assert engine.done[2:] == ["relay gone", f"{edge} - tech-research", whole]


@pytest.mark.parametrize(
    ("status", "end"), [("exited", "has ended with 137: ready\nno more memory"), ("gone", "is gone")]
)
def test_a_relay_that_ended_by_itself_is_told_and_undone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, status: str, end: str
) -> None:
    monkeypatch.setattr(Edges, "_relay", lambda *_: relay(engine, status))
    undo = Edges(engine, "p").lead("slow", "harper", "tech_research", COURSE)  # type: ignore[arg-type]
    with pytest.raises(FaultEnded) as failure:
        undo()
    assert str(failure.value) == f"slow: the relay between harper and tech_research {end}"
    assert engine.done[-1].endswith("as tech-research,from.tech-research")


@pytest.mark.parametrize("failure", ["relay", "kernel"])
def test_what_cannot_be_had_is_undone_and_said(engine: Engine, monkeypatch: pytest.MonkeyPatch, failure: str) -> None:
    def start(*_: Any) -> Any:
        if failure == "relay":
            raise DockerException("no space")
        return relay(engine)

    refused = SimpleNamespace(exit_code=1, output=b"OSError: not supported\n")
    monkeypatch.setattr(Edges, "_relay", start)
    engine.members["harper"].exec_run = lambda *_, **__: refused
    match = {"relay": "no space", "kernel": "connections that are open cannot be ended: OSError: not supported"}[
        failure
    ]
    with pytest.raises(CannotDisturb, match=f"^cut: no relay between harper and tech_research: .*{match}"):
        Edges(engine, "p").lead("cut", "harper", "tech_research", COURSE)  # type: ignore[arg-type]
    assert ("relay gone" in engine.done) == (failure == "kernel")
    assert engine.done[-1].endswith("as tech-research,from.tech-research")


@pytest.mark.parametrize(("status", "raised"), [(404, False), (500, True)])
def test_a_container_that_is_gone_meanwhile_is_not_brought_back(status: int, raised: bool) -> None:
    def connect(*_: Any, **__: Any) -> None:
        raise APIError("no", response=SimpleNamespace(status_code=status))  # type: ignore[arg-type]

    network: Any = SimpleNamespace(connect=connect)
    if raised:
        with pytest.raises(APIError):
            edges._attach(network, SimpleNamespace(), {})  # type: ignore[arg-type]
    else:
        edges._attach(network, SimpleNamespace(), {})  # type: ignore[arg-type]


def test_a_partition_that_fails_half_way_brings_back_whom_it_has_taken(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = SimpleNamespace(name="harper-2", attrs={"NetworkSettings": {"Networks": {}}}, reload=lambda: None)
    monkeypatch.setattr(Edges, "_containers", lambda *_: [engine.members["harper"], alone])
    with pytest.raises(KeyError):
        Edges(engine, "p").partition("tech_research", "harper")  # type: ignore[arg-type]
    edge = "p_call.harper.tech-research"
    assert engine.done == [f"{edge} - harper", f"{edge} + harper at 10.0.0.2 as harper,from.harper"]


def test_a_callee_that_does_not_give_its_name_away_keeps_it(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    attach = edges._attach

    def fail(network: Any, container: Any, options: Any) -> None:
        if options["aliases"] == ["from.tech-research"]:
            raise DockerException("no")
        attach(network, container, options)

    monkeypatch.setattr(edges, "_attach", fail)
    with pytest.raises(DockerException):
        Edges(engine, "p").lead("slow", "harper", "tech_research", COURSE)  # type: ignore[arg-type]
    assert engine.done[-1].endswith("at 10.0.0.3 as tech-research,from.tech-research")
