"""Cut what the tests of the chart need out of published CustomResourceDefinitions: shapes alone, without their prose.

    tools/edge_schemas.py VERSION=CRD.yaml...

Of each kind it keeps the parts of `KEPT` and writes tests/chart/schemas/KIND.json; the README there says where the
definitions come from.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

TARGET = Path(__file__).parents[1] / "tests" / "chart" / "schemas"
KEPT: dict[str, tuple[str, ...]] = {
    "AgentgatewayBackend": ("mcp", "static", "policies.tls"),
    "AgentgatewayPolicy": (
        "targetRefs",
        "traffic.jwtAuthentication",
        "traffic.rateLimit.global",
        "backend.mcp.authorization",
    ),
    "HTTPRoute": ("hostnames", "parentRefs", "rules"),
}
CUT = {"mcp.targets.static.policies": ("auth",), "mcp.targets.static.policies.auth": ("passthrough",)}
"""Of large parts that are kept, the properties that are."""
_PROSE = ("description", "x-kubernetes-validations", "x-kubernetes-map-type", "x-kubernetes-list-type", "format")


def shape(schema: Any, path: str = "") -> Any:
    """Return a schema without prose and without what `CUT` leaves out."""
    if isinstance(schema, list):
        return [shape(item, path) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: value for key, value in schema.items() if key not in _PROSE and not key.startswith("x-kubernetes-list")
    }
    properties = kept.pop("properties", None)
    made = {key: shape(value, path) if key != "enum" else value for key, value in kept.items()}
    if properties is not None:
        chosen = CUT.get(path.strip("."), tuple(properties))
        made["properties"] = {name: shape(properties[name], f"{path}.{name}") for name in chosen if name in properties}
    return made


def part(schema: dict[str, Any], parts: tuple[str, ...], path: str = "") -> dict[str, Any]:
    """Return the object schema with those properties alone that `parts` lead to."""
    properties = {}
    for name in dict.fromkeys(entry.partition(".")[0] for entry in parts):
        below = tuple(entry.partition(".")[2] for entry in parts if entry.partition(".")[0] == name)
        inner = schema["properties"][name]
        way = f"{path}.{name}"
        properties[name] = shape(inner, way) if "" in below else part(inner, below, way)
    required = [name for name in schema.get("required", ()) if name in properties]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def main(definitions: list[str]) -> None:
    for given in definitions:
        version, _, path = given.partition("=")
        crd = yaml.safe_load(Path(path).read_text("utf-8"))
        names, group = crd["spec"]["names"], crd["spec"]["group"]
        (served, *_) = [entry for entry in crd["spec"]["versions"] if entry["served"] and entry["storage"]]
        spec = part(served["schema"]["openAPIV3Schema"]["properties"]["spec"], KEPT[names["kind"]])
        made = {"apiVersion": f"{group}/{served['name']}", "release": version, "spec": spec}
        text = json.dumps(made, indent=1, sort_keys=True)
        (TARGET / f"{names['kind']}.json").write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
