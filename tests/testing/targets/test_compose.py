"""The fleet in containers: nobody else's networks, no Docker, and a whole fleet whose test is killed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from ipaddress import IPv4Network
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docker
import pytest
import yaml
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import ContainerCollection

from pallas_testing.project import fleet_file
from pallas_testing.targets import compose, table
from pallas_testing.targets.base import CannotDisturb, CannotStart, Order
from pallas_testing.targets.edges import Edges

VERBS = """
import os, signal
import pytest
from pallas_testing.fleet import AgentFailed, CannotDisturb

@pytest.mark.parametrize(("verb", "reason"), [("pause", "NoAnswer"), ("remove", "NameNotFound")])
def test_verb(fleet, verb, reason):
    getattr(fleet.faults, verb)("back")
    assert fleet.registry.saw("back", "ok", "error", within=120)
    fleet.wait_for(lambda: fleet.registry.state("back").reason == reason, within=120)

def test_slow(fleet):
    assert fleet.agent("front").ask("good morning").text.endswith("back: good morning")
    fleet.faults.slow("front", "back", latency=1.0, jitter=0.1)
    answer = fleet.agent("front").ask("good morning")
    assert answer.calls[0].seconds > 1.8
    assert answer.text.endswith("back: good morning")
    with pytest.raises(CannotDisturb, match="slow: back does not call front on a network of their own"):
        fleet.faults.slow("back", "front", latency=1.0)

def test_cut(fleet):
    fleet.faults.cut("front", "back", after_bytes=10)
    try:
        assert "back: good" not in fleet.agent("front").ask("good morning").text
    except AgentFailed:
        pass

def test_partition(fleet):
    fleet.faults.partition("front", "back")
    assert fleet.registry.saw("front", "ok", "degraded", within=120)
    with pytest.raises(CannotDisturb, match="partition: model and nobody have no network of their own"):
        fleet.faults.partition("model", "nobody")

def test_provider(fleet):
    fleet.faults.provider.down()
    with pytest.raises(AgentFailed):
        fleet.agent("front").ask("good morning")

def test_all_is_well_again(fleet):
    assert fleet.agent("front").ask("good morning").text.endswith("back: good morning")

def test_scaled(fleet):
    fleet.faults.scale("back", 2)
    two = 'pallas_agent_replicas{agent="back"} 2.0'
    fleet.wait_for(lambda: two in fleet.registry.get("/metrics").text, within=120)

def test_secret(fleet, running_fleet):
    fleet.faults.rotate_secret("key.txt", "second\\n")
    assert running_fleet.target.execute("back", "print(open('/run/secrets/KEY').read())").strip() == "second"
    assert fleet.no_secret("second-to-none")

def test_disk(fleet, running_fleet):
    fleet.faults.fill_disk("back")
    with pytest.raises(CannotDisturb, match="No space left on device"):
        running_fleet.target.execute("back", "open('/tmp/x', 'w').write('x' * (1 << 20))")

def test_undone(running_fleet):
    assert running_fleet.target.execute("back", "print(open('/run/secrets/KEY').read())").strip() == "first"
    running_fleet.target.execute("back", "open('/tmp/x', 'w').write('x' * (1 << 20))")

