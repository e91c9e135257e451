"""The gateway in the chart: what it runs, who reaches it and whom it reaches, and what of it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from pallas_contract import names
from pallas_gen import verify
from pallas_gen.targets.helm import read_back
from pallas_testing.targets.cluster import policies
from tests.installed import ROOT

from .conftest import helm_says
from .fleet_network import Network

pytestmark = pytest.mark.helm

GUARDED = """\
name: Doors
public_url: https://{name}.ai.example.com
access: {tokens: {phone: {file: phone.txt}, gateway: {file: gateway.txt}}}
gateway: {agents: [front]}
agents:
  front: {module: agents.scout, port: 8101, publish: false, depends_on: [back]}
  back: {module: agents.other, port: 8102, publish: false, access: {anonymous: true}}
"""
TOKENS = ("--set=secrets.phone-txt.content=x", "--set=secrets.gateway-txt.content=y")


@pytest.fixture(scope="module")
def guarded(compiled):
    return compiled(GUARDED)


@pytest.fixture(scope="module")
def made(guarded):
    return guarded.render(None, *TOKENS)


def test_it_runs_in_the_agents_image_with_its_own_command_and_probes(made) -> None:
    main = made.main("gateway")
    assert (main["image"], main["args"]) == (made.main("front")["image"], ["-P", "-m", "pallas_gateway"])
    assert main["readinessProbe"]["httpGet"] == {"path": names.READY_PATH, "port": 8080}
    assert main["livenessProbe"]["httpGet"] == {"path": names.LIVE_PATH, "port": 8080}
    assert made.one("Service", "gateway")["spec"]["ports"] == [
        {"name": "http", "port": 8080, "targetPort": "http", "appProtocol": "http"}
    ]
    env = {variable["name"]: variable.get("value") for variable in main["env"]}
    assert "gateway.space.svc" in env[names.ENV_ALLOWED_HOSTS].split(",")


def test_it_gets_the_fleet_file_and_its_tokens_and_no_code(made) -> None:
    (project,) = (init for init in made.pod("gateway")["initContainers"] if init["name"] == "project")
    assert [mount["name"] for mount in project["volumeMounts"]] == ["project", "config"]
    (secrets,) = (volume for volume in made.pod("gateway")["volumes"] if volume["name"] == "secrets")
    targets = {source["secret"]["items"][0]["path"] for source in secrets["projected"]["sources"]}
    assert targets == {names.token_file("phone"), names.call_token("front")}


def test_it_gets_the_application_that_it_serves(example) -> None:
    tokens = ("audit-key", "desk-txt", "family-txt", "gateway-txt", "parent-txt", "phone-txt", "work-txt")
    named = (*(f"secrets-{name}" for name in tokens), "fastagent-secrets-yaml")
    made = example("05-atlas").render(None, *(f"--set=secrets.{name}.content=x" for name in named))
    (project,) = (init for init in made.pod("gateway")["initContainers"] if init["name"] == "project")
    assert [mount["name"] for mount in project["volumeMounts"]] == ["project", "config", "code"]
    (code,) = (volume for volume in made.pod("gateway")["volumes"] if volume["name"] == "code")
    delivered = {item["key"] for item in code["configMap"]["items"]}
    files = (ROOT / "examples" / "05-atlas" / "dashboard").iterdir()
    assert delivered == {".paths.json", *(f"dashboard.{path.name}" for path in files)}


def test_agents_behind_it_are_reached_by_it_and_by_nobody_outside(guarded) -> None:
    values = {"ingress": {"enabled": True}, "defaults": {"service": {"type": "LoadBalancer"}}}
    network = Network(guarded.render(values, *TOKENS))
    callers = {name: {source for source, target in network.edges() if target == name} for name in ("front", "back")}
    assert callers["front"] == {"gateway", "registry", "pallas-test"}
    assert callers["back"] == {"front", "registry", "pallas-test"}
    called = {target for source, target in network.edges() if source == "gateway" and target in network.members}
    assert called == {"front"}
    assert "elsewhere" in {source for source, target in network.edges() if target == "gateway"}


def test_one_before_agents_that_register_reaches_the_registry_and_where_they_may_be(compiled) -> None:
    registration = "registration: {tokens: {c: {file: c.txt, agents: [cleaner]}}, reach: [10.20.0.0/16]}"
    text = GUARDED.replace("[front]}", "[front], tenants: {acme: {callers: [phone]}}, registered: [cleaner]}")
    rendered = compiled(f"{text}registry: {{{registration}}}\n").render(None, *TOKENS, "--set=secrets.c-txt.content=z")
    edges = Network(rendered).edges()
    assert {target for source, target in edges if source == "gateway"} == {"front", "registry", "partner"}
    assert "gateway" in {source for source, target in edges if target == "registry"}
    egress = rendered.one("NetworkPolicy", "gateway")["spec"]["egress"]
    assert egress[-1] == {"to": [{"ipBlock": {"cidr": "10.20.0.0/16"}}]}


def test_a_test_can_part_it_from_an_agent(made) -> None:
    policy = made.one("NetworkPolicy", "front")
    (rule,) = policy["spec"]["ingress"]
    gone = [
        peer for peer in rule["from"] if peer not in policies.without(policy, "gateway")["spec"]["ingress"][0]["from"]
    ]
    assert [peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for peer in gone] == ["gateway"]


def test_its_spans_have_a_way_out(compiled, made) -> None:
    traced = compiled(f"{GUARDED}telemetry: {{otlp_endpoint: 'http://otel:4318'}}\n").render(None, *TOKENS)
    out = [Network(rendered).edges(4318) for rendered in (traced, made)]
    assert [("gateway", "internet") in edges for edges in out] == [True, False]


def test_no_agent_calls_it_back(made) -> None:
    callers = {source for source, target in Network(made).edges() if target == "gateway"}
    assert callers == {"registry", "pallas-test"}


def test_the_chart_is_the_plan(guarded, made) -> None:
    observed = read_back.workloads(made.objects, guarded.plan)
    assert list(verify.differences(guarded.plan, observed, "chart")) == []
    made.one("NetworkPolicy", "gateway")["spec"]["ingress"][0]["from"].clear()
    observed = read_back.workloads(made.objects, guarded.plan)
    changed = {problem.where.field for problem in verify.differences(guarded.plan, observed, "chart")}
    assert changed == {"gateway.callers", "gateway.peers", "registry.peers"}


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        ({"gateway": {"replica": 1}}, "replica"),
        ({"gateway": {"port": "24190"}}, "/gateway/port"),
        ({"gateway": {"foreign": True}}, "foreign"),
        ({"gateway": None}, "missing property 'gateway'"),
    ],
)
def test_what_is_wrong_is_named(guarded, overlay: dict[str, Any], message: str) -> None:
    assert message in guarded.refused(overlay)


def test_one_that_counts_for_tenants_is_alone(guarded, compiled) -> None:
    assert guarded.render({"gateway": {"replicas": 2}}, *TOKENS).one("Deployment", "gateway")["spec"]["replicas"] == 2
    counting = compiled(GUARDED.replace("[front]}", "[front], tenants: {acme: {callers: [phone]}}}"))
    assert "/gateway/replicas" in counting.refused({"gateway": {"replicas": 2}})
    done = counting.run({"defaults": {"autoscaling": {"enabled": True}}, "agents": {}}, *TOKENS)
    assert "remembers its callers, so there is one of it" in done.stderr


def test_one_that_records_has_a_volume_and_is_alone(compiled) -> None:
    text = GUARDED.replace("[front]}", "[front], audit: {key: {file: audit.txt}}}")
    recording = compiled(text.replace("publish: false", "publish: false, instance_scope: request"))
    tokens = (*TOKENS, "--set=secrets.audit-txt.content=z")
    made = recording.render(None, *tokens)
    (mount,) = (mount for mount in made.main("gateway")["volumeMounts"] if mount["name"] == "state")
    assert mount["mountPath"] == names.STATE_DIR
    env = {variable["name"]: variable.get("value") for variable in made.main("gateway")["env"]}
    assert env[names.ENV_GATEWAY_STATE] == names.STATE_DIR
    (state,) = (volume for volume in made.pod("gateway")["volumes"] if volume["name"] == "state")
    assert state["persistentVolumeClaim"]["claimName"] == "gateway-state"
    assert made.one("PersistentVolumeClaim", "gateway-state")
    assert made.one("Deployment", "gateway")["spec"]["strategy"] == {"type": "Recreate"}
    assert "/gateway/replicas" in recording.refused({"gateway": {"replicas": 2}})
    done = recording.run({"defaults": {"autoscaling": {"enabled": True}}, "agents": {}}, *tokens)
    assert "add `store`, a PostgreSQL that several share, to `gateway` in agents.yaml" in done.stderr


def test_replicas_with_stores_have_no_volume_and_are_updated_one_by_one(compiled) -> None:
    keys = "replicas: 3, audit: {key: {file: audit.txt}}, tenants: {acme: {callers: [phone]}}, tasks: {durable: true}"
    stores = "store: {url: {file: postgres.txt}}, counters: {url: {file: valkey.txt}}"
    several = compiled(GUARDED.replace("[front]}", f"[front], {keys}, {stores}}}"))
    tokens = (*TOKENS, *(f"--set=secrets.{name}-txt.content=z" for name in ("audit", "postgres", "valkey")))
    made = several.render(None, *tokens)
    spec = made.one("Deployment", "gateway")["spec"]
    assert (spec["replicas"], spec["strategy"]["type"]) == (3, "RollingUpdate")
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert "state" not in {volume["name"] for volume in made.pod("gateway")["volumes"]}
    assert made.one("PodDisruptionBudget", "gateway")["spec"]["maxUnavailable"] == 1
    assert not [item for item in made.objects if item["kind"] == "PersistentVolumeClaim"]
    assert ("gateway", "internet") in Network(made).edges(443)
    observed = read_back.workloads(made.objects, several.plan)
    assert list(verify.differences(several.plan, observed, "chart")) == []
    scaled = several.render({"gateway": {"autoscaling": {"enabled": True}}}, *tokens)
    assert scaled.one("HorizontalPodAutoscaler", "gateway")


def test_one_that_the_fleet_file_does_not_have_is_refused(graph) -> None:
    refused = graph.refused({"gateway": {"replicas": 2}})
    assert "gateway is in your values alone: add it to agents.yaml and run `pallas-gen helm`" in refused


def test_it_is_published_like_an_agent(guarded, compiled) -> None:
    ingress = guarded.render({"ingress": {"enabled": True}}, *TOKENS).one("Ingress", "pallas")
    assert [rule["host"] for rule in ingress["spec"]["rules"]] == [
        "gateway.ai.example.com",
        "registry.ai.example.com",
    ]
    routes = {"httpRoute": {"enabled": True, "parentRefs": [{"name": "edge"}]}}
    assert set(guarded.render(routes, *TOKENS).of("HTTPRoute")) == {"gateway", "registry"}
    nowhere = compiled(GUARDED.replace("public_url: https://{name}.ai.example.com\n", ""))
    # of what is published without an address, any one may be named
    done = nowhere.run({"ingress": {"enabled": True}, "registry": {"publish": False}}, *TOKENS)
    assert "publishes gateway at an address that is not served" in done.stderr


def test_prometheus_scrapes_it(guarded) -> None:
    made = guarded.render({"serviceMonitor": {"enabled": True}}, *TOKENS)
    (component,) = made.one("ServiceMonitor", "pallas")["spec"]["selector"]["matchExpressions"]
    assert made.one("Service", "gateway")["metadata"]["labels"][component["key"]] in component["values"]
    assert ("prometheus", "gateway") in Network(made).edges()


def test_what_it_reads_of_the_file_replaces_its_pod_and_nothing_else_does(compiled, guarded) -> None:
    def fingerprint(text: str) -> str:
        return str(compiled(text).plan.workload("gateway").fingerprint)

    same = guarded.plan.workload("gateway").fingerprint
    assert fingerprint(GUARDED.replace("8102", "8103")) == same
    assert fingerprint(GUARDED.replace("[front]}", "[front], port: 24191}")) != same
    own = GUARDED.replace("depends_on: [back]", "access: {tokens: {gateway: {file: other.txt}}}, depends_on: [back]")
    assert fingerprint(own) != same
    assert guarded.plan.workload("gateway").fingerprint


def test_how_it_is_reached_is_said_at_the_install(guarded) -> None:
    done = helm_says("install", [guarded.folder / "values.yaml"], "--dry-run=client", *TOKENS)
    assert "port-forward service/gateway 24190:8080    # http://localhost:24190/agents/NAME/mcp" in done.stdout
    assert "NAME: front\n" in done.stdout
    served = helm_says(
        "install", [guarded.folder / "values.yaml"], "--dry-run=client", "--set=gateway.calls={front,tools}", *TOKENS
    )
    assert "NAME: front\n" in served.stdout  # what it calls besides has another path
    published = ("--set=ingress.enabled=true", *TOKENS)
    done = helm_says("install", [guarded.folder / "values.yaml"], "--dry-run=client", *published)
    assert "  https://gateway.ai.example.com/agents/NAME/mcp    # front\n" in done.stdout


def test_the_charts_own_test_asks_whether_it_takes_requests(made) -> None:
    (container,) = made.one("Pod", "pallas-test")["spec"]["containers"]
    assert container["args"][-1] == "http://gateway:8080/readyz"
