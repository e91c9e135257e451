"""The ports of a fleet: held all at once, refused all at once, and never another program's."""

from __future__ import annotations

import socket
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pallas_agent_runtime.local import guardian
from pallas_agent_runtime.local.ports import HeldPort, held, taken
from pallas_agent_runtime.local.programs import Member
from pallas_contract import names
from pallas_contract.fleet import source
from pallas_contract.fleet.source import Source
from pallas_contract.launch.listeners import Listener
from pallas_service.http import sockets
from tests.problem_lines import without_codes


@pytest.fixture
def at(member, port: int):
    """Make a member that listens on `port`, or on another one."""

    def make(name: str = "research", number: int = port, kind: str = "agent", run: str = "") -> Member:
        env = {"PALLAS_BIND": f"127.0.0.1:{number}"} | ({"PALLAS_RUN": run} if run else {})
        return replace(member(name, kind=kind), env=env)

    return make


@pytest.fixture
def tree(tmp_path: Path) -> Source:
    path = tmp_path / "agents.yaml"
    path.write_text("name: x\nagents:\n  research: {port: 1}\n  tech: {port: 2}\n")
    return source.read(path)


def connects(number: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", number)) == 0


def test_a_held_port_refuses_connections_and_is_nobody_elses(at, port: int) -> None:
    with closing(HeldPort(at())):
        assert not connects(port)
        with pytest.raises(sockets.CannotListen, match="address already in use"):
            sockets.reserve("127.0.0.1", port)
    socket.create_server(("127.0.0.1", port)).close()


def test_a_port_taken_back_refuses_again_and_can_be_handed_over_again(at, port: int) -> None:
    with closing(HeldPort(at())) as held_port:
        for _ in range(2):
            fd = held_port.hand_over()
            assert fd is not None
            with socket.fromfd(fd, socket.AF_INET, socket.SOCK_STREAM) as listener:
                sockets.start(listener)
                assert connects(port)
            held_port.take_back()
            assert not connects(port)
            with pytest.raises(OSError, match="already in use"):
                socket.create_server(("127.0.0.1", port))


def test_the_port_of_a_service_is_let_go_for_its_life_only(at, port: int) -> None:
    with closing(HeldPort(at(kind="service"))) as held_port:
        assert held_port.hand_over() is None
        with socket.create_server(("127.0.0.1", port)):
            assert connects(port)
        held_port.take_back()
        with pytest.raises(OSError, match="already in use"):
            socket.create_server(("127.0.0.1", port))


def test_a_port_that_somebody_took_from_a_service_is_tried_again_after_its_next_end(at, port: int) -> None:
    with closing(HeldPort(at(kind="service"))) as held_port:
        held_port.hand_over()
        with socket.create_server(("127.0.0.1", port)):
            held_port.take_back()
            held_port.hand_over()
        held_port.take_back()
        with pytest.raises(OSError, match="already in use"):
            socket.create_server(("127.0.0.1", port))


def test_the_answer_of_another_program_is_not_that_of_a_service(at) -> None:
    other = Listener(12, "nginx")
    service = at("model", kind="service", run="ab/model")
    with closing(HeldPort(service, lambda _: [other])) as held_port:
        assert held_port.stranger() == "nginx (pid 12)"
    with closing(HeldPort(service, lambda _: [other, Listener(13, "python3", "ab/model")])) as held_port:
        assert held_port.stranger() == ""
    with closing(HeldPort(service, lambda _: [])) as held_port:
        assert held_port.stranger() == ""
    with closing(HeldPort(at(run="ab/research"), lambda _: [other])) as held_port:
        assert held_port.stranger() == ""


def test_every_port_in_use_is_a_problem_that_names_who_has_it(at, tree: Source, ports: list[int]) -> None:
    first, second, third = ports
    members = [at("research", first), at("tech", second), replace(at("registry", third, "registry"))]
    holders = {first: [Listener(12, "nginx")], third: [Listener()]}
    taken = [socket.create_server(("127.0.0.1", first)), sockets.reserve("127.0.0.1", second)]
    try:
        with held(members, tree, lambda port: holders.get(port, [])) as (free, problems):
            assert list(free) == ["registry"]
    finally:
        for one in taken:
            one.close()
    in_use = "address already in use"
    assert [without_codes(str(problem)) for problem in problems] == [
        f"agents.yaml:3:14 agents.research.port: research cannot listen on 127.0.0.1:{first}: {in_use} "
        "by nginx (pid 12)\n    stop it, or change the port",
        f"agents.yaml:4:10 agents.tech.port: tech cannot listen on 127.0.0.1:{second}: {in_use}\n"
        f"    stop what has it (`ss -ltnp sport = :{second}`; or a `pallas` that is starting), or change the port",
    ]
    sockets.reserve("127.0.0.1", third).close()


@pytest.mark.parametrize(
    ("holders", "hint"),
    [
        (
            [Listener(12, "python3", "ab/research", "/x/y z/agents.yaml")],
            "`pallas stop -f '/x/y z/agents.yaml'` ends that",
        ),
        ([Listener(12, "python3", "", "/x/agents.yaml")], "stop it, or change the port"),
        ([Listener(12, "a", "ab/one", "/x/agents.yaml"), Listener(13, "b")], "stop it, or change the port"),
    ],
    ids=["a fleet", "an agent alone", "a fleet and another"],
)
def test_a_fleet_that_has_the_port_is_ended_whole(
    at, tree: Source, ports: list[int], holders: list[Listener], hint: str
) -> None:
    with (
        socket.create_server(("127.0.0.1", ports[0])),
        held([at("research", ports[0])], tree, lambda _: holders) as had,
    ):
        (problem,) = had[1]
    assert hint in problem.hint


def test_a_port_in_use_is_a_problem_unless_the_fleet_itself_has_it(at, tree: Source, ports: list[int]) -> None:
    first, second, third = ports
    members = [at("research", first), at("tech", second), at("registry", third, "registry")]
    holders = {first: [Listener(12, "python3", "ab/research", "/x/agents.yaml")], second: [Listener(13, "nginx")]}
    with socket.create_server(("127.0.0.1", first)), socket.create_server(("127.0.0.1", second)):
        (problem,) = taken(members, tree, Path("/x/agents.yaml"), lambda port: holders.get(port, []))
        place = "agents.yaml:4:10 agents.tech.port: "
        assert str(problem).startswith(f"{place}tech cannot listen on 127.0.0.1:{second}")
        assert len(taken(members, tree, Path("/y/agents.yaml"), lambda port: holders.get(port, []))) == 2
    assert taken(members, tree, Path("/x/agents.yaml"), lambda _: []) == []


@pytest.mark.parametrize(
    ("holder", "hint"),
    [
        (
            Listener(12, "docker-proxy"),
            "a container has it, `docker ps --filter publish={0}` says which: stop that, or",
        ),
        (
            Listener(),
            "stop it (`sudo ss -ltnp sport = :{0}`; where it is a container, `docker ps --filter publish={0}`",
        ),
    ],
    ids=["of a container", "of another user"],
)
def test_a_port_of_a_container_is_told_with_how_to_find_it(
    at, tree: Source, port: int, holder: Listener, hint: str
) -> None:
    with socket.create_server(("127.0.0.1", port)), held([at()], tree, lambda _: [holder]) as (_, (problem,)):
        assert problem.hint.startswith(hint.format(port))


def test_who_ends_a_fleet_and_who_names_it_know_its_members_by_one_variable() -> None:
    assert guardian.RUN == names.ENV_RUN