def test_killed(running_fleet):
    print("project", running_fleet.target.project, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


KILLED = """
import os, signal, sys, time
from pathlib import Path
from pallas_testing.targets.base import Order
from pallas_testing.targets.compose import Compose

fleet = Compose(Order(Path(sys.argv[1]), Path(sys.argv[2])))
fleet.start()
while not fleet._engine.networks.list(filters={"label": f"com.docker.compose.project={fleet.project}"}):
    time.sleep(0.01)
print(fleet.project, fleet._up.pid, fleet._leash.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def order(tmp_path: Path) -> Order:
    (tmp_path / "agents.yaml").write_text("agents: {hello: {module: a, port: 24201}}\n")
    return Order(tmp_path / "agents.yaml", tmp_path)


def test_no_docker_is_said_in_a_line(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise DockerException("no socket")

    monkeypatch.setattr(compose, "DockerClient", refuse)
    fleet = table.target("compose", order)
    with pytest.raises(CannotStart, match="no Docker to start containers with: no socket"):
        fleet.start()
    fleet.stop()


def test_a_fleet_has_networks_that_overlap_with_no_other(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    subnets = ["10.213.0.0/17", "fd00::/64", "172.17.0.0/16"]
    networks: list[Any] = [SimpleNamespace(attrs={"IPAM": {"Config": [{"Subnet": subnet}]}}) for subnet in subnets]
    networks += [SimpleNamespace(attrs={"IPAM": {"Config": None}}), SimpleNamespace(attrs={})]
    engine = SimpleNamespace(networks=SimpleNamespace(list=lambda: networks))
    monkeypatch.setattr(compose, "DockerClient", lambda: SimpleNamespace(client=engine))

    def stop_here(*_: object) -> None:
        raise CannotStart("far enough")

    monkeypatch.setattr(compose.commands, "generate", stop_here)
    fleet = table.target("compose", order)
    with pytest.raises(CannotStart, match="far enough"):
        fleet.start()
    pool = re.search(r"pool: (\S+)}", fleet.file.path.read_text())
    assert pool
    assert not IPv4Network(pool[1]).overlaps(IPv4Network(subnets[0]))
    fleet.stop()


@pytest.mark.parametrize(("version", "keys"), [("1.41", {"interval"}), ("1.44", {"interval", "start_interval"})])
def test_an_engine_that_checks_at_one_interval_is_given_one(
    order: Order, monkeypatch: pytest.MonkeyPatch, version: str, keys: set[str]
) -> None:
    """Podman's, which else refuses every container."""
    check = {"interval": "10s", "start_interval": "1s"}

    def generate(file: fleet_file.FleetFile, _: Order, verb: str) -> None:
        text = yaml.safe_dump({"services": {"hello": {"healthcheck": check}, "other": {"image": "x"}}})
        file.path.with_name(f"{verb}.yaml").write_text(text)

    engine = SimpleNamespace(networks=SimpleNamespace(list=list), version=lambda: {"ApiVersion": version}, close=int)
    monkeypatch.setattr(compose, "DockerClient", lambda: SimpleNamespace(client=engine))
    monkeypatch.setattr(compose.commands, "generate", generate)
    monkeypatch.setattr(compose, "Leash", lambda *_, **__: SimpleNamespace(end=lambda **_: None))
    fleet = table.target("compose", order)
    fleet.start()
    services = yaml.safe_load(fleet.file.path.with_name("compose.yaml").read_text())["services"]
    assert set(services["hello"]["healthcheck"]) == keys
    assert services["other"] == {"image": "x"}
    fleet.stop()


def test_a_secret_is_read_again_by_all_that_have_it_but_the_registry(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    order.file.write_text(
        "agents: {hello: {module: a, port: 1}, other: {module: a, port: 2}}\n"
        "services: {model: {port: 3}}\ngateway: {agents: [hello]}\n"
    )
    fleet = compose.Compose(order)
    fleet.file = fleet_file.read(order.file)
    key = order.folder / "key.txt"
    key.write_text("first")
    restarted: list[str] = []

    def containers(member: str) -> list[Any]:
        mounts = [] if member == "other" else [{"Source": f"/host_mnt{key}"}]
        return [SimpleNamespace(attrs={"Mounts": mounts}, restart=lambda timeout: restarted.append(member))]

    monkeypatch.setattr(fleet, "_containers", containers)
    undo = fleet.rotate_secret("key.txt", "second")
    assert (key.read_text(), restarted) == ("second", ["hello", "model", "gateway"])
    undo()
    assert (key.read_text(), restarted[3:]) == ("first", ["hello", "model", "gateway"])


@pytest.mark.parametrize(("verb", "call", "back"), [("kill", "kill", "start"), ("pause", "pause", "unpause")])
def test_replicas_of_which_one_resists_are_all_brought_back(
    order: Order, monkeypatch: pytest.MonkeyPatch, verb: str, call: str, back: str
) -> None:
    done: list[str] = []

    def resist() -> None:
        raise DockerException("no")

    def container(name: str, fault: Any) -> Any:
        calls = {call: fault, "wait": int, back: lambda: done.append(f"{back} {name}")}
        return SimpleNamespace(status="paused", **calls)

    containers = [container("one", lambda: done.append(f"{call} one")), container("two", resist)]
    fleet = compose.Compose(order)
    monkeypatch.setattr(fleet, "_containers", lambda _: containers)
    with pytest.raises(DockerException) as failed:
        getattr(fleet, verb)("hello")
    assert done == [f"{call} one", f"{back} one", f"{back} two"]
    assert failed.value.__notes__ == ["this fault failed half way: it has been undone"]


@pytest.mark.parametrize(
    ("ports", "url"),
    [
        ({"8080/tcp": [{"HostIp": "127.0.0.1", "HostPort": "24201"}]}, "http://127.0.0.1:24201"),
        (
            {"8080/tcp": [{"HostIp": "0.0.0.0", "HostPort": "1"}, {"HostIp": "::", "HostPort": "1"}]},
            "http://127.0.0.1:1",
        ),
        ({"8080/tcp": [{"HostIp": "192.0.2.1", "HostPort": "2"}]}, "http://192.0.2.1:2"),
        ({"8080/tcp": None}, None),
        ({}, None),
    ],
    ids=["loopback", "everywhere", "address", "not published", "not started"],
)
def test_a_member_is_where_its_container_publishes_it(
    order: Order, monkeypatch: pytest.MonkeyPatch, ports: dict[str, Any], url: str | None
) -> None:
    fleet = compose.Compose(order)
    container = SimpleNamespace(attrs={"NetworkSettings": {"Ports": ports}})
    monkeypatch.setattr(fleet, "_containers", lambda _: [container])
    if url:
        assert fleet.url("hello") == url
        monkeypatch.setattr(fleet, "_containers", lambda _: [])
        assert fleet.url("hello") == url, "which stays while it is down"
    else:
        with pytest.raises(LookupError, match="this machine does not reach hello: no container of it publishes a port"):
            fleet.url("hello")


def test_an_engine_that_pauses_nothing_is_named(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a user who has no cgroups of version 2."""

    def refuse() -> None:
        raise APIError("500 Server Error", explanation="cgroups not configured for container")

    fleet = compose.Compose(order)
    containers = [SimpleNamespace(status="running", pause=refuse)]
    monkeypatch.setattr(fleet, "_containers", lambda _: containers)
    message = "pause: not on compose: the engine refuses it: cgroups not configured for container"
    with pytest.raises(CannotDisturb, match=message):
        fleet.pause("hello")


def test_a_secret_is_as_before_where_a_reader_of_it_does_not_start_again(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = compose.Compose(order)
    fleet.file = fleet_file.read(order.file)
    key = order.folder / "key.txt"
    key.write_text("first")

    def containers(_: str) -> Any:
        raise DockerException("no")

    monkeypatch.setattr(fleet, "_containers", containers)
    with pytest.raises(DockerException):
        fleet.rotate_secret("key.txt", "second")
    assert key.read_text() == "first"


@pytest.mark.parametrize("kind", [compose.Compose, Edges], ids=["compose", "edges"])
def test_a_container_that_goes_while_all_are_listed_takes_none_of_the_others_along(order: Order, kind: Any) -> None:
    """The engine's list is of names, each of which is asked for afterwards."""

    def inspect(name: str) -> dict[str, str]:
        if name == "gone":
            raise NotFound("No such container: gone")
        return {"Id": name}

    listed = [{"Id": "first"}, {"Id": "gone"}, {"Id": "last"}]
    api = SimpleNamespace(containers=lambda **_: listed, inspect_container=inspect)
    engine: Any = SimpleNamespace(containers=ContainerCollection(client=SimpleNamespace(api=api)))
    fleet = compose.Compose(order) if kind is compose.Compose else Edges(engine, "project")
    fleet._engine = engine
    assert [container.id for container in fleet._containers("hello")] == ["first", "last"]


@pytest.mark.parametrize(("health", "answers"), [("starting", False), ("healthy", True), ("unknown", True)])
def test_a_service_answers_when_its_check_says_so(
    order: Order, monkeypatch: pytest.MonkeyPatch, health: str, answers: bool
) -> None:
    fleet = compose.Compose(order)
    containers = [SimpleNamespace(health="healthy"), SimpleNamespace(health=health)]
    monkeypatch.setattr(fleet, "_containers", lambda _: containers)
    assert fleet.answers("model") is answers


@pytest.mark.parametrize(
    ("text", "restarts", "begins", "ended"),
    [
        ("dependency failed to start: container x is unhealthy", 0, 3, True),
        ("dependency failed to start: container x is unhealthy", 1, 1, True),
        ("no such image", 0, 1, True),
        ("", 0, 1, False),
    ],
    ids=["busy", "crashed", "failed", "up"],
)
def test_what_is_late_is_begun_again_and_what_fails_is_told(
    order: Order, monkeypatch: pytest.MonkeyPatch, text: str, restarts: int, begins: int, ended: bool
) -> None:
    fleet = compose.Compose(order)
    fleet.file = fleet_file.read(order.file)
    (order.folder / "up.log").write_text(text)
    container = SimpleNamespace(attrs={"RestartCount": restarts}, logs=lambda: b"the last words")
    monkeypatch.setattr(fleet, "_containers", lambda _: [container])
    monkeypatch.setattr(fleet, "_compose", SimpleNamespace(compose_command_property=["compose"]), raising=False)
    commands = []

    def on_a_leash(output: str, *command: str) -> SimpleNamespace:
        commands.append(command)
        return SimpleNamespace(code=int(bool(text)))

    monkeypatch.setattr(fleet, "_on_a_leash", on_a_leash)
    fleet._go_up()
    reasons = [fleet.ended() for _ in range(4)]
    assert commands == begins * [("compose", "up", "--detach")]
    assert bool(reasons[-1]) == ended
    if ended:
        assert reasons[-1].splitlines()[:4] == ["`docker compose up` fails:", text, "--- hello", "the last words"]


@pytest.mark.docker
def test_a_test_that_is_killed_while_containers_are_made_leaves_none(tmp_path: Path, root: Path) -> None:
    example = shutil.copytree(root / "examples" / "01-hello", tmp_path / "hello")
    command = [sys.executable, "-c", KILLED, str(example / "agents.yaml"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    project, *pids = done.stdout.split()
    end = time.monotonic() + 120
    while any(Path(f"/proc/{pid}/fd").exists() and os.listdir(f"/proc/{pid}/fd") for pid in pids):
        assert time.monotonic() < end, f"{project} is still taken down"
        time.sleep(0.2)
    engine = docker.from_env()
    label = {"label": f"com.docker.compose.project={project}"}
    assert not engine.containers.list(all=True, sparse=True, filters=label)
    assert not engine.networks.list(filters=label)
    engine.close()


def test_two_fleets_are_two_projects(order: Order) -> None:
    names = {compose.Compose(order).project for _ in range(2)}
    assert len(names) == 2


@pytest.mark.docker
def test_a_fleet_is_tested_disturbed_and_gone_when_its_test_is_killed(tmp_path: Path) -> None:
    example = shutil.copytree(Path(__file__).with_name("disturbed"), tmp_path / "disturbed")
    (example / "test_verbs.py").write_text(VERBS)
    plugins = ("-p", "pallas_testing.plugin", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-vs", *plugins, "--fleet-target", "compose", "test_verbs.py"],
        cwd=example,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9, done.stdout
    assert done.stdout.count("PASSED") == 11, done.stdout
    project = re.search(r"project (pallas-testing-\w+)", done.stdout)
    assert project, done.stdout
    engine = docker.from_env()
    label = {"label": f"com.docker.compose.project={project[1]}"}
    end = time.monotonic() + 120
    while engine.containers.list(all=True, sparse=True, filters=label) or engine.networks.list(filters=label):
        assert time.monotonic() < end, f"{project[1]} is still there"
        time.sleep(0.2)
    engine.close()
