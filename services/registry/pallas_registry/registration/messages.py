"""The messages of an agent: those of seed 003 sections 3.2 and 3.3, with the capability schema of section 4.

Strict: what is published under the fleet's name was checked here. `url`, `title`, `description` and `version` are the
kit's own, optional.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    model_validator,
)

from pallas_contract import names
from pallas_registry.registration.errors import INVALID_PARAMS, Refusal

REGISTER = "server.register"
DEREGISTER = "server.deregister"
HEARTBEAT = "agent.heartbeat"
_IGNORED = frozenset({"_meta", "meta"})
"""Of MCP and of the seed's `agent.execute`; neither says anything here."""
_HOST = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")
_MOST = 256
_MOST_PROBLEMS = 20


def _name(text: str) -> str:
    if not names.is_name(text):
        raise ValueError(f"must be a-z, 0-9, `_` and `-`, start with a letter, and have at most {names.MAX_NAME}")
    return text


def _line(text: str) -> str:
    if not text.isprintable():  # nor half a surrogate pair, nor a mark that turns the direction of writing
        raise ValueError("must be one line without control characters")
    return text


def _url(text: str) -> str:
    parts = urlsplit(text)
    port = parts.port  # raises ValueError
    # credentials in a URL would be published with it
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None or port == 0:
        raise ValueError("must be an http or https URL with a host and no credentials")
    if not (_HOST.fullmatch(parts.hostname) and len(parts.hostname) <= 253) and ":" not in parts.hostname:
        raise ValueError("its host is neither a name nor an address")
    if not (text.isascii() and text.isprintable()) or set(text) & set(' <>"{}|\\^`#'):
        raise ValueError("has a character that a URL cannot have")
    return text


Name = Annotated[str, AfterValidator(_name)]
Line = Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(_line)]
Words = Annotated[str, StringConstraints(max_length=500), AfterValidator(_line)]
Url = Annotated[str, StringConstraints(max_length=255), AfterValidator(_url)]
Tool = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_./-]{1,128}$")]
Structure = dict[str, JsonValue]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ToolSchema(_Message):
    """Structure of what a tool takes and gives, in the agent's own notation (`{"symbol": "string"}`)."""

    input: Structure
    output: Structure


class Capabilities(_Message):
    """Seed 003 section 4; `agent_id` stands beside it in the request."""

    tools: Annotated[list[Tool], Field(min_length=1, max_length=_MOST)]
    resources: Annotated[list[Line], Field(max_length=_MOST)] = []
    schema_: Annotated[dict[Tool, ToolSchema], Field(alias="schema")]
    constraints: Structure = {}

    @model_validator(mode="after")
    def _each_tool_has_its_schema(self) -> Capabilities:
        if len(set(self.tools)) != len(self.tools):
            raise ValueError("tools has a name twice")
        # both are published beside each other: half of a pair would mislead whoever reads them
        if odd := sorted(set(self.tools) ^ set(self.schema_)):
            raise ValueError(f"tools and schema must have the same names; only one of them has {odd[0]}")
        return self


class Register(_Message):
    """The parameters of `server.register`."""

    agent_id: Name
    capabilities: Capabilities
    heartbeat_interval: Annotated[float, Field(ge=1, le=3600)] = 60.0
    """Seconds in which at least one heartbeat is promised."""
    title: Line | None = None
    description: Words = ""
    version: Line = "0.0.0"
    url: Url | None = None
    """The agent's MCP endpoint, for clients, and for probes where agents.yaml lets the registry go there."""


class Deregister(_Message):
    """The parameters of `server.deregister`."""

    agent_id: Name


class Heartbeat(_Message):
    """The parameters of `agent.heartbeat`. The seed's `active` is `ok` in the words of `get_health`."""

    agent_id: Name
    status: Literal["active", "ok", "degraded", "error"] = "active"
    message: Words = ""


def read[M: _Message](model: type[M], params: Mapping[str, Any]) -> M:
    """Return `params` as a message.

    Raises:
        Refusal: with every deviation under `data.problems`.
    """
    try:
        return model.model_validate({key: value for key, value in params.items() if key not in _IGNORED})
    except ValidationError as error:
        problems = [
            {"field": ".".join(map(str, detail["loc"])), "message": detail["msg"].removeprefix("Value error, ")}
            for detail in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        raise Refusal(400, INVALID_PARAMS, "Invalid params", {"problems": problems[:_MOST_PROBLEMS]}) from None
