"""The reference of agents.yaml, from its JSON schema: a section for each part, a row for each key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

type Schema = Mapping[str, Any]

_FIRST = ("agents", "services", "registry", "gateway")
_UNSAID = (None, "", [], {})


def page(schema: Schema) -> str:
    """Return the page as Markdown."""
    parts = [
        "# agents.yaml",
        "Each key of the fleet file, made from the schema that `pallas-gen schema` prints and editors complete by. "
        "A key that is not here is refused; [problems](../docs/problems.md) explains each refusal.",
        "## The file",
        *_part(schema),
    ]
    for name, definition in sorted(schema["$defs"].items()):
        if "properties" in definition:
            parts += [f"## {name}", *_part(definition)]
    return "\n\n".join(parts) + "\n"


def _part(definition: Schema) -> Iterator[str]:
    if text := definition.get("description"):
        yield _line(text)
    required = definition.get("required", ())
    rows = [
        f"| `{key}` | {_type(value)} | {_default(value, required=key in required)} | {_line(value['description'])} |"
        for key, value in sorted(definition["properties"].items(), key=lambda pair: _rank(pair[0], required))
    ]
    yield "\n".join(["| key | type | default | meaning |", "|---|---|---|---|", *rows])


def _rank(key: str, required: Any) -> tuple[bool, int, str]:
    place = _FIRST.index(key) if key in _FIRST else len(_FIRST)
    return key not in required, place, key


def _type(value: Schema) -> str:
    """Return the type as a person writes it: `string`, list of string, map of [Agent](#agent)."""
    match value:
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            text = f"[{name}](#{name.lower()})"
        case {"anyOf": options}:
            text = " or ".join(dict.fromkeys(_type(option) for option in options if option.get("type") != "null"))
        case {"enum": words}:
            text = " or ".join(f"`{word}`" for word in words)
        case {"const": word}:
            text = f"`{json.dumps(word)}`"
        case {"type": "array"}:
            text = f"list of {_type(value.get('items', {}))}"
        case {"type": "object"}:
            inner = value.get("additionalProperties") or next(iter(value.get("patternProperties", {}).values()), None)
            text = f"map of {_type(inner)}" if isinstance(inner, Mapping) else "map"
        case {"type": str(name)}:
            text = name + _range(value)
        case _:
            text = "anything"
    return text


def _range(value: Schema) -> str:
    least = value.get("minimum", value.get("exclusiveMinimum"))
    most = value.get("maximum", value.get("exclusiveMaximum"))
    if least is None and most is None:
        return ""
    if most is None:
        return f", {'more than' if 'exclusiveMinimum' in value else 'at least'} {least:g}"
    return f", {least:g} to {most:g}" if least is not None else f", at most {most:g}"


def _default(value: Schema, *, required: bool) -> str:
    if required:
        return "**required**"
    default = value.get("default")
    if default in _UNSAID or isinstance(default, Mapping):
        return ""
    text = default if isinstance(default, str) else json.dumps(default)
    return f"`{text}`"


def _line(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()
