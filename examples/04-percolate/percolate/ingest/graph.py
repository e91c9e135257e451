"""`entities.yaml` of a tenant -> its graph, with every problem of it in one run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from percolate.memory.entities import Entity
from percolate.problems import Malformed

FILE = "entities.yaml"
_LARGEST = 4 << 20


def _without_zero(name: str) -> str:
    if "\0" in name:
        raise ValueError("has a character of zero")
    return name


_Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_without_zero)]


class _Relation(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    relation: _Name
    to: _Name


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    id: _Name
    type: _Name
    name: _Name
    aliases: list[_Name] = []
    properties: dict[str, JsonValue] = {}
    related: list[_Relation] = []


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    entities: list[_Entry]


def read(path: Path) -> list[Entity]:
    """Return the entities in a file.

    Raises:
        Malformed: with everything that is wrong in it.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise Malformed(f"has more than {_LARGEST >> 20} MiB")
        text = path.read_text("utf-8")
        # a file of a hundred lines can mean gigabytes by them
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            raise Malformed("has an alias (`*name`): write it out")
        entries = _File.model_validate(yaml.safe_load(text)).entities
    except OSError as error:
        raise Malformed(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Malformed(f"is not UTF-8, at byte {error.start + 1}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise Malformed(f"is no YAML: {' '.join(str(error).split())[:300]}") from None
    except ValidationError as error:
        wrong = (f"{'.'.join(map(str, entry['loc'])) or 'it'}: {entry['msg']}" for entry in error.errors())
        raise Malformed("; ".join(wrong)[:2000]) from None
    except (
        ValueError
    ) as error:  # of a value that only looks like one: a day that no month has, a number of 5,000 digits
        raise Malformed(f"has a value that there is not: {str(error)[:300]}") from None
    if problems := list(_problems(entries)):
        raise Malformed("; ".join(problems)[:2000])
    return [
        Entity(
            id=entry.id,
            type=entry.type,
            name=entry.name,
            aliases=tuple(entry.aliases),
            properties=dict(entry.properties),
            related=tuple((relation.relation, relation.to) for relation in entry.related),
        )
        for entry in entries
    ]


def _problems(entries: list[_Entry]) -> Iterator[str]:
    ids: set[str] = set()
    for entry in entries:
        if entry.id in ids:
            yield f"`{entry.id}` is there twice"
        ids.add(entry.id)
        try:
            json.dumps(entry.properties, allow_nan=False, ensure_ascii=False).encode()
        except ValueError:
            yield f"`{entry.id}` has a property that JSON does not know: `.nan`, `.inf` or half a surrogate pair"
    for entry in entries:
        yield from (f"`{entry.id}` leads to `{r.to}`, which is not there" for r in entry.related if r.to not in ids)
