"""The examples in containers, from the generated compose file, on the images of this checkout."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import docker
import markupsafe
import pytest
from mcp import Client

from pallas_cli.running import catalogue, owner, stacks, target
from pallas_contract.documents import server_json
from pallas_contract.probe import http_client, probe
from pallas_testing.fleet.start import Running
from tests.documentation import blocks
from tests.ports import free_port

from . import collector, daedalus, later, scenario
from .examples import copied_from
from .projects import edited
from .stack import Stack, running

pytestmark = pytest.mark.docker

CONNECT = """
import socket
for host, port in {targets}:
    try:
        socket.create_connection((host, port), timeout=2).close()
        print("connected")
    except OSError as error:
        print(type(error).__name__)
"""
LATER = "0.1.1"
READ_ALL = """
import pathlib
for path in pathlib.Path("/project").rglob("*"):
    print(path, path.read_text() if path.is_file() else "")
"""
REFUSED = {"gaierror", "ConnectionRefusedError", "TimeoutError", "OSError"}
"""No such name; no way there."""

SCOUT = """
  scout:
    card: agents/scout.md
    port: {port}
"""
SCOUT_CARD = """---
type: agent
name: scout
model: passthrough
---
You are Scout.
"""


PORTS = {"argos": 8000}
"""Where those listen that are not the kit's."""


@pytest.fixture(scope="module")
def somebody_elses() -> Iterator[str]:
    """The name of an image that is built from nothing of ours."""
    engine = docker.from_env()
    name = f"somebody-elses-argos:{os.getpid()}"
    engine.images.build(path=str(Path(__file__).with_name("foreign")), tag=name, rm=True)
    yield name
    engine.images.remove(name, force=True)
    engine.close()


def with_image(config: Path, name: str) -> None:
    """Let the stand-in for argos be the image `name`, which reads a file of the project."""
    (config.parent / "argos.txt").write_text("3 pages\n")
    image = f"image: {name}\n    args: ['8000', /project/argos.txt]\n    files: [argos.txt]\n    port: 8000\n"
    stand_in = r"module: standins\.tools\n    args: \[argos\]\n    port: \d+\n"
    text, count = re.subn(stand_in, image, config.read_text())
    assert count == 1
    config.write_text(text)


@pytest.fixture(scope="module")
def running_fleet(root, tmp_path_factory, somebody_elses) -> Iterator[Running]:
    """examples/02-pallas with an image of somebody else, isolated networks, up for all tests here."""
    config = edited(
        root / "examples" / "02-pallas",
        tmp_path_factory.mktemp("compose"),
        more="registry: {probe_interval: 1}\ntelemetry: {otlp_endpoint: 'http://otel-collector:4318'}\n",
    )
    with_image(config, somebody_elses)
    with running(config) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def stack(running_fleet: Running) -> Stack:
    """The same, and what only containers have."""
    return Stack(running_fleet)


@pytest.fixture
async def up(stack: Stack) -> Stack:
    """The fleet with every agent ok."""
    await scenario.until_states(stack.url("registry"), scenario.ALL_OK, within=60)
    return stack


async def test_the_first_look_after_up_shows_every_agent_ok(stack):
    await asyncio.to_thread(stack.up)
    assert await scenario.states(stack.url("registry")) == scenario.ALL_OK


def test_the_verbs_know_whose_containers_these_are(stack, tmp_path, monkeypatch):
    for patience in ("_PATIENCE", "BRIEF"):
        monkeypatch.setattr(stacks, patience, 300.0)  # of an engine that starts ten other containers
    running = target.find(stack.config)
    assert (running.target, running.stack.project) == ("compose", stack.project)
    url = stack.url("registry")
    whose = catalogue.read(url).owner
    owner.refuse_other(whose, url, owner.Fleet(whose.name, stack.config))
    copy = tmp_path / "agents.yaml"
    copy.write_text(stack.config.read_text())
    assert target.find(copy) is None
    with pytest.raises(owner.OtherFleet, match=f"that of {re.escape(str(stack.config))} in containers"):
        owner.refuse_other(whose, url, owner.Fleet(whose.name, copy))


async def test_the_registry_publishes_public_and_inner_addresses(up):
    entries = await scenario.catalogue(up.url("registry"))
    port = up.url("tech_research").rpartition(":")[2]
    assert [remote["url"] for remote in entries["tech-research"]["server"]["remotes"]] == [
        f"http://localhost:{port}/mcp",
        "http://tech-research:8080/mcp",
    ]


