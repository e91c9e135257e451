"""What the chart writes in front of a gateway, given to a real API server with its definitions and their CEL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.chart import test_edge
from tests.chart.conftest import MODULE, Chart, compile_fleet

from .release import Release, call

Object = dict[str, Any]
ROUTES = [
    {"method": "tools/call", "name": "report", "path": "/agents/back/mcp", "timeout": "600s"},
    {"method": "subscriptions/listen", "timeout": "0s", "backendRefs": [{"name": "streams", "port": 8080}]},
]


def rendered(folder: Path, namespace: str) -> list[Object]:
    """Return every HTTPRoute and resource of agentgateway that there can be, each under a name of its own."""
    (folder / "agents").mkdir()
    for name in ("scout", "other"):
        (folder / "agents" / f"{name}.py").write_text(MODULE.format(name=name))
    (folder / "agents.yaml").write_text(test_edge.FLEET)
    chart = compile_fleet(folder / "agents.yaml", folder)
    values = [
        test_edge.edge(rateLimit=test_edge.LIMITER),
        test_edge.edge(jwks='{"keys": []}', strict=True),
        {**test_edge.ROUTES, "gateway": {"mcpRoutes": ROUTES}},
    ]
    return [item for number, each in enumerate(values) for item in _made(chart, each, namespace, f"front-{number}")]


def _made(chart: Chart, values: Object, namespace: str, prefix: str) -> list[Object]:
    objects = chart.render(values, test_edge.TOKEN, "--namespace", namespace).objects
    made = [item for item in objects if item["kind"].startswith(("Agentgateway", "HTTPRoute"))]
    for item in made:
        item["metadata"]["name"] = f"{prefix}-{item['metadata']['name']}"
    return made


def kinds(release: Release) -> set[str]:
    """Return the kinds that the cluster knows."""
    return {line.split()[-1] for line in release.kubectl("api-resources", "--no-headers").splitlines()}


def created(release: Release, items: list[Object], *, dry: bool = False) -> str:
    """Create objects, and say what the API says; empty where it takes them all."""
    path = release.config.with_name("front.json")
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    options = ["--dry-run=server"] if dry else []
    done = call("kubectl", "-n", release.namespace, "create", "-f", path, *options, check=False)
    return done.stderr if done.returncode else ""
