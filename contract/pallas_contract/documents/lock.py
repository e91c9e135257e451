"""agents.lock: what a fleet was when somebody locked it. The generator writes it, the registry compares with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError, WrapValidator, model_validator
from pydantic_core import from_json

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.documents.tool_contract import ToolContract, digest
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.json_values import has_more_values
from pallas_contract.problems import Problem, Refused, Where

LARGEST = 8 * 1024 * 1024
"""Bytes of a lock that are read."""
MOST_VALUES = 250_000
"""Values of it. One that was written has digests, and no more than half as many in as many bytes."""
LONGEST = 4096
"""Characters of a text."""
_SHOWN = 200
"""Characters of a key that are said of one that is wrong."""

Text = Annotated[str, StringConstraints(max_length=LONGEST)]


class _Wrong(Exception):
    """The place of what is no part of a lock. pydantic itself collects all that is wrong, a kilobyte for each."""

    def __init__(self, *place: object) -> None:
        self.place = place


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _knows_all_keys(cls, data: Any) -> Any:
        for key in data if isinstance(data, dict) else ():
            if key not in cls.model_fields:
                raise _Wrong(key)
        return data


def _placed[T](place: tuple[object, ...], check: Callable[[Any], T], value: Any) -> T:
    try:
        return check(value)
    except ValidationError as error:
        raise _Wrong(*place, *error.errors()[0]["loc"]) from None
    except _Wrong as wrong:
        raise _Wrong(*place, *wrong.place) from None


def _one[T](field: str, check: Callable[[Any], T]) -> WrapValidator:
    """Return what has the value of this field checked."""
    return WrapValidator(lambda data, _usual: _placed((field,), check, data))


def _each[T](field: str, check: Callable[[Any], T]) -> WrapValidator:
    """Return what has each value of a dictionary in this field checked, up to the first that is wrong."""

    def checked(data: Any, _usual: object) -> dict[str, T]:
        if not isinstance(data, dict):
            raise ValueError
        found = {}
        for key, value in data.items():
            if len(key) > LONGEST:
                raise _Wrong(field, key)
            found[key] = _placed((field, key), check, value)
        return found

    return WrapValidator(checked)


def _or_none[T](check: Callable[[Any], T]) -> Callable[[Any], T | None]:
    return lambda value: None if value is None else check(value)


def _fact(value: Any) -> str | int | float | bool:
    if not isinstance(value, str | int | float) or (isinstance(value, str) and len(value) > LONGEST):
        raise _Wrong
    return value


class LockedImage(_Closed):
    """An image as it is named, and the digest that the name stood for; empty where nobody knew it."""

    name: Text
    digest: Text = ""


class LockedTool(_Closed):
    """The contract of one tool, as digests; empty where the tool has no such part."""

    input: Text
    output: Text = ""
    annotations: Text = ""

    @property
    def contract(self) -> ToolContract:
        """Return it as the prober has it."""
        return ToolContract(self.input, self.output, self.annotations)


class LockedMember(_Closed):
    """One program; a digest is empty, and `tools` None, where nothing is known of it."""

    image: Annotated[LockedImage, _one("image", LockedImage.model_validate)]
    configuration: Text = ""
    """Of its entry in the fleet file, and of what concerns all agents there."""
    code: Text = ""
    """Of the files that it gets of the project folder."""
    tools: Annotated[dict[Text, LockedTool], _each("tools", LockedTool.model_validate)] | None = None


class Lock(_Closed):
    """The whole file. `facts` are those of `pallas-gen diff`, values that may be secret as digests."""

    lock: Literal[1] = 1
    """Version of the format."""
    name: Text
    version: Text
    agents: Annotated[dict[Text, LockedMember], _each("agents", LockedMember.model_validate)]
    services: Annotated[dict[Text, LockedMember], _each("services", LockedMember.model_validate)] = {}
    registry: Annotated[LockedMember | None, _one("registry", _or_none(LockedMember.model_validate))] = None
    gateway: Annotated[LockedMember | None, _one("gateway", _or_none(LockedMember.model_validate))] = None
    facts: Annotated[dict[Text, Text | int | float | bool], _each("facts", _fact)] = {}


def render(lock: Lock) -> str:
    """Return the text of a lock: sorted, without a time, the same bytes for the same lock."""
    data = lock.model_dump(mode="json", exclude_defaults=True) | {"lock": lock.lock}
    return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def parse(data: bytes, name: str = names.LOCK_FILE) -> Lock:
    """Return the lock in the bytes of a file called `name`.

    Raises:
        Refused: it is none.
    """
    try:
        if len(data) > LARGEST or has_more_values(data, MOST_VALUES):
            raise _Wrong
        return _placed((), Lock.model_validate, from_json(data))
    except (ValueError, _Wrong) as error:
        place = error.place if isinstance(error, _Wrong) else ()
        where = Where(name, field=".".join(str(part)[:_SHOWN] for part in place))
        hint = "`pallas-gen lock` writes it anew"
        raise Refused([Problem(where, "is no lock of a fleet", hint, code=Code.LOCK_FILE)]) from None


def configuration(fleet: ResolvedFleet, name: str) -> str:
    """Return the digest of what the fleet file says of agent `name`, defaults merged.

    Keys that are as they are by themselves do not count, so a kit with one key more gives the same digest.
    """
    agent: dict[str, Any] = fleet.agents[name].model_dump(mode="json", exclude_defaults=True)
    shared = {key: getattr(fleet.written, key) for key in ("name", "version", "host", "namespace", "public_url")}
    return digest([agent, {key: str(value) for key, value in shared.items() if value is not None}])
