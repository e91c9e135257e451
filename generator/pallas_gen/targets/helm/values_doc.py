"""The chart's values.yaml with comments, and the reference in its README: both from the model, nothing typed twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pallas_gen.targets.helm import render as helm
from pallas_gen.targets.helm.edge.values import Gateway
from pallas_gen.targets.helm.values import Secret, Values
from pallas_gen.targets.helm.values_workload import Agent, Companion, HealthPaths, Pod, Registry

_HEAD = (
    "# What the chart takes, and its defaults; written by `make schema`. The part that is a fleet: `pallas-gen helm`.\n"
)


def commented() -> str:
    """Return values.yaml of the static chart."""
    return _HEAD + "\n".join(_block(Values, helm.defaults(), "")) + "\n"


def reference() -> str:
    """Return a table of every value, for the chart's README."""
    lines = ["| value | default | meaning |", "|---|---|---|"]
    lines += list(_rows(Values, helm.defaults(), ""))
    for title, prefix, model in (
        ("One agent", "agents.<name>.", Agent),
        ("One service", "services.<name>.", Companion),
        ("The registry", "registry.", Registry),
        ("The gateway", "gateway.", Gateway),
        ("One secret", "secrets.<name>.", Secret),
    ):
        lines += ["", f"{title}; everything under `defaults` can be said here as well:", ""]
        lines += ["| value | default | meaning |", "|---|---|---|", *_rows(model, _defaults(model), prefix)]
    return "\n".join(lines) + "\n"


def _block(model: type[BaseModel], values: dict[str, Any], indent: str) -> Iterator[str]:
    for key, info, value in _fields(model, values):
        yield f"{indent}# {_text(info)}"
        inner = _model(info)
        if inner and value and isinstance(value, dict):
            yield f"{indent}{key}:"
            yield from _block(inner, value, f"{indent}  ")
        else:
            yield f"{indent}{key}: {json.dumps(value, ensure_ascii=False)}"


def _rows(model: type[BaseModel], values: dict[str, Any], prefix: str) -> Iterator[str]:
    for key, info, value in _fields(model, values):
        inner = _model(info)
        if inner and value and isinstance(value, dict):
            yield from _rows(inner, value, f"{prefix}{key}.")
        else:
            yield f"| `{prefix}{key}` | `{json.dumps(value)}` | {_text(info)} |"


def _fields(model: type[BaseModel], values: dict[str, Any]) -> Iterator[tuple[str, FieldInfo, Any]]:
    of_defaults = Pod.model_fields if issubclass(model, Agent | Companion | Gateway | Registry) else {}
    for name, info in model.model_fields.items():
        if name not in of_defaults:
            key = info.alias or name
            yield key, info, values[key]


def _defaults(model: type[BaseModel]) -> dict[str, Any]:
    return model().model_dump(mode="json", by_alias=True)


def _model(info: FieldInfo) -> type[BaseModel] | None:
    """Return the block a field holds, if it holds one."""
    kinds = [info.annotation, *get_args(info.annotation)]
    models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return models[0] if models and models[0] is not HealthPaths else None


def _text(info: FieldInfo) -> str:
    return " ".join((info.description or "").split()).replace("|", "\\|")
