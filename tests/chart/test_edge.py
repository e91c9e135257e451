"""What the chart writes in front of the gateway, by the published definitions of Gateway API and agentgateway."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from jsonschema.validators import validator_for

from tests.documentation import blocks

pytestmark = pytest.mark.helm

FLEET = """\
name: Doors
public_url: https://{name}.ai.example.com/fleet
gateway:
  agents: [front, back]
  tenants: {acme: {subjects: [anna, bo], requests: 20/minute}}
  access: {jwt: {issuer: "https://id.example.com", jwks_url: "https://id.example.com:8443/keys", audience: doors}}
  grants:
    - {subject: anna, agent: front, tools: ["*"]}
    - {tenant: acme, agent: back, tools: [send_message, "read_*"]}
access: {tokens: {gateway: {file: gateway.txt}}}
agents:
  front: {module: agents.scout, port: 8101, publish: false}
  back: {module: agents.other, port: 8102, publish: false}
"""
TOKEN = "--set=secrets.gateway-txt.content=y"
PARENT = {"name": "agentgateway", "namespace": "edge"}
ROUTES = {"httpRoute": {"enabled": True, "parentRefs": [PARENT]}}
LIMITER = {"backendRef": {"group": "", "kind": "Service", "name": "ratelimit", "namespace": "edge", "port": 8081}}


def edge(**values: Any) -> dict[str, Any]:
    return ROUTES | {"gateway": {"edge": {"enabled": True} | values}}


@pytest.fixture(scope="module")
def chart(compiled):
    return compiled(FLEET)


@pytest.fixture(scope="module")
def made(chart):
    return chart.render(edge(rateLimit=LIMITER), TOKEN)


def closed(schema: Any) -> Any:
    """The schema as an API server holds to it with strict validation: no field that it does not name."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        found.setdefault("additionalProperties", False)
    return found


@cache
def definition(kind: str) -> tuple[str, Any]:
    """The version of a kind, and what validates a `spec` of it; to check the definition itself takes 0.1 s."""
    published = json.loads((Path(__file__).with_name("schemas") / f"{kind}.json").read_text())
    schema = closed(published["spec"])
    validator = validator_for(schema)
    validator.check_schema(schema)
    return published["apiVersion"], validator(schema)


def check(item: dict[str, Any]) -> None:
    """An object holds to what was published of its kind.

    Raises:
        jsonschema.ValidationError: it does not.
    """
    version, validator = definition(item["kind"])
    assert item["apiVersion"] == version
    validator.validate(item["spec"])


def test_each_agent_behind_the_gateway_has_a_route_a_backend_and_a_policy(made) -> None:
    names = {"pallas-edge-back", "pallas-edge-front"}
    assert set(made.of("AgentgatewayPolicy")) == names
    assert set(made.of("AgentgatewayBackend")) == names | {"pallas-edge-issuer"}
    assert set(made.of("HTTPRoute")) == names | {"gateway", "registry"}
    (rule,) = made.one("HTTPRoute", "pallas-edge-back")["spec"]["rules"]
    assert rule["matches"][0]["path"]["value"] == "/fleet/agents/back/mcp"
    assert rule["backendRefs"][0]["name"] == "pallas-edge-back"
    (target,) = made.one("AgentgatewayBackend", "pallas-edge-back")["spec"]["mcp"]["targets"]
    static = target["static"]
    assert (static["host"], static["path"]) == ("gateway.space.svc.cluster.local", "/agents/back/mcp")
    env = {variable["name"]: variable.get("value") for variable in made.main("gateway")["env"]}
    assert f"{static['host']}:*" in env["PALLAS_ALLOWED_HOSTS"].split(",")
    (ref,) = made.one("AgentgatewayPolicy", "pallas-edge-back")["spec"]["targetRefs"]
    assert (ref["kind"], ref["name"]) == ("HTTPRoute", "pallas-edge-back")


def test_they_hold_to_the_published_definitions(made, chart) -> None:
    inline = chart.render(edge(jwks='{"keys": []}', strict=True), TOKEN)
    checked = [
        item for item in [*made.objects, *inline.objects] if item["kind"].startswith(("Agentgateway", "HTTPRoute"))
    ]
    for item in checked:
        check(item)
    assert len(checked) == 17


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        ("HTTPRoute", ("rules", 0, "matches", 0, "header")),
        ("AgentgatewayBackend", ("mcp", "sessions")),
        ("AgentgatewayPolicy", ("traffic", "jwtAuthentication", "issuer")),
    ],
)
def test_the_check_sees_a_misspelt_field(made, kind: str, way: tuple[Any, ...]) -> None:
    item = json.loads(json.dumps(made.one(kind, "pallas-edge-back")))
    inner = item["spec"]
    for step in way[:-1]:
        inner = inner[step]
    inner[way[-1]] = "x"
    with pytest.raises(jsonschema.ValidationError):
        check(item)


