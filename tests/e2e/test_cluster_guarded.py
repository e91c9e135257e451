"""Tokens, traces, agents that register and what is kept, in a real Kubernetes: one small fleet with all of them."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from pallas_contract import __version__

from . import collector, later, scenario
from .registration import CAPABILITIES, TOKEN, outside, say
from .release import READY, Release, call, load, namespace, until
from .test_access import HARPER, UI, ask, closed
from .test_cluster_options import CONNECT, REJECTED

pytestmark = pytest.mark.cluster

ISSUER = "https://id.example.test"
FLEET = f"""\
name: guarded
registry:
  probe_interval: 1
  registration:
    tokens: {{partners: {{file: keys/partners}}}}
    store: true
    reach: [10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16]
telemetry: {{otlp_endpoint: "http://{collector.NAME}:{collector.PORT}"}}
gateway:
  agents: [harper]
  access: {{tokens: {{harper: {{file: keys/harper}}}}}}
  env: {{DOOR: "$HOME $$ {{{{ .Values }}}}"}}
services:
  home: {{module: home, port: 8103, through: gateway}}
agents:
  harper:
    card: harper.md
    port: 8101
    depends_on: [research, home]
    keep_conversations: true
    access: {{tokens: {{ui: {{file: keys/ui}}, gateway: {{file: keys/gateway}}}}}}
  research:
    card: research.md
    port: 8102
    access:
      tokens: {{harper: {{file: keys/harper}}}}
      jwt: {{issuer: "{ISSUER}", audience: research, jwks_file: keys/jwks.json}}
"""
CARD = "---\ntype: agent\nname: {name}\nmodel: passthrough\nservers: [{servers}]\n---\nYou are {name}.\n"
HOME = """
import os
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

server = MCPServer("home")


@server.tool()
def look(room: str) -> str:
    return f"nobody in the {room}"


