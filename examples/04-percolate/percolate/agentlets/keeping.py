"""Agents of users in the memory: each version of each of them, by tenant."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from percolate.agentlets.definition import Definition, check, uri
from percolate.memory.store import Store
from percolate.problems import NotThere, Problem

VERSIONS = 10
"""Of an agent; older ones go."""
MOST = 2 << 20
"""Letters of all agents of a tenant, as they are listed: the gateway takes answers of 4 MiB."""
_LATEST = """
SELECT uri, description, output_schema, tools, version FROM agentlets a
WHERE tenant = :tenant AND (CAST(:uri AS text) = '' OR uri = CAST(:uri AS text))
  AND version = (SELECT max(version) FROM agentlets b WHERE b.tenant = a.tenant AND b.uri = a.uri)
ORDER BY uri
"""


def create(store: Store, tenant: str, *, user: str, name: str, description: str, **parts: Any) -> Definition:
    """Write an agent, or the next version of the one that has this name; `parts` are `output_schema` and `tools`.

    Raises:
        Problem: with what is wrong; nothing is written.
    """
    output_schema: Mapping[str, Any] = parts["output_schema"]
    tools: Sequence[str] = parts["tools"]
    key = uri(user, name)
    if "\0" in description:
        raise Problem("description: has a character of zero")
    check(output_schema, tools)
    with store.transaction(tenant):
        statement = "SELECT max(version) FROM agentlets WHERE tenant = :tenant AND uri = :uri"
        ((last,),) = store.rows(tenant, statement, uri=key)
        definition = Definition(key, description, output_schema, tuple(tools), (last or 0) + 1)
        values = {"uri": key, "version": definition.version, "description": description}
        values |= {"output_schema": json.dumps(output_schema), "tools": json.dumps(list(tools))}
        statement = "INSERT INTO agentlets VALUES (:tenant, :uri, :version, :description, :output_schema, :tools)"
        store.write(statement, [values])
        older = {"uri": key, "version": definition.version - VERSIONS}
        store.write("DELETE FROM agentlets WHERE tenant = :tenant AND uri = :uri AND version <= :version", [older])
        if sum(len(json.dumps(each.document())) for each in latest(store, tenant)) > MOST:
            raise Problem(f"the agents of the tenant have more than {MOST >> 20} MiB: make some of them shorter")
    return definition


def latest(store: Store, tenant: str, key: str = "") -> list[Definition]:
    """Return the newest version of each agent of a tenant, or of the one at a URI."""
    return [
        Definition(at, description, json.loads(schema), tuple(json.loads(tools)), version)
        for at, description, schema, tools, version in store.rows(tenant, _LATEST, uri=key)
    ]


def find(store: Store, tenant: str, key: str) -> Definition:
    """Return the newest version of an agent.

    Raises:
        NotThere: the tenant has none of that URI.
    """
    for definition in latest(store, tenant, key):
        return definition
    raise NotThere(f"Agent not found: {key[:80]}")
