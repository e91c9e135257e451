"""Rules of the gateway as CEL, for an agentgateway in front of it (decision 0046).

An edge refuses nothing that the gateway would let through: where it cannot tell, the expression is true.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pallas_gen.front.door import Door, Granted
from pallas_gen.targets.helm.edge.values import Edge

LONGEST = 16_384
"""Characters of an expression that agentgateway's definitions allow."""
ANYTHING = "true"
_NO_JWT = "!has(jwt.sub)"
"""Nobody whose token the edge could verify: the gateway looks at it."""


def values(door: Door) -> Edge:
    """Return what the chart is told of the door."""
    stated: dict[str, Any] = {
        "allow": {host: allow(door, host) for host in door.grants},
        "tokens": door.tokens,
        "issuer": door.issuer,
        "audience": door.audience,
        "jwks_url": door.jwks_url,
        "requests": {name: requests for name, (_, requests) in door.tenants.items()} if door.issuer else {},
        "tenant": _tenant(door.tenants) if door.issuer and door.tenants else "",
    }
    return Edge(**{key: value for key, value in stated.items() if value})


def allow(door: Door, host: str) -> str:
    """Return the expression that is true for each call of an agent that the gateway may let through."""
    if door.open or not door.issuer:
        return ANYTHING
    rules = [_NO_JWT, *dict.fromkeys(map(_rule, door.grants[host]))]
    text = " || ".join(rules)
    return text if len(text) <= LONGEST else ANYTHING


def _rule(granted: Granted) -> str:
    who = f"jwt.sub in {_texts(granted.subjects)}"
    if "*" in granted.tools:  # prompts and resources too, which have no tool's name
        return f"({who})"
    return f"({who} && ({' || '.join(_tools(granted.tools))}))"


def _tools(tools: tuple[str, ...]) -> Iterator[str]:
    exact = [tool for tool in tools if "*" not in tool]
    if exact:
        yield f"mcp.tool.name in {_texts(exact)}"
    for tool in tools:
        if "*" in tool:
            pattern = ".*".join(map(re.escape, tool.split("*")))
            yield f"mcp.tool.name.matches({json.dumps(f'^{pattern}$')})"


def _tenant(tenants: Mapping[str, tuple[tuple[str, ...], int]]) -> str:
    """Return the expression for the tenant of a caller; one that is in none has the empty name."""
    text = '""'
    for name, (subjects, _) in reversed(list(tenants.items())):
        text = f"jwt.sub in {_texts(subjects)} ? {json.dumps(name)} : {text}"
    return text if len(text) <= LONGEST else ""


def _texts(texts: tuple[str, ...] | list[str]) -> str:
    return json.dumps(list(texts), ensure_ascii=False)