def test_the_policy_asks_what_the_gateway_asks(made) -> None:
    spec = made.one("AgentgatewayPolicy", "pallas-edge-back")["spec"]
    jwt = spec["traffic"]["jwtAuthentication"]
    (provider,) = jwt["providers"]
    assert (jwt["mode"], provider["issuer"], provider["audiences"]) == (
        "Permissive",
        "https://id.example.com",
        ["doors"],
    )
    remote = provider["jwks"]["remote"]
    assert (remote["jwksPath"], remote["backendRef"]["name"]) == ("keys", "pallas-edge-issuer")
    issuer = made.one("AgentgatewayBackend", "pallas-edge-issuer")["spec"]
    assert issuer["static"] == {"host": "id.example.com", "port": 8443}
    assert issuer["policies"] == {"tls": {"sni": "id.example.com"}}
    (allow,) = spec["backend"]["mcp"]["authorization"]["policy"]["matchExpressions"]
    assert 'jwt.sub in ["anna", "bo"]' in allow
    assert 'mcp.tool.name in ["back", "send_message"]' in allow


def test_the_rate_limit_service_is_told_what_the_gateway_allows(made, chart) -> None:
    limit = made.one("AgentgatewayPolicy", "pallas-edge-back")["spec"]["traffic"]["rateLimit"]["global"]
    (descriptor,) = limit["descriptors"]
    assert descriptor["entries"] == [{"name": "tenant", "expression": 'jwt.sub in ["anna", "bo"] ? "acme" : ""'}]
    assert (limit["domain"], limit["failureMode"]) == ("Doors", "FailOpen")
    told = yaml.safe_load(made.one("ConfigMap", "pallas-edge-limits")["data"]["limits.yaml"])
    rate = {"unit": "minute", "requests_per_unit": 20}
    assert told == {"domain": "Doors", "descriptors": [{"key": "tenant", "value": "acme", "rate_limit": rate}]}
    without = chart.render(edge(), TOKEN)
    assert "rateLimit" not in without.one("AgentgatewayPolicy", "pallas-edge-back")["spec"]["traffic"]
    assert "pallas-edge-limits" not in without.of("ConfigMap")


def test_without_an_issuer_there_is_nothing_to_ask(compiled) -> None:
    made = compiled(
        "name: x\n"
        "public_url: https://{name}.example.com\n"
        "gateway: {agents: [scout]}\n"
        "agents: {scout: {module: agents.scout, port: 8101}}\n"
    ).render(edge())
    assert set(made.of("AgentgatewayBackend")) == {"pallas-edge-scout"}
    assert made.of("AgentgatewayPolicy") == {}


@pytest.mark.parametrize(
    ("old", "new", "values", "message"),
    [
        ("", "", {"gateway": {"edge": {"enabled": True}}}, "needs httpRoute.enabled"),
        ("gateway:\n", "gateway:\n  publish: false\n", edge(), "a gateway that agents.yaml publishes"),
        ('jwks_url: "https://id.example.com:8443/keys"', "jwks_file: keys.json", edge(), "gateway.edge.jwks is empty"),
        ("8443/keys", "8443/keys?tenant=1", edge(), "takes no jwks_url with a query"),
        (
            "access: {tokens: {",
            "access: {tokens: {phone: {file: p.txt}, ",
            edge(strict=True),
            "callers with a static token",
        ),
        ("", "", {"gateway": {"mcpRoutes": [{}]}}, "gateway.mcpRoutes are rules of an HTTPRoute"),
        ("", "", ROUTES | {"gateway": {"mcpRoutes": [{"methods": "x"}]}}, "methods"),
        ("", "", ROUTES | {"gateway": {"mcpRoutes": [{}] * 16}}, "/gateway/mcpRoutes"),
    ],
)
def test_what_cannot_be_is_refused(compiled, old: str, new: str, values: dict[str, Any], message: str) -> None:
    secrets = {name: {"existingSecret": "x"} for name in ("gateway-txt", "keys-json", "p-txt")}
    chart = compiled(FLEET.replace(old, new, 1) if old else FLEET)
    named = yaml.safe_load((chart.folder / "values.yaml").read_text())["secrets"]
    assert message in chart.refused(values | {"secrets": {name: secrets[name] for name in named}})


def test_requests_are_led_by_what_their_headers_say(chart) -> None:
    slow = {"method": "tools/call", "name": "report", "path": "/agents/back/mcp", "timeout": "600s"}
    there = {"method": "subscriptions/listen", "timeout": "0s", "backendRefs": [{"name": "streams", "port": 8080}]}
    route = chart.render(ROUTES | {"gateway": {"mcpRoutes": [slow, there]}}, TOKEN).one("HTTPRoute", "gateway")
    check(route)
    first, second, last = route["spec"]["rules"]
    (match,) = first["matches"]
    assert match["path"]["value"] == "/fleet/agents/back/mcp"
    assert [(header["name"], header["value"]) for header in match["headers"]] == [
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "report"),
    ]
    assert first["filters"][0]["urlRewrite"]["path"]["replacePrefixMatch"] == "/agents/back/mcp"
    assert (first["timeouts"], first["backendRefs"][0]["name"]) == ({"request": "600s"}, "gateway")
    assert (second["timeouts"], second["backendRefs"][0]["name"]) == ({"request": "0s"}, "streams")
    assert [header["name"] for header in second["matches"][0]["headers"]] == ["Mcp-Method"]
    assert "headers" not in last["matches"][0]
    assert last == chart.render(ROUTES, TOKEN).one("HTTPRoute", "gateway")["spec"]["rules"][0]


def test_the_rules_of_the_page_are_rules(chart) -> None:
    (block,) = (block for block in blocks.BLOCKS if block.scenario == "mcp-routes")
    route = chart.render(ROUTES | yaml.safe_load(block.text), TOKEN).one("HTTPRoute", "gateway")
    check(route)
    assert len(route["spec"]["rules"]) == 4
