"""What an agent of a user is made of, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

from percolate.problems import Problem

SCHEME = "agentlet://"
TOOLS = ("search_knowledge_base", "lookup_entity")
"""What the runner has of the memory, and so what an agent can have."""
LARGEST_SCHEMA = 16 << 10
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords whose keys are names, and no keywords."""
_VALUES = ("const", "enum", "default", "examples")
"""Keywords of values, in which nothing is a keyword."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One version of an agent. `description` is its system prompt."""

    uri: str
    description: str
    output_schema: Mapping[str, Any]
    tools: Sequence[str] = ()
    version: int = 1

    def document(self) -> dict[str, Any]:
        """Return its agent-let schema: that of its answers, and what it is."""
        return {
            **self.output_schema,
            "fully_qualified_name": self.uri.removeprefix(SCHEME),
            "uri": self.uri,
            "version": f"{self.version}.0.0",
            "description": self.description,
            "tools": list(self.tools),
        }


def uri(user: str, name: str) -> str:
    """Return the URI of a user's agent.

    Raises:
        Problem: user or name can be in none.
    """
    if not _NAME.fullmatch(name):
        raise Problem("agent_name: write a-z, 0-9 and hyphens, at most 64 of them, as in invoice-reader")
    if not _USER.fullmatch(user):
        raise Problem("user_id: write letters, digits, `.`, `_`, `@` and `-`, at most 128 of them")
    return f"{SCHEME}user/{user}/{name}"


def check(output_schema: Mapping[str, Any], tools: Sequence[str]) -> None:
    """Refuse what cannot be enforced, and tools that the runner does not have.

    Raises:
        Problem: with everything that is wrong.
    """
    if len(json.dumps(output_schema)) > LARGEST_SCHEMA:
        raise Problem(f"output_schema: has more than {LARGEST_SCHEMA >> 10} KiB")
    try:
        Draft202012Validator.check_schema(dict(output_schema))
    except SchemaError as error:
        raise Problem(f"output_schema: is no JSON Schema: {error.message[:200]}") from None
    except RecursionError:
        raise Problem("output_schema: is too deep") from None
    problems = [] if output_schema.get("type") == "object" else ["output_schema: needs `type: object`"]
    problems += sorted(set(_problems(output_schema)))
    problems += [f"tools: there is no `{tool[:80]}`, only {', '.join(TOOLS)}" for tool in tools if tool not in TOOLS]
    if problems:
        raise Problem("; ".join(problems))


def _problems(schema: Any) -> Iterator[str]:
    for key, value in schema.items() if isinstance(schema, Mapping) else ():
        if key in ("$ref", "$dynamicRef") and not str(value).startswith("#/"):
            yield f"output_schema: `{key}` may lead to `#/...` only: nothing is fetched"
        if key in _BY_NAME and isinstance(value, Mapping):
            yield from _problems(list(value.values()))
        elif key not in _VALUES:
            yield from _problems(value)
    for value in schema if isinstance(schema, list) else ():
        yield from _problems(value)
