"""What a chart's user may ask of a real Kubernetes: code in an image, order, scaling, routes, replicas; hard texts.

A fleet of its own, small and all agent cards, so that nothing here waits for the large one.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pallas_contract.documents import server_json
from pallas_contract.probe import http_client, probe

from . import doors, in_front, scenario
from .doors import Door, Stores
from .release import Release, call, load, namespace, until

pytestmark = pytest.mark.cluster

IMAGE = "pallas-e2e-baked:1"
FOREIGN = "pallas-e2e-foreign:1"
"""Built from nothing of ours: tests/e2e/foreign."""
HARD = [
    "$HOME ${X} $$ $(PATH)",
    "{{ .Values }}",
    "yes",
    "0123",
    "1e3",
    "a: \"b\" 'c' # d",
    "ünï ☃ 🦊",
    "l1\nl2\n",
    " x",
    "~",
    "",
]
ALL = "|".join(HARD)
CARD = "---\ntype: agent\nname: {name}\n{more}---\nYou are {name}.\n"
SERVERS = {"lazy": "servers: [argos]\n"}
FLEET: dict[str, Any] = {
    "name": "small",
    "public_url": "https://{name}.example.test",
    "image": IMAGE,
    "registry": {"probe_interval": 1},
    "gateway": doors.GATEWAY,
    "agents": {
        "slow": {"card": "agents/slow.md", "port": 8101, "publish": False},
        "strict": {"card": "agents/strict.md", "port": 8102, "publish": False, "depends_on": ["slow"]},
        "lazy": {
            "card": "agents/lazy.md",
            "port": 8103,
            "depends_on": {"slow": {"required": False}, "argos": {}},
            "instance_scope": "request",
            "title": ALL,
            "files": ["hard.txt"],
            "env": {"NO": "null"} | {f"HARD_{index}": text for index, text in enumerate(HARD)},
        },
        doors.AGENT: doors.BEHIND,
    },
    "services": {
        "argos": {"image": FOREIGN, "port": 8000, "args": ["8000", "/project/argos.txt"], "files": ["argos.txt"]},
    },
}
TRIED = """
import os
print(os.getuid(), os.getgid())
for path in ("/tmp/own", "/srv/own", "/project/argos.txt", "/var/run/secrets/kubernetes.io"):
    try:
        os.listdir(path) if path.endswith(".io") else open(path, "w").close()
        print(path, "yes")
    except OSError as error:
        print(path, type(error).__name__)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")))
"""
"""What a program in the container may do."""
CONNECT = """
import socket
try:
    socket.create_connection(("{address}", {port}), timeout=5).close()
    print("connected")
except OSError as error:
    print(type(error).__name__)
