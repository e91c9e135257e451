"""Five fleets of different shape, and what is switched on for each: what every check of whole manifests looks at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

CHAIN = """\
name: Chain
image: ghcr.io/acme/chain:1
access: {tokens: {first: {file: first.txt}, gateway: {file: gateway.txt}}}
gateway: {agents: [first]}
agents:
  first: {module: agents.scout, port: 8101, depends_on: [second, guarded]}
  second: {module: agents.scout, port: 8102, through: gateway, depends_on: [third]}
  third: {module: agents.scout, port: 8103, publish: false, access: {anonymous: true}}
services:
  guarded: {module: agents.model, port: 8104, through: gateway}
"""
DIAMOND = """\
name: Diamond
agents:
  top: {module: agents.scout, port: 8101, depends_on: [left_one, right]}
  left_one: {module: agents.scout, port: 8102, publish: false, depends_on: {bottom: {}, model: {required: false}}}
  right: {module: agents.scout, port: 8103, publish: false, depends_on: [bottom], secrets: {KEY: {file: key.txt}}}
  bottom: {module: agents.other, port: 8104, publish: false, depends_on: [tools, model]}
services:
  tools: {module: agents.model, port: 8105}
  model: {module: agents.model, port: 8106, provides: openai}
registry: {registration: {store: true, reach: [10.20.0.0/16], tokens: {partner: {file: token.txt}}}}
"""
OPEN = """\
name: Open
public_url: https://{name}.ai.example.com
agents:
  front: {module: agents.scout, port: 8101, instance_scope: request, egress: true, depends_on: [back]}
  back: {module: agents.scout, port: 8102, publish: false}
gateway: {agents: [back]}
"""
DIGEST = "sha256:" + "ab" * 32
ON = {"enabled": True}
EVERYTHING: dict[str, Any] = {
    "images": {
        "agent": {"digest": DIGEST},
        "registry": {"digest": DIGEST},
        "pullPolicy": "Always",
        "pullSecrets": ["pull"],
    },
    "agents": {"front": {"autoscaling": ON}},
    "registry": {"replicas": 2},
    "ingress": {"enabled": True, "tlsSecret": "t"},
    "serviceMonitor": ON,
    "prometheusRule": ON,
    "dashboard": ON,
    "kagent": ON,
    "httpRoute": {"enabled": True, "parentRefs": [{"name": "gateway"}]},
    "defaults": {
        "service": {"type": "LoadBalancer"},
        "affinity": {"nodeAffinity": {}},
        "tolerations": [{"operator": "Exists"}],
        "envFrom": [{"configMapRef": {"name": "more", "optional": True}}],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    },
}


class Fleet(NamedTuple):
    """A compiled chart and how it is rendered."""

    chart: Any
    overlay: dict[str, Any] | None = None
    options: tuple[str, ...] = ()

    def render(self) -> Any:
        return self.chart.render(self.overlay, *self.options)


def fleets(compiled: Callable[..., Any], example: Callable[[str], Any]) -> dict[str, Fleet]:
    """Return each by name."""
    diamond = compiled(DIAMOND, key__txt="x\n", token__txt="x\n")
    given = tuple(f"--set=secrets.{name}.existingSecret=mine" for name in ("key-txt", "token-txt"))
    tokens = tuple(f"--set=secrets.{name}.existingSecret=mine" for name in ("first-txt", "gateway-txt"))
    published = compiled(OPEN)
    return {
        "one": Fleet(example("01-hello")),
        "chain": Fleet(compiled(CHAIN, first__txt="x\n", gateway__txt="x\n"), None, tokens),
        "diamond": Fleet(diamond, None, given),
        "published": Fleet(published, {"ingress": ON, "agents": {"front": {"autoscaling": ON}}}),
        "everything": Fleet(published, EVERYTHING),
    }