host, _, port = os.environ["PALLAS_BIND"].rpartition(":")
security = TransportSecuritySettings(allowed_hosts=os.environ["PALLAS_ALLOWED_HOSTS"].split(","))
server.run("streamable-http", host=host, port=int(port), stateless_http=True, transport_security=security)
"""
CURRENT = 20
"""Seconds until the catalogue is that of the file; 10 are promised, and this machine may have other work."""
LATER = "0.2.0"
STORAGE = "pallas-e2e"
"""A class without a provisioner: claims of it are bound to the volumes made here, in any cluster."""
COLLECTOR = {
    "terminationGracePeriodSeconds": 1,
    "containers": [
        {
            "name": "collector",
            "image": f"pallas-agent:{__version__}",
            "args": ["-c", collector.CODE],
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
    ],
    "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
}
LABELS = {"app": collector.NAME}
VALUES: dict[str, Any] = {
    "agents": {"harper": {"state": {"storageClass": STORAGE}}},
    "registry": {"state": {"storageClass": STORAGE}},
    "secrets": {"keys-ui": {"existingSecret": "callers", "key": "token"}},
    "extraObjects": [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": collector.NAME, "labels": LABELS},
            "spec": COLLECTOR,
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": collector.NAME},
            "spec": {"selector": LABELS, "ports": [{"port": collector.PORT}]},
        },
    ],
}
GATEWAY = "gateway-of-the-guarded-0123456789"
KEY = ec.generate_private_key(ec.SECP256R1())
HELLO = '***CALL_TOOL research__research {"message": "hello"}'
SECRET_FILES = ("partners", "harper", "gateway", "jwks.json")


@pytest.fixture(scope="module")
def fleet(kubernetes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    folder = tmp_path_factory.mktemp("guarded")
    with volumes(tmp_path_factory.mktemp("volumes"), 2), namespace("pallas-e2e-guarded") as space:
        release = Release(write(folder), space)
        release.kubectl("create", "secret", "generic", "callers", f"--from-file=token={folder / 'keys' / 'ui'}")
        try:
            install(release)
            release.wait()
            release.first_look = asyncio.run(scenario.states(release.url("registry")))
            yield release
        finally:
            release.close()
            release.helm("uninstall", "--wait", "--timeout", "120s", check=False)  # a namespace is slow with its pods


def write(folder: Path) -> Path:
    """The project folder, and values beside its agents.yaml; returns that."""
    (folder / "keys").mkdir()
    public = jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
    keys = json.dumps({"keys": [{**public, "kid": "one", "use": "sig", "alg": "ES256"}]})
    tokens = {"ui": UI, "harper": HARPER, "gateway": GATEWAY, "partners": TOKEN}
    for name, text in {**tokens, "jwks.json": keys}.items():
        (folder / "keys" / name).write_text(text)
    (folder / "home.py").write_text(HOME)
    for name, servers in (("harper", "research, home"), ("research", "")):
        (folder / f"{name}.md").write_text(CARD.format(name=name, servers=servers))
    (folder / "values.yaml").write_text(json.dumps(VALUES))
    (folder / "agents.yaml").write_text(FLEET)
    return folder / "agents.yaml"


def install(release: Release, *options: str, **how: Any) -> str:
    """Install or upgrade; what Helm says."""
    folder = release.config.parent
    given = {name.replace(".", "-"): folder / "keys" / name for name in SECRET_FILES}
    files = [f"--set-file=secrets.keys-{name}.content={path}" for name, path in given.items()]
    return release.upgrade("-f", str(folder / "values.yaml"), *files, *options, **how).stdout


@contextmanager
def volumes(folder: Path, count: int, name: str = STORAGE, storage: str = STORAGE) -> Iterator[None]:
    """So many PersistentVolumes of a class, in folders of this machine, which is the node."""
    made = [volume(folder / str(number), f"{name}-{number}", storage) for number in range(count)]
    names = [item["metadata"]["name"] for item in made]
    call("kubectl", "delete", "pv", *names, "--ignore-not-found", "--timeout=60s")
    path = folder / "volumes.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": made}))
    call("kubectl", "apply", "-f", path)
    try:
        yield
    finally:
        call("kubectl", "delete", "pv", *names, "--timeout=60s", check=False)


def volume(place: Path, name: str, storage: str) -> dict[str, Any]:
    place.mkdir()
    place.chmod(0o777)  # of a folder on the node nobody makes the pod's group the owner
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": storage,
        "hostPath": {"path": str(place), "type": "Directory"},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
async def up(fleet: Release) -> Release:
    """The fleet with both agents ok."""
    await scenario.until_states(fleet.url("registry"), {"harper": "ok", "research": "ok"}, within=180)
    return fleet


def test_the_first_look_after_the_installation_shows_every_agent_ok(fleet: Release) -> None:
    assert fleet.first_look == {"harper": "ok", "research": "ok"}


async def test_who_shows_no_token_gets_in_nowhere_and_the_rest_works(up: Release) -> None:
    for name in ("harper", "research"):
        await closed(f"{up.url(name)}/mcp")
    for era in scenario.ERAS:
        assert "hello" in await ask(f"{up.url('harper')}/mcp", era, HELLO)
    claims = {"iss": ISSUER, "sub": "alice", "aud": "research", "iat": int(time.time()), "exp": int(time.time()) + 60}
    token = jwt.encode(claims, KEY, algorithm="ES256", headers={"kid": "one"})
    assert await ask(f"{up.url('research')}/mcp", scenario.ERAS[0], "signed", token) == "signed"
    assert "Phase:          Succeeded" in up.helm("test", "--timeout", "120s").stdout


async def test_a_guarded_service_is_reached_through_the_gateway_and_in_no_other_way(up: Release) -> None:
    """By who depends on it, with its token; past the gateway nobody comes, not even who may call it there."""
    question = '***CALL_TOOL home__look {"room": "hall"}'
    assert "nobody in the hall" in await ask(f"{up.url('harper')}/mcp", scenario.ERAS[0], question)
    (home,) = up.addresses("home")
    connect = CONNECT.format(address=home, port=8080)
    ways_in = {member: up.python(member, connect) for member in ("harper", "research", "gateway", "registry")}
    assert {member for member, answer in ways_in.items() if answer == "connected"} == {"gateway", "registry"}
    assert {ways_in["harper"], ways_in["research"]} <= REJECTED
    (door,) = up.addresses("gateway")
    assert up.python("research", CONNECT.format(address=door, port=8080)) in REJECTED
    await closed(f"{up.url('gateway')}/services/home/mcp")
    assert up.python("gateway", "import os; print(os.environ['DOOR'])") == "$HOME $$ {{ .Values }}"


def test_tokens_are_in_secrets_only(fleet: Release) -> None:
    told = json.dumps(fleet.objects("configmaps,deployments,pods,services,events"))
    assert not [token for token in (UI, HARPER, GATEWAY, TOKEN) if token in told]


def test_another_tool_may_apply_claims_and_ways_to_the_collector(fleet: Release) -> None:
    assert fleet.applied_by_another_tool() >= 15


async def test_one_trace_of_both_agents_arrives_at_the_collector(up: Release) -> None:
    await collector.until_traced(
        partial(ask, f"{up.url('harper')}/mcp", scenario.ERAS[0], HELLO),
        lambda: up.kubectl("logs", collector.NAME).splitlines(),
        {"harper", "research"},
    )


async def test_a_registry_that_stays_has_the_new_file_once_its_pod_is_touched(up: Release) -> None:
    """With the command that `helm` prints after an upgrade; by itself a kubelet takes a minute or so."""
    before = set(up.pods("registry"))
    up.config.write_text(FLEET.replace("    card: research.md\n", "    card: research.md\n    title: Renewed\n"))
    registry = up.service("registry")
    async with scenario.asking(registry) as answers:
        notes = await asyncio.to_thread(install, up, "--wait", "--timeout", READY)
        (touch,) = re.findall(r"kubectl .* annotate .*", notes)
        call("sh", "-c", touch)
        async with asyncio.timeout(CURRENT):
            while (await scenario.catalogue(registry))["research"]["server"]["title"] != "Renewed":
                await asyncio.sleep(0.1)
    assert set(answers) == {"200"}
    assert set(up.pods("registry")) == before


async def test_who_registered_and_what_was_said_outlive_the_pods_and_the_release(up: Release) -> None:
    """It goes to a later version of the kit, then is uninstalled, which leaves the claims, and installed again."""
    async with guest(up) as client:
        await client.call_tool("harper", {"message": "remember the milk", "session_id": "shopping"})
    (pod,) = up.pods("registry").values()
    async with outside() as port:
        url = f"http://{pod['status']['hostIP']}:{port}/mcp"
        about = {"capabilities": CAPABILITIES, "heartbeat_interval": 60, "url": url}
        assert (await say(up, "server.register", **about))[0] == 200
        await scenario.until_states(up.url("registry"), {"feature-extractor": "ok"}, within=60)

        before = set(up.pods("registry")) | set(up.pods("harper"))
        with later.images(LATER) as tags:
            load(*tags)
        install(up, pallas_gen=later.pallas_gen(LATER))
        until(lambda: not before & set(up.pods()), "the pods of before are gone", within=120)
        of_later = {f"pallas-agent:{LATER}", f"pallas-registry:{LATER}"}
        until(lambda: images(up) == of_later, "all pods are of the later version", within=120)
        await still_there(up)

        up.uninstall()
        kept = {("PersistentVolumeClaim", f"{name}-state") for name in ("registry", "harper")}
        until(lambda: up.left() == kept | {("Secret", "callers")}, "only the claims are left", within=60)
        install(up)
        await still_there(up)


def images(fleet: Release) -> set[str]:
    """Return the images of all containers that run."""
    return {container["image"] for pod in fleet.pods().values() for container in pod["spec"]["containers"]}


@asynccontextmanager
async def guest(fleet: Release) -> AsyncIterator[Client]:
    """A client of harper with a token."""
    async with (
        httpx2.AsyncClient(headers={"authorization": f"Bearer {UI}"}, timeout=60) as web,
        Client(streamable_http_client(f"{fleet.url('harper')}/mcp", http_client=web)) as client,
    ):
        yield client


async def still_there(fleet: Release) -> None:
    """New pods know the agent outside, which nobody registered again, and what was said to harper."""
    fleet.close()  # a forward holds on to the pod it was made for
    fleet.wait()
    await scenario.until_states(fleet.url("registry"), {"feature-extractor": "unknown"}, within=60)
    assert (await say(fleet, "agent.heartbeat", status="active"))[0] == 200
    await scenario.until_states(fleet.url("registry"), {"feature-extractor": "ok"}, within=60)
    async with guest(fleet) as client:
        history = await client.get_prompt("harper_history", {"session_id": "shopping"})
    assert [message.content.text for message in history.messages][:1] == ["remember the milk"]