async def test_harper_delegates_to_other_containers(up):
    answer = await scenario.harper_delegates(f"{up.url('harper')}/mcp", scenario.ERAS[0])
    said = {"(?<!Tech )Research": "research", "Tech Research": "tech_research", "Engineering": "engineering"}
    for name, agent in said.items():
        (address,) = re.findall(rf"{name}, asking from ([0-9.]+)", answer.text)
        assert address in up.addresses(agent)
    assert f"(argos on {up.container('argos').id[:12]})" in answer.text


def connections(stack: Stack, caller: str, *targets: tuple[str, int]) -> list[str]:
    """What becomes of connections from a member's container, in their order."""
    return stack.python(caller, CONNECT.format(targets=targets)).split()


@pytest.mark.parametrize(
    ("caller", "called"),
    [
        ("harper", "research"),
        ("harper", "engineering"),
        ("research", "tech-research"),
        ("research", "argos"),
        ("tech_research", "model"),
        ("registry", "tech-research"),
        ("registry", "argos"),
        ("registry", "model"),
    ],
)
def test_a_declared_call_is_let_through(up, caller, called):
    assert connections(up, caller, (called, PORTS.get(called, 8080))) == ["connected"]


def test_nobody_calls_back_on_the_network_of_a_call(up):
    """harper and research share one, for harper to call research."""
    shared = up.network("call.harper.research")
    assert connections(up, "harper", (shared["research"], 8080)) == ["connected"]
    assert connections(up, "research", (shared["harper"], 8080)) == ["ConnectionRefusedError"]


@pytest.mark.parametrize(
    ("caller", "called"),
    [
        ("harper", "tech_research"),
        ("harper", "argos"),
        ("tech_research", "research"),
        ("research", "engineering"),
        ("engineering", "harper"),
    ],
)
def test_an_undeclared_call_is_refused_by_name_and_by_address(up, caller, called):
    """Docker lets it through for milliseconds when it makes any network (docs/networks.md), as other tests cause."""
    port = PORTS.get(called, 8080)
    hosts = [called.replace("_", "-"), *(up.addresses(called) - {""})]
    for _ in range(3):
        found = connections(up, caller, *((host, port) for host in hosts))
        assert len(found) == len(hosts)
        assert set(found) <= {*REFUSED, "connected"}
        hosts = [host for host, what in zip(hosts, found, strict=True) if what == "connected"]
        if not hosts:
            return
    raise AssertionError(f"{caller} reaches {called} at {hosts}, again and again")


def test_containers_are_hardened(up):
    for container in up.containers().values():
        host = container.attrs["HostConfig"]
        assert container.attrs["Config"]["User"] == "10001:10001"
        assert (host["ReadonlyRootfs"], host["Privileged"], host["CapDrop"]) == (True, False, ["ALL"])
        assert host["SecurityOpt"] == ["no-new-privileges:true"]
        assert min(host["Memory"], host["NanoCpus"], host["PidsLimit"]) > 0
        assert all(mount["RW"] is False for mount in container.attrs["Mounts"])
        ports = [binding for bindings in host["PortBindings"].values() for binding in bindings]
        assert {binding["HostIp"] for binding in ports} <= {"127.0.0.1"}


async def service(stack: Stack, name: str) -> tuple[str, str]:
    """State and code of a service, as the registry last found it."""
    reply = await http_client.request("GET", f"{stack.url('registry')}/services")
    entries = {entry["name"]: entry for entry in json.loads(reply.body)["services"]}
    return entries[name]["status"], entries[name].get("reason", "")


async def until_service(stack: Stack, name: str, wanted: tuple[str, str]) -> None:
    async with asyncio.timeout(60):
        while await service(stack, name) != wanted:
            await asyncio.sleep(0.2)


async def test_somebody_elses_image_is_called_by_an_agent_and_watched_by_the_registry(up, somebody_elses):
    argos = up.container("argos")
    assert argos.attrs["Config"]["Image"] == somebody_elses
    (mount,) = argos.attrs["Mounts"]
    assert (mount["Destination"], mount["RW"]) == ("/project/argos.txt", False)
    await until_service(up, "argos", ("ok", ""))
    answer = await scenario.harper_delegates(f"{up.url('harper')}/mcp", scenario.ERAS[0])
    assert f"(argos on {argos.id[:12]})" in answer.text
    up.kill("argos")
    try:
        await until_service(up, "argos", ("error", "NameNotFound"))
        page = await http_client.request("GET", f"{up.url('registry')}/")
        (row,) = re.findall(rb'<tr id="service-argos" class="error">.*?</tr>', page.body, re.DOTALL)
        assert b"name not found" in row
    finally:
        up.start("argos")
    await until_service(up, "argos", ("ok", ""))
    await scenario.until_states(up.url("registry"), scenario.ALL_OK, within=60)


