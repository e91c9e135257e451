"""`pallas-gen explain network`: every way that the fleet file lets through, with its reason, and nothing else."""

from __future__ import annotations

import pytest

from pallas_gen import explain

FLEET = """\
public_url: https://{name}.example.com
name: x
agents:
  top: {module: agents.scout, port: 8101, depends_on: {left_one: {}, tools: {required: false}}}
  left_one: {module: agents.other, port: 8102, publish: false, egress: true}
services:
  tools: {module: agents.model, port: 8103, calls: [top]}
"""
BACK = "in compose it may ask the registry, on whose network it is; on Kubernetes not"
TABLE = f"""\
left-one   ->  registry   {BACK}
left-one   ->  the world  `egress: true`
registry   ->  left-one   the registry probes every agent
registry   ->  tools      the registry probes it as its `health` says
registry   ->  top        the registry probes every agent
the world  ->  registry   published on port 24200, behind https://registry.example.com
the world  ->  top        published on port 8101, behind https://top.example.com
tools      ->  registry   {BACK}
tools      ->  top        calls
top        ->  left-one   depends_on
top        ->  registry   {BACK}
top        ->  tools      depends_on, not required

"""


def test_every_way_is_told_with_its_reason(plan) -> None:
    assert explain.explain(plan(FLEET)) == TABLE + "everything else is refused"


def test_flat_networks_are_told_of(plan) -> None:
    said = explain.explain(plan("networks: flat\n" + FLEET))
    assert said.endswith("\n\nnetworks are flat: everything else is let through, too")


THROUGH = """\
name: x
access: {tokens: {top: {file: top.txt}, gateway: {file: own.txt}}}
gateway: {agents: [top], publish: false}
agents:
  top: {module: agents.scout, port: 8101, publish: false, depends_on: {below: {required: false}, tools: {}}}
  below: {module: agents.other, port: 8102, through: gateway}
services:
  tools: {module: agents.model, port: 8103, through: gateway}
"""


def test_a_call_through_the_gateway_is_told_as_one(plan) -> None:
    lines = [" ".join(line.split()) for line in explain.explain(plan(THROUGH)).splitlines()]
    assert [line for line in lines if "registry" not in line] == [
        "gateway -> below through: gateway",
        "gateway -> tools through: gateway",
        "gateway -> top gateway.agents",
        "top -> gateway depends_on (below, tools, through the gateway)",
        "",
        "everything else is refused",
    ]
    soft = THROUGH.replace("tools: {}}", "tools: {required: false}}")
    assert "depends_on, not required (below, tools, through the gateway)" in explain.explain(plan(soft))


REGISTERED = """\
name: x
registry:
  publish: false
  registration: {tokens: {cleaner: {file: top.txt, agents: [data_cleaner]}}, reach: [10.20.0.0/16]}
gateway: {agents: [top], publish: false, tenants: {desk: {}}, registered: [data_cleaner]}
agents:
  top: {module: agents.scout, port: 8101, publish: false}
"""


def test_agents_outside_of_the_file_are_told_of(plan) -> None:
    lines = [" ".join(line.split()) for line in explain.explain(plan(REGISTERED)).splitlines()]
    assert [line for line in lines if line.startswith("gateway")] == [
        "gateway -> registry gateway.registered: where agents outside of the file are",
        "gateway -> the world reach of registered agents: 10.20.0.0/16",
        "gateway -> top gateway.agents",
    ]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("telemetry: {otlp_endpoint: 'http://otel:4318'}\n", ", in compose on the network `telemetry`"),
        ("networks: flat\ntelemetry: {otlp_endpoint: 'http://otel:4318'}\n", ""),
        ("telemetry: {otlp_endpoint: 'http://otel.example.com:4318'}\n", ""),
    ],
)
def test_the_way_of_the_traces_is_told(plan, more: str, why: str) -> None:
    lines = [line.split(maxsplit=3) for line in explain.explain(plan(more + FLEET)).splitlines() if "otel" in line]
    at = "otel.example.com:4318" if "example" in more else "otel:4318"
    told = f"telemetry: the collector of traces{why}"
    assert lines == [[name, "->", at, told] for name in ("left-one", "top")]
