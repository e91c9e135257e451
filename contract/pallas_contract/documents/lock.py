"""agents.lock: what a fleet was when somebody locked it. The generator writes it, the registry compares with it."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.documents.tool_contract import ToolContract, digest
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.problems import Problem, Refused, Where

LARGEST = 8 * 1024 * 1024
"""Bytes of a lock that are read."""

Text = Annotated[str, StringConstraints(max_length=4096)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


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

    image: LockedImage
    configuration: Text = ""
    """Of its entry in the fleet file, and of what concerns all agents there."""
    code: Text = ""
    """Of the files that it gets of the project folder."""
    tools: dict[Text, LockedTool] | None = None


class Lock(_Closed):
    """The whole file. `facts` are those of `pallas-gen diff`, values that may be secret as digests."""

    lock: Literal[1] = 1
    """Version of the format."""
    name: Text
    version: Text
    agents: dict[Text, LockedMember]
    services: dict[Text, LockedMember] = {}
    registry: LockedMember | None = None
    gateway: LockedMember | None = None
    facts: dict[Text, Text | int | float | bool] = {}


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
        if len(data) > LARGEST:
            raise ValueError(name)
        return Lock.model_validate_json(data)
    except (ValidationError, ValueError) as error:
        place = ".".join(map(str, error.errors()[0]["loc"])) if isinstance(error, ValidationError) else ""
        where = Where(name, field=place)
        hint = "`pallas-gen lock` writes it anew"
        raise Refused([Problem(where, "is no lock of a fleet", hint, code=Code.LOCK_FILE)]) from None


def configuration(fleet: ResolvedFleet, name: str) -> str:
    """Return the digest of what the fleet file says of agent `name`, defaults merged.

    Keys that are as they are by themselves do not count, so a kit with one key more gives the same digest.
    """
    agent: dict[str, Any] = fleet.agents[name].model_dump(mode="json", exclude_defaults=True)
    shared = {key: getattr(fleet.written, key) for key in ("name", "version", "host", "namespace", "public_url")}
    return digest([agent, {key: str(value) for key, value in shared.items() if value is not None}])
