"""Rules over an agent card by fast-agent's own table: its type, its keys, and their shape."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from pallas_contract.codes import Code
from pallas_contract.definitions import card
from pallas_contract.definitions.card import Card
from pallas_contract.fleet import engine_table
from pallas_contract.problems import Problem, Refused, Where
from pallas_contract.validate.suggestions import Suggestions

_SUFFIXES = (".md", ".markdown", ".yaml", ".yml")
_DEPRECATED = "smart"
"""A type that fast-agent 0.10 still reads, as `agent`."""
_ELSEWHERE = {"depends_on": "it belongs into agents.yaml", "port": "it belongs into agents.yaml"}
_LISTS = frozenset({"servers", "agents", "sequence", "fan_out"})


def parse(text: str, path: str) -> Card:
    """Return the card in `text`.

    Raises:
        Refused: it has another suffix, no frontmatter, or broken YAML.
    """
    if PurePosixPath(path).suffix.lower() not in _SUFFIXES:
        hint = f"fast-agent reads cards by their suffix: {', '.join(_SUFFIXES)}"
        raise Refused([Problem(Where(path), "is no agent card", hint, code=Code.NOT_A_CARD)])
    return card.parse(text, name=path)


def problems(entry: Card, suggestions: Suggestions) -> Iterator[Problem]:
    """Yield what fast-agent refuses in a card."""
    keys = entry.keys
    kind = keys.data.get("type") or "agent"
    if not isinstance(kind, str):
        yield keys.problem(
            "type", message="must be text", hint=f"one of {', '.join(engine_table.card_kinds())}", code=Code.CARD_TYPE
        )
        return
    table = engine_table.card_keys("agent" if kind.strip().lower() == _DEPRECATED else kind)
    if table is None:
        hint = suggestions.hint(kind, engine_table.card_kinds(), "types")
        yield keys.problem("type", message=f"there is no type `{kind}`", hint=hint, code=Code.CARD_TYPE)
        return
    for key in keys.data:
        if key not in table["keys"]:
            hint = _ELSEWHERE.get(key) or suggestions.hint(key, table["keys"], "known keys")
            yield keys.problem(key, message=f"unknown key of a card of type `{kind}`", hint=hint, code=Code.CARD_KEY)
    for key in table["required"]:
        if keys.data.get(key) is None:
            yield keys.problem(
                "type",
                message=f"a card of type `{kind}` needs `{key}`",
                hint=f"add `{key}: ...`",
                code=Code.CARD_KEY_MISSING,
            )
    for key in sorted(_LISTS & set(table["keys"])):
        if isinstance(keys.data.get(key), str):
            yield keys.problem(key, message="must be a list", hint=f"`{key}: [{keys.data[key]}]`", code=Code.CARD_LIST)