"""
REJECTED = {"ConnectionRefusedError", "TimeoutError"}
"""By a policy: some plugins answer, others drop."""
MEMBERS = ("slow", "strict", "lazy", "registry")
REWRITE = {
    "type": "URLRewrite",
    "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}},
}
"""What a rule whose path is exact cannot have, as a rule in CEL says."""
REFUSED = {"agents": {"strict": {"env": {"PALLAS_CONNECT_TIMEOUT": "soon"}}}}
"""No number of seconds."""
NOWHERE = {"agents": {"slow": {"nodeSelector": {"there": "is-none"}}}}
"""`slow` starts on no node, and so never."""
OPTIONS: dict[str, Any] = {
    "agents": {"lazy": {"autoscaling": {"enabled": True, "minReplicas": 2}}},
    "ingress": {"enabled": True},
    "httpRoute": {"enabled": True, "parentRefs": [{"name": "gateway"}]},
}


def write(folder: Path, shared: Stores) -> Path:
    """The project folder; returns its agents.yaml."""
    (folder / "agents").mkdir()
    (folder / "keys").mkdir()
    for name, text in shared.keys.items():
        (folder / "keys" / name).write_text(text)
    for name in FLEET["agents"]:
        (folder / "agents" / f"{name}.md").write_text(CARD.format(name=name, more=SERVERS.get(name, "")))
    (folder / "argos.txt").write_text("3 pages\n")
    (folder / "hard.txt").write_text(ALL)
    (folder / "fastagent.config.yaml").write_text("default_model: passthrough\n")
    (folder / "agents.yaml").write_text(json.dumps(FLEET, ensure_ascii=False))
    for name, values in (
        ("options.yaml", OPTIONS | shared.values()),
        ("nowhere.yaml", NOWHERE),
        ("refused.yaml", REFUSED),
    ):
        (folder / name).write_text(json.dumps(values))
    return folder / "agents.yaml"


@pytest.fixture(scope="module")
def shared(kubernetes: None) -> Iterator[Stores]:
    """What the replicas of the gateway have together."""
    with doors.shared_state() as stores:
        yield stores


@pytest.fixture(scope="module")
def release(shared: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """Baked into an image on the nodes, and a namespace for it."""
    config = write(tmp_path_factory.mktemp("small"), shared)
    call(sys.executable, "-m", "pallas_gen", "image", "-f", config)
    call("docker", "build", "-q", "-f", config.with_name("Dockerfile.fleet"), "-t", IMAGE, config.parent)
    call("docker", "build", "-q", "-t", FOREIGN, Path(__file__).with_name("foreign"))
    load(IMAGE, FOREIGN)
    with namespace("pallas-e2e-small") as space:
        release = Release(config, space)
        try:
            yield release
        finally:
            release.close()
            call("docker", "image", "rm", "-f", IMAGE, FOREIGN)


@pytest.fixture
def fleet(release: Release) -> Release:
    """Installed with its options and rolled out, whatever the test before has left."""
    if release.options != given(release):
        upgrade(release)
    if not release.rolled_out:
        release.wait()
    return release


@pytest.fixture
def waiting(release: Release) -> Release:
    """Installed for the first time, `slow` not able to start."""
    if release.installed:
        release.close()
        release.uninstall()
    upgrade(release, "nowhere.yaml")
    return release


def upgrade(release: Release, *more: str) -> None:
    """Install or upgrade with the options and more values files."""
    release.upgrade(*given(release, *more))


def given(release: Release, *more: str) -> tuple[str, ...]:
    """Return Helm's arguments for the options and more values files."""
    return tuple(part for name in ("options.yaml", *more) for part in ("-f", str(release.config.with_name(name))))


def test_a_soft_edge_holds_no_pod_and_a_hard_one_does(waiting: Release) -> None:
    waiting.kubectl("rollout", "status", "deployment/lazy", "--timeout=180s")
    (strict,) = waiting.pods("strict").values()
    (wait,) = strict["status"]["initContainerStatuses"]
    assert (strict["status"]["phase"], wait["name"]) == ("Pending", "wait")
    assert "running" in wait["state"]
    upgrade(waiting)
    waiting.kubectl("rollout", "status", "deployment/strict", "--timeout=180s")


def test_the_code_is_that_of_the_image(fleet: Release) -> None:
    (pod, *_) = fleet.pods("lazy").values()
    assert {container["image"] for container in pod["spec"]["containers"]} == {IMAGE}
    assert [volume["name"] for volume in pod["spec"]["volumes"]] == ["tmp"]
    assert json.loads(fleet.python("lazy", "import json; print(json.dumps(open('/project/hard.txt').read()))")) == ALL


async def test_every_text_arrives_unchanged(fleet: Release) -> None:
    env = FLEET["agents"]["lazy"]["env"]
    code = f"import json, os; print(json.dumps({{key: os.environ[key] for key in {list(env)}}}))"
    assert json.loads(fleet.python("lazy", code)) == env
    entry = (await scenario.catalogue(fleet.url("registry")))["lazy"]
    assert entry["server"]["title"] == ALL


async def service(release: Release, name: str) -> dict[str, Any]:
    """The registry's entry of a service."""
    reply = await http_client.request("GET", f"{release.url('registry')}/services")
    (entry,) = [entry for entry in json.loads(reply.body)["services"] if entry["name"] == name]
    return dict(entry)


