"""The JSON schemas of agents.yaml and of the chart's values; generated from the models and committed."""

from __future__ import annotations

import json
import re
from typing import Any

from pallas_contract.fleet.model import Fleet
from pallas_gen.targets.helm.values import Values

_REFERENCE = re.compile(r'"#/\$defs/(\w+)"')


def agents_schema() -> str:
    """Return JSON text, sorted and indented, with a final newline."""
    document = Fleet.model_json_schema(mode="validation")
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **document, "title": "agents.yaml"}
    return _text(document)


def values_schema() -> str:
    """Return the same for the chart's values: closed at every level, nothing taken away by null, and in draft-07."""
    # every Helm 3 and 4 reads this one
    document = _closed(_complete(Values.model_json_schema(mode="validation", by_alias=True)))
    return _text({"$schema": "http://json-schema.org/draft-07/schema#", **document, "title": "values.yaml"})


def _closed(node: Any) -> Any:
    """Return a schema in which each map whose keys have a pattern refuses other keys."""
    if isinstance(node, dict):
        # pydantic leaves a map with patterned keys open
        extra = {"additionalProperties": False} if "patternProperties" in node else {}
        return {key: _closed(value) for key, value in node.items()} | extra
    return [_closed(entry) for entry in node] if isinstance(node, list) else node


def _complete(document: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that wants every key which has a default other than empty: null in a values file takes it away.

    Not where a part is enough, as in `agents.<name>`, which is read over `defaults`.
    """
    models: dict[str, Any] = document["$defs"]
    partial: set[str] = set()
    pending = {"Agent", "Companion", "Gateway", "Registry", "Secret"}
    while pending:
        partial |= pending
        pending = {name for model in partial for name in _REFERENCE.findall(json.dumps(models[model]))} - partial
    for model in (document, *(models[name] for name in models.keys() - partial)):
        # a block's own default stands in its model
        keys = [key for key, value in model["properties"].items() if "$ref" in value or value.get("default")]
        if keys:
            model["required"] = sorted(keys)
    return document


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