async def test_daedalus(up):
    """Sentence by sentence in test_local.py; here over published ports, with a container that is paused."""
    async with daedalus.running(up.url("registry"), up) as client:
        for sentence in daedalus.SENTENCES:
            await sentence(client)


async def test_the_registry_follows_a_crash(up):
    await scenario.registry_follows_a_crash(up.url("registry"), f"{up.url('harper')}/mcp", up)


async def test_what_the_readme_breaks(up):
    (block,) = blocks.of("break-something")
    script = block.text.replace("http://127.0.0.1:24100", up.url("registry"))
    here = f"--project-name {up.project} -f {up.config.parent}/compose.yaml"
    command = ["sh", "-e", "-c", script.replace("-f examples/02-pallas/compose.yaml", here)]
    try:
        done = await asyncio.to_thread(
            subprocess.run, command, check=False, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert '/tech-research"' in done.stdout
        assert re.search(r'^pallas_agent_health{[^}]*agent="tech_research"', done.stdout, re.MULTILINE)
        await scenario.until_states(up.url("registry"), {"tech-research": "error"}, within=60)
    finally:
        up.start("tech_research")
    await scenario.until_states(up.url("registry"), scenario.ALL_OK, within=60)


async def test_an_added_agent_appears_and_disturbs_no_other(up):
    before = {service: container.id for service, container in up.containers().items()}
    text = up.config.read_text()
    port = free_port()
    (up.config.parent / "agents" / "scout.md").write_text(SCOUT_CARD)
    up.config.write_text(text.replace("\nservices:", SCOUT.format(port=port) + "\nservices:"))
    up.generate()
    up.up()
    await scenario.until_states(up.url("registry"), {**scenario.ALL_OK, "scout": "degraded"}, within=60)
    entry = (await scenario.catalogue(up.url("registry")))["scout"]
    assert "LLM: openai" in entry["_meta"][server_json.HEALTH_META]["message"]  # it was given no way to the model
    after = {service: container.id for service, container in up.containers().items()}
    assert {service for service in before if before[service] != after[service]} == {"registry"}

    up.config.write_text(text)
    up.generate()
    up.up()
    await scenario.until_states(up.url("registry"), scenario.ALL_OK, within=60)
    assert "scout" not in await scenario.states(up.url("registry"))


async def test_edited_code_is_run_by_who_gets_it_and_disturbs_no_other(up):
    """`up` alone sees nothing of it: the same paths are mounted. What compose reads changes when it is written anew.

    Nobody depends on harper: compose before 2.29.4 makes those anew too that depend on one which it makes anew.
    """
    ids = {service: container.id for service, container in up.containers().items()}
    module = up.config.parent / "agents" / "harper.py"
    text = module.read_text()
    edited_text = module.with_name("edited")  # as an editor saves: the old file is replaced, not written to
    edited_text.write_text(f'{text}\nprint("edited code is run")\n')
    edited_text.rename(module)
    await asyncio.to_thread(up.up)
    assert {service: container.id for service, container in up.containers().items()} == ids
    await asyncio.to_thread(up.generate)
    await asyncio.to_thread(up.up)
    after = {service: container.id for service, container in up.containers().items()}
    assert {service for service in ids if ids[service] != after[service]} == {"harper"}
    assert b"edited code is run" in up.container("harper").logs()
    await scenario.until_states(up.url("registry"), scenario.ALL_OK, within=60)


async def behind_a_proxy(stack: Stack) -> None:
    """The registry publishes the public URL, and the agent answers to that name as a proxy passes it on, only to it."""
    entry = (await scenario.catalogue(stack.url("registry")))["hello"]
    assert entry["server"]["remotes"][0]["url"] == "https://hello.example.test/mcp"
    port = stack.url("hello").rpartition(":")[2]
    passed_on = [probe.Target(f"http://{name}.example.test:{port}/mcp", "127.0.0.1") for name in ("hello", "other")]
    assert [(await probe.probe(target)).reachable for target in passed_on] == [True, False]


async def outlives_its_version(stack: Stack) -> None:
    """All containers are of the images of a later version then, scout's too; what hello heard is on its volume."""
    asked = {"message": "remember the milk", "session_id": "shopping"}
    async with Client(f"{stack.url('hello')}/mcp") as client:
        await client.call_tool("hello", asked)
    with later.images(LATER):
        stack.generate(later.pallas_gen(LATER))
        stack.up()
        images = {container.attrs["Config"]["Image"] for container in stack.containers().values()}
        assert images == {f"pallas-agent:{LATER}", f"pallas-registry:{LATER}"}
    async with Client(f"{stack.url('hello')}/mcp") as client:
        history = await client.get_prompt("hello_history", {"session_id": "shopping"})
    assert [message.content.text for message in history.messages][:1] == [asked["message"]]


async def says_why_it_refuses_its_input(stack: Stack) -> None:
    """scout's card is broken, and its container ends again and again: the document, the page and a probe say why."""
    (stack.config.parent / "agents" / "scout.md").write_text("---\nname: [\n---\n")
    stack.container("scout").restart()
    async with asyncio.timeout(120):
        while True:
            entry = (await scenario.catalogue(stack.url("registry")))["scout"]
            health = entry["_meta"][server_json.HEALTH_META]
            if health.get("reason") == "InputRefused":
                break
            await asyncio.sleep(0.2)
    assert (health["status"], "agents/scout.md" in health["message"]) == ("error", True)
    page = await http_client.request("GET", f"{stack.url('registry')}/")
    assert str(markupsafe.escape(health["message"])) in page.body.decode()
    answer = await probe.probe(probe.Target(f"{stack.url('scout')}/mcp"))
    async with asyncio.timeout(120):  # it listens for ten seconds of each time
        while answer.reason.code != "InputRefused":
            await asyncio.sleep(0.5)
            answer = await probe.probe(probe.Target(f"{stack.url('scout')}/mcp"))
    assert answer.reason.message == health["message"]


async def test_flat_networks_secrets_and_a_reload_without_restart(root, tmp_path):
    example = root / "examples" / "01-hello"
    config = edited(example, tmp_path, more="networks: flat\npublic_url: https://{name}.example.test\n")
    keys = config.parent / "keys"
    keys.mkdir()
    (keys / "api.txt").write_text("canary-value\n")
    more = "    secrets: {API_KEY: {file: keys/api.txt}}\n    keep_conversations: true\n    card:"
    config.write_text(config.read_text().replace("    card:", more))
    with running(config) as fleet:
        stack = Stack(fleet)
        config, keys, text = stack.config, stack.config.parent / "keys", stack.config.read_text()
        await scenario.until_states(stack.url("registry"), {"hello": "ok"}, within=60)
        answer = await scenario.ask(f"{stack.url('hello')}/mcp", "hello", "good morning", "auto")
        assert "good morning" in answer.text
        await behind_a_proxy(stack)

        assert stack.python("hello", "print(open('/run/secrets/API_KEY').read())") == "canary-value"
        replacement = keys / "new"  # as an editor saves: the old file is replaced, not written to
        replacement.write_text("canary-value\n")
        replacement.rename(keys / "api.txt")
        for member in ("hello", "registry"):
            assert "canary-value" not in stack.python(member, READ_ALL), member
            assert "canary-value" not in str(stack.container(member).attrs)
        (config.parent / ".env").write_text("LATER=canary-value\n")
        assert "canary-value" not in stack.python("hello", READ_ALL)
        (config.parent / ".env").unlink()

        registry = stack.container("registry")
        (config.parent / "agents" / "scout.md").write_text(SCOUT_CARD)
        port = free_port()
        config.write_text(text.replace("agents:\n", "agents:" + SCOUT.format(port=port), 1))
        async with asyncio.timeout(60):
            while "scout" not in await scenario.states(stack.url("registry")):
                await asyncio.sleep(0.2)
        now = stack.container("registry")
        assert (now.id, now.attrs["State"]["StartedAt"]) == (registry.id, registry.attrs["State"]["StartedAt"])
        await outlives_its_version(stack)
        await scenario.until_states(stack.url("registry"), {"hello": "ok", "scout": "ok"}, within=60)
        await says_why_it_refuses_its_input(stack)


async def test_a_collector_on_the_network_telemetry_gets_one_trace_of_all_agents(up):
    """Until now there was none, which nobody noticed."""
    everyone = {"harper", "research", "tech-research", "engineering"}
    with up.beside("telemetry", collector.NAME, collector.CODE) as logs:
        for era in scenario.ERAS:
            ask = partial(scenario.harper_delegates, f"{up.url('harper')}/mcp", era)
            await collector.until_traced(ask, logs, everyone)


globals().update(copied_from("02-pallas"))