async def test_somebody_elses_image_is_called_by_its_agent_and_watched_by_the_registry(fleet: Release) -> None:
    await scenario.until_states(fleet.url("registry"), {"lazy": "ok"}, within=60)
    (pod,) = fleet.pods("argos").values()
    (container,) = pod["spec"]["containers"]
    assert (container["image"], container.get("command")) == (FOREIGN, None)
    assert (await service(fleet, "argos"))["status"] == "ok"
    question = '***CALL_TOOL argos__search_web {"query": "x"}'
    answer = await scenario.ask(f"{fleet.url('lazy')}/mcp", "lazy", question, "auto")
    assert f"3 pages about 'x' (argos on {pod['metadata']['name']})" in answer.text


def test_somebody_elses_image_may_do_as_little_as_one_of_ours(fleet: Release) -> None:
    identity, *paths, capabilities = fleet.python("argos", TRIED).splitlines()
    assert (identity, int(capabilities, 16)) == ("10001 10001", 0)
    assert paths == [
        "/tmp/own yes",
        "/srv/own OSError",
        "/project/argos.txt OSError",
        "/var/run/secrets/kubernetes.io FileNotFoundError",
    ]


def test_nobody_reaches_somebody_elses_image_but_its_agent_and_the_registry(fleet: Release) -> None:
    (address,) = fleet.addresses("argos")
    ways_in = {member: fleet.python(member, CONNECT.format(address=address, port=8000)) for member in MEMBERS}
    assert {member for member, answer in ways_in.items() if answer == "connected"} == {"lazy", "registry"}
    assert ways_in["slow"] in REJECTED
    (neighbour,) = fleet.addresses("slow")
    assert fleet.python("argos", CONNECT.format(address=neighbour, port=8080)) in REJECTED


async def test_the_fleet_is_well_and_published_where_it_is_served(fleet: Release) -> None:
    await scenario.until_states(fleet.url("registry"), {"slow": "ok", "strict": "ok", "lazy": "ok"}, within=60)
    entry = (await scenario.catalogue(fleet.url("registry")))["lazy"]
    assert entry["server"]["remotes"][0]["url"] == "https://lazy.example.test/mcp"
    (ingress,) = fleet.objects("ingresses")
    assert {rule["host"] for rule in ingress["spec"]["rules"]} == {"lazy.example.test", "registry.example.test"}
    routes = {item["metadata"]["name"]: item["spec"]["hostnames"] for item in fleet.objects("httproutes")}
    assert routes == {"lazy": ["lazy.example.test"], "registry": ["registry.example.test"]}
    port = fleet.url("lazy").rpartition(":")[2]
    passed_on = [probe.Target(f"http://{name}.example.test:{port}/mcp", "127.0.0.1") for name in ("lazy", "other")]
    assert [(await probe.probe(target)).reachable for target in passed_on] == [True, False]


