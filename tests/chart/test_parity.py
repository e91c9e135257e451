"""Compose file and chart say what the plan says, for every example; and the check sees each difference."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from pallas_contract.fleet.source import Loader
from pallas_gen import verify
from pallas_gen.plan import Plan
from pallas_gen.project.contents import Contents
from pallas_gen.targets.compose import read_back
from pallas_gen.targets.compose import render as compose
from pallas_gen.targets.helm import read_back as helm

from .conftest import GRAPH

COLLECTORS = {"beside": "http://otel:4318", "outside": "https://in.example.com"}
PROTECTED = """\
name: protected
public_url: https://{name}.x.example
access: {tokens: {ui: {file: s/ui}}, jwt: {issuer: https://id.example, jwks_url: https://id.example/keys}}
agents:
  scout: {module: agents.scout, port: 8101, depends_on: [other]}
  other: {module: agents.other, port: 8102, access: {tokens: {scout: {file: s/scout}}}}
"""
IMAGES = (Path(__file__).parents[1] / "generator" / "fleets" / "images" / "agents.yaml").read_text()
CARD = "---\nname: scout\nmodel: passthrough\nservers: [weather]\n---\nYou look things up.\n"
GATEWAY = (
    "name: behind\ngateway: {agents: [only], tenants: {acme: {}}, tools: {lookup_entity: memory}}\n"
    "agents: {only: {module: agents.scout, port: 8101, publish: false, depends_on: [memory]}}\n"
    "services: {memory: {module: agents.scout, port: 8102, calls: [only]}}\n"
)
NAMES = [
    "images",
    "01-hello",
    "02-pallas",
    "03-data-pool",
    "04-percolate",
    "graph",
    "public",
    "protected",
    "gateway",
    *COLLECTORS,
]
SECRET = ("--set", "secrets.fastagent-secrets-yaml.content=x")


def read_compose(plan: Plan) -> dict[str, Any]:
    return yaml.load(compose.render(plan, PurePosixPath(), Contents())[compose.FILE], Loader)


@pytest.fixture(scope="module")
def fleets(example, compiled, graph, public) -> dict[str, Any]:
    examples = {name: (example(name), ()) for name in ("01-hello", "03-data-pool")}
    examples |= {name: (example(name), SECRET) for name in ("02-pallas", "04-percolate")}
    traced = {
        name: (compiled(f"{GRAPH}telemetry: {{otlp_endpoint: '{url}'}}\n"), ()) for name, url in COLLECTORS.items()
    }
    tokens = [part for name in ("ui", "scout") for part in ("--set", f"secrets.s-{name}.content=x")]
    return {
        **examples,
        **traced,
        "images": (compiled(IMAGES.replace("agents/scout.md", "scout.md"), scout__md=CARD), ()),
        "graph": (graph, ()),
        "public": (public, ()),
        "gateway": (compiled(GATEWAY), ()),
        "protected": (compiled(PROTECTED), tokens),
    }


@pytest.mark.parametrize("name", NAMES)
def test_compose_is_the_plan(fleets, name: str) -> None:
    plan = fleets[name][0].plan
    assert (
        list(verify.differences(plan, read_back.workloads(read_compose(plan), plan, PurePosixPath()), "compose.yaml"))
        == []
    )


@pytest.mark.helm
@pytest.mark.parametrize("name", NAMES)
def test_the_chart_is_the_plan(fleets, name: str) -> None:
    chart, options = fleets[name]
    found = helm.workloads(chart.render(None, *options).objects, chart.plan)
    assert list(verify.differences(chart.plan, found, "chart")) == []


def service(document: dict[str, Any]) -> dict[str, Any]:
    return document["services"]["left-one"]


COMPOSE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "left-one.image": lambda d: service(d).update(image="other"),
    "left-one.command": lambda d: service(d)["command"].append("-v"),
    "left-one.env": lambda d: service(d)["environment"].update(A="b"),
    "left-one.port": lambda d: service(d)["environment"].update(PALLAS_BIND="0.0.0.0:9"),
    "left-one.probe": lambda d: service(d)["healthcheck"]["test"].append("http://x/"),
    "left-one.order": lambda d: service(d).pop("depends_on"),
    "left-one.secrets": lambda d: service(d).update(secrets=[{"source": "x", "target": "x"}]),
    "left-one.limits": lambda d: service(d)["deploy"]["resources"]["limits"].update(memory="1G"),
    "left-one.peers": lambda d: service(d)["networks"].pop("call.top.left-one"),
    "left-one.callers": lambda d: service(d)["environment"].update(PALLAS_LISTEN_ON="from.top,from.tools"),
    "tools": lambda d: d["services"].pop("tools"),
}


@pytest.mark.parametrize("field", COMPOSE)
def test_a_difference_in_compose_is_seen(graph, field: str) -> None:
    document = read_compose(graph.plan)
    COMPOSE[field](document)
    found = verify.differences(graph.plan, read_back.workloads(document, graph.plan, PurePosixPath()), "compose.yaml")
    assert field in {problem.where.field for problem in found}


def pod(objects: dict[tuple[str, str], Any]) -> dict[str, Any]:
    return objects["Deployment", "left-one"]["spec"]["template"]["spec"]


def main(objects: dict[tuple[str, str], Any]) -> dict[str, Any]:
    return pod(objects)["containers"][0]


MANIFESTS: dict[str, Callable[[dict[tuple[str, str], Any]], Any]] = {
    "left-one.image": lambda o: main(o).update(image="other"),
    "left-one.command": lambda o: main(o)["args"].append("-v"),
    "left-one.env": lambda o: main(o)["env"].append({"name": "A", "value": "b"}),
    "left-one.port": lambda o: main(o)["ports"][0].update(containerPort=9),
    "left-one.probe": lambda o: main(o)["readinessProbe"]["httpGet"].update(path="/livez"),
    "left-one.order": lambda o: pod(o).pop("initContainers"),
    "left-one.secrets": lambda o: pod(o)["volumes"].append(
        {"name": "secrets", "projected": {"sources": [{"secret": {"items": [{"key": "x", "path": "x"}]}}]}}
    ),
    "left-one.limits": lambda o: main(o)["resources"]["limits"].update(cpu="2"),
    "left-one.peers": lambda o: o["NetworkPolicy", "left-one"]["spec"]["ingress"][0]["from"].clear(),
    "left-one.callers": lambda o: o["NetworkPolicy", "left-one"]["spec"]["ingress"][0]["from"].pop(0),
    "tools": lambda o: o.pop(("Deployment", "tools")),
}


@pytest.mark.helm
@pytest.mark.parametrize("field", MANIFESTS)
def test_a_difference_in_the_chart_is_seen(graph, plain, field: str) -> None:
    objects = {(item["kind"], item["metadata"]["name"]): item for item in copy.deepcopy(plain.objects)}
    MANIFESTS[field](objects)
    found = verify.differences(graph.plan, helm.workloads(list(objects.values()), graph.plan), "chart")
    assert field in {problem.where.field for problem in found}


def test_a_secret_that_goes_to_another_file_is_seen_in_compose(fleets) -> None:
    plan = fleets["protected"][0].plan
    document = read_compose(plan)
    one, two = document["secrets"].values()
    one["file"], two["file"] = two["file"], one["file"]
    found = verify.differences(plan, read_back.workloads(document, plan, PurePosixPath()), "compose.yaml")
    assert {problem.where.field for problem in found} == {"scout.secrets", "other.secrets"}


@pytest.mark.helm
def test_a_secret_that_goes_to_another_file_is_seen_in_the_chart(fleets) -> None:
    chart, options = fleets["protected"]
    objects = chart.render(None, *options).objects
    (scout,) = (item for item in objects if (item["kind"], item["metadata"]["name"]) == ("Deployment", "scout"))
    (volume,) = (each for each in scout["spec"]["template"]["spec"]["volumes"] if each["name"] == "secrets")
    one, two = (source["secret"]["items"][0] for source in volume["projected"]["sources"])
    one["key"], two["key"] = two["key"], one["key"]
    found = verify.differences(chart.plan, helm.workloads(objects, chart.plan), "chart")
    assert [problem.where.field for problem in found] == ["scout.secrets"]


def test_a_lost_way_to_the_collector_is_seen(fleets) -> None:
    for name in COLLECTORS:
        plan = fleets[name][0].plan
        document = read_compose(plan)
        service(document)["networks"].pop("telemetry", None)
        document["networks"]["agent.left-one"]["internal"] = True
        found = verify.differences(plan, read_back.workloads(document, plan, PurePosixPath()), "compose.yaml")
        assert [problem.where.field for problem in found] == ["left-one.collector"]


@pytest.mark.helm
def test_a_closed_port_of_the_collector_is_seen(fleets) -> None:
    chart = fleets["beside"][0]
    objects = chart.render().objects
    for item in objects:
        if item["kind"] == "NetworkPolicy" and item["metadata"]["name"] == "top":
            item["spec"]["egress"] = [rule for rule in item["spec"]["egress"] if "4318" not in str(rule)]
    found = verify.differences(chart.plan, helm.workloads(objects, chart.plan), "chart")
    assert [problem.where.field for problem in found] == ["top.collector"]


@pytest.mark.helm
def test_an_image_is_called_at_its_own_port_and_nowhere_else(fleets) -> None:
    objects = fleets["images"][0].render().objects
    policies = {item["metadata"]["name"]: item["spec"] for item in objects if item["kind"] == "NetworkPolicy"}
    services = {item["metadata"]["name"]: item["spec"] for item in objects if item["kind"] == "Service"}
    for host, port in {"model": 11434, "vectors": 6333, "weather": 8000}.items():
        assert [entry["port"] for rule in policies[host]["ingress"] for entry in rule["ports"]] == [port]
        assert [entry["port"] for entry in services[host]["ports"]] == [port]
        (rule,) = [rule for rule in policies["scout"]["egress"] if f"'{host}'" in str(rule.get("to"))]
        assert [entry["port"] for entry in rule["ports"]] == [port]
