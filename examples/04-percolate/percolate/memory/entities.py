"""The graph of entities: who is what, and what belongs to what."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from percolate.memory.store import Store
from percolate.problems import NotThere

_LIKE = 0.35
"""Share of three letters in a row from which on a name is taken for another one."""
MOST_RELATED = 100


@dataclass(frozen=True, slots=True)
class Entity:
    """A node. `related` are pairs (relation, id of the other entity)."""

    id: str
    type: str
    name: str
    aliases: tuple[str, ...] = ()
    properties: dict[str, Any] = field(default_factory=dict)
    related: tuple[tuple[str, str], ...] = ()

    def document(self) -> dict[str, Any]:
        """Return it as seed 002 has it (lookup_entity)."""
        return {"id": self.id, "type": self.type, "name": self.name, "properties": self.properties}


def replace(store: Store, tenant: str, entities: Sequence[Entity]) -> None:
    """Put `entities` in the place of all that `tenant` has; each relation leads to one of them."""
    with store.transaction(tenant):
        store.write("DELETE FROM entities WHERE tenant = :tenant", [{}])
        store.write(
            "INSERT INTO entities VALUES (:tenant, :id, :type, :name, :aliases, :properties)",
            [
                {"id": entity.id, "type": entity.type, "name": entity.name}
                | {"aliases": json.dumps(entity.aliases), "properties": json.dumps(entity.properties)}
                for entity in entities
            ],
        )
        store.write(
            "INSERT INTO relations VALUES (:tenant, :origin, :relation, :target) ON CONFLICT DO NOTHING",
            [
                {"origin": entity.id, "relation": relation, "target": other}
                for entity in entities
                for relation, other in entity.related
            ],
        )


def lookup(store: Store, tenant: str, entity_type: str, query: str) -> Entity:
    """Return the entity of a type whose id, name or alias is `query`, or else the one whose name is most like it.

    Raises:
        NotThere: there is none.
    """
    rows = store.rows(
        tenant, "SELECT id, type, name, aliases, properties FROM entities WHERE tenant = :tenant ORDER BY id"
    )
    # compared here, as databases differ in what the small letter of another alphabet is
    entities = [_entity(row) for row in rows if row[1].casefold() == entity_type.casefold()]
    best = max(entities, key=lambda entity: _likeness(entity, query), default=None)
    if best is None:
        types = sorted({row[1] for row in rows})
        there = f"there are {', '.join(types)}" if types else "there are no entities"
        raise NotThere(f"there is no entity of type `{entity_type[:80]}`: {there}")
    if _likeness(best, query) < _LIKE:
        raise NotThere(f"there is no {best.type} like `{query[:80]}`; the nearest is `{best.name}`")
    return best


def related(store: Store, tenant: str, key: str) -> list[dict[str, Any]]:
    """Return the neighbours of an entity in both directions, as `{"relation", "direction", "entity"}`."""
    statement = """
      SELECT r.relation, 'out', e.id, e.type, e.name, e.aliases, e.properties
      FROM relations r JOIN entities e ON e.tenant = r.tenant AND e.id = r.target
      WHERE r.tenant = :tenant AND r.origin = :key
      UNION ALL
      SELECT r.relation, 'in', e.id, e.type, e.name, e.aliases, e.properties
      FROM relations r JOIN entities e ON e.tenant = r.tenant AND e.id = r.origin
      WHERE r.tenant = :tenant AND r.target = :key
      ORDER BY 2 DESC, 1, 3 LIMIT :most
    """
    rows = store.rows(tenant, statement, key=key, most=MOST_RELATED)
    return [
        {"relation": relation, "direction": direction, "entity": _entity(row).document()}
        for relation, direction, *row in rows
    ]


def _entity(row: Sequence[Any]) -> Entity:
    key, type_, name, aliases, properties = row
    return Entity(key, type_, name, tuple(json.loads(aliases)), json.loads(properties))


def _likeness(entity: Entity, query: str) -> float:
    return max(_alike(name, query) for name in (entity.id, entity.name, *entity.aliases))


def _alike(one: str, other: str) -> float:
    """Return 1 for the same name, 0 for two that have no three letters in common."""
    if one.casefold() == other.casefold():
        return 1.0
    letters = _letters(one)
    others = _letters(other)
    common = len(letters & others)
    # a short name within a long question is as good as a long name that is half right
    return 0.99 * common / max(1, min(len(letters | others), 2 * len(letters)))


def _letters(name: str) -> set[str]:
    words = (f" {word} " for word in re.findall(r"\w+", name.casefold()))
    return {word[start : start + 3] for word in words for start in range(len(word) - 2)}