async def test_replicas_of_the_gateway_are_one_door_and_one_of_them_may_die(fleet: Release, shared: Stores) -> None:
    until(lambda: fleet.ready("gateway") and len(doors.pods(fleet)) == 2, "there are two replicas", within=180)
    (dying, staying) = doors.pods(fleet).items()
    async with httpx.AsyncClient(timeout=60) as web:
        first, second = Door(web, dying[1]), Door(web, staying[1])
        for door in (first, second):
            await door.until_answered("desk", within=180)
        began = time.monotonic()
        ends = await thousand(first, second)
        minutes = 1 + int((time.monotonic() - began) // 60)
        counted_alone = "each replica counts for itself" in fleet.kubectl(
            "logs", "-l", "app.kubernetes.io/name=gateway", "--tail=-1"
        )
        # Valkey's word is waited for a second, and the minute moves: on a machine with much else to do both may matter
        assert 100 <= 1000 - ends["rate"] <= 100 * minutes * (2 if counted_alone else 1)
        assert ends[""] > 0, ends  # how many of those the audit and the agent answer in time is up to the machine

        asked = await first.calls(doors.AGENT, "desk", message="pay")
        assert asked["reason"] == "confirmation_required"
        await second.approve(asked["confirmation"])
        assert await second.calls(doors.AGENT, "desk", message="pay") == {}
        again = await first.calls(doors.AGENT, "desk", message="pay")
        assert (again["reason"], again["confirmation"] == asked["confirmation"]) == ("confirmation_required", False)

        fleet.kubectl("delete", "pod", dying[0], "--grace-period=0", "--force")
        await second.approve(again["confirmation"])
        assert await second.calls(doors.AGENT, "desk", message="pay") == {}
    chains = await shared.chains(FLEET["name"])
    allowed = [line for lines in chains.values() for line in lines if line.get("decision") == "allow"]
    assert ends[""] <= len([line for line in allowed if line["tenant"] == "acme"]) <= 1000 - ends["rate"]
    (of_dying,) = (lines for chain, lines in chains.items() if chain.startswith(f"{dying[0]}-"))
    assert {line["event"] for line in of_dying} >= {"started", "decision", "confirmation"}
    fleet.wait()


async def thousand(*doors_: Door) -> Counter[str]:
    """How a thousand calls of one tenant end, sent to each replica in turn."""
    few = asyncio.Semaphore(8)

    async def one(door: Door) -> str:
        async with few:
            return str((await door.calls("get_health", "phone")).get("reason", ""))

    return Counter(await asyncio.gather(*(one(doors_[number % len(doors_)]) for number in range(1000))))


def test_what_stands_in_front_of_the_gateway_is_taken_by_the_api(
    release: Release, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Agentgateway's kinds too, where the cluster knows them."""
    made = in_front.rendered(tmp_path_factory.mktemp("front"), release.namespace)
    known = in_front.kinds(release)
    taken = [item for item in made if item["kind"] in known]
    routes = [item for item in taken if item["kind"] == "HTTPRoute"]
    assert len(routes) == 10
    assert in_front.created(release, taken) == ""
    release.kubectl("delete", *(f"{item['kind']}/{item['metadata']['name']}" for item in taken))

    (edge,) = (item for item in routes if item["metadata"]["name"] == "front-0-pallas-edge-back")
    edge["spec"]["rules"][0]["matches"][0]["path"]["type"] = "Exact"
    edge["spec"]["rules"][0]["filters"] = [REWRITE]
    assert "must be specified" in in_front.created(release, [edge], dry=True)


async def test_a_pod_that_refuses_its_input_says_why(fleet: Release) -> None:
    """The old pod is sent away first: as long as it is ready, the agent is well, and the new one is not looked at."""
    upgrade(fleet, "refused.yaml")
    for count in (0, 1):
        fleet.kubectl("scale", "deployment/strict", f"--replicas={count}")
    async with asyncio.timeout(120):
        while True:
            entry = (await scenario.catalogue(fleet.url("registry")))["strict"]
            health = entry["_meta"][server_json.HEALTH_META]
            if health.get("reason") == "InputRefused":
                break
            await asyncio.sleep(0.5)
    assert (health["status"], "PALLAS_CONNECT_TIMEOUT" in health["message"]) == ("error", True)
    upgrade(fleet)
    await scenario.until_states(fleet.url("registry"), {"strict": "ok"}, within=120)


def replicas(release: Release) -> int:
    return int(release.kubectl("get", "deployment/lazy", "-o", "jsonpath={.spec.replicas}"))


def test_an_upgrade_leaves_the_number_of_replicas_to_the_autoscaler(fleet: Release) -> None:
    until(lambda: replicas(fleet) == 2, "the autoscaler asks for its minimum", within=60)
    fleet.kubectl("scale", "deployment/lazy", "--replicas=3")  # as it would, if something measured the load here
    upgrade(fleet, "nowhere.yaml")
    upgrade(fleet)
    assert replicas(fleet) == 3


def test_another_tool_may_apply_the_same_without_a_conflict(fleet: Release) -> None:
    """Nothing of the manifest was changed by the cluster, and no list has an element twice."""
    assert fleet.applied_by_another_tool() >= 15


def test_uninstall_leaves_nothing(fleet: Release) -> None:
    fleet.close()
    fleet.uninstall()
    until(lambda: fleet.left() == set(), "nothing is left of the release", within=60)
