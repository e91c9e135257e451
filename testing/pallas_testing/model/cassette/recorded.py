"""The file of a recording: readable YAML, in which each agent's instruction and tools stand once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from pallas_testing.model.exchange import (
    Failure,
    Finish,
    Image,
    Message,
    Reply,
    Request,
    Role,
    Tool,
    ToolCall,
)
from pallas_testing.model.script import Error, Text, Written

HEADER = """\
# Recorded by `pallas-testing model --record`; `pallas-testing model` and the fixture replay it without a key.
# It may be edited: requests are compared by meaning. What was secret is written as <secret>.
"""


class RecordedCall(Written):
    """A call of a tool."""

    tool: Text
    arguments: dict[str, Any] = {}


class RecordedMessage(Written):
    """A message; `images` are descriptions, since bytes are compared by their digest."""

    role: Role
    tool: str = ""
    text: str = ""
    calls: list[RecordedCall] = []
    images: list[str] = []


class RecordedTool(Written):
    """A tool that an agent has."""

    description: str = ""
    parameters: dict[str, Any] = {}


class RecordedAgent(Written):
    """What an agent's requests have in common."""

    model: Text
    instruction: str = ""
    tools: dict[str, RecordedTool] = {}
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    forced_tool: str = ""


class RecordedReply(Written):
    """What the provider answered."""

    say: str = ""
    call: list[RecordedCall] = []
    finish: Finish = "stop"
    error: Error | None = None


class Exchange(Written):
    """One request and its answer."""

    agent: Text
    """Key in `agents`."""
    messages: list[RecordedMessage]
    reply: RecordedReply


class Cassette(Written):
    """A recording."""

    cassette: Literal[1]
    """Version of this format."""
    agents: dict[str, RecordedAgent] = {}
    exchanges: Annotated[list[Exchange], Field(description="In the order in which they were asked.")] = []

    @model_validator(mode="after")
    def _agents_are_there(self) -> Self:
        if missing := sorted({exchange.agent for exchange in self.exchanges} - self.agents.keys()):
            raise ValueError(f"`agents` lacks {', '.join(missing)}, which exchanges name")
        return self

    def request(self, exchange: Exchange) -> Request:
        """Return the request of an exchange; images are without their bytes."""
        agent = self.agents[exchange.agent]
        return Request(
            api="",
            model=agent.model,
            instruction=agent.instruction,
            messages=tuple(map(_message, exchange.messages)),
            tools={name: Tool(tool.description, tool.parameters) for name, tool in agent.tools.items()},
            schema=agent.schema_,
            forced_tool=agent.forced_tool,
        )


def result(reply: RecordedReply) -> Reply | Failure:
    """Return what a recorded answer says."""
    if error := reply.error:
        return Failure(error.status, error.message, error.type, error.retry_after)
    return Reply(reply.say, tuple(ToolCall(call.tool, call.arguments) for call in reply.call), reply.finish)


def _message(written: RecordedMessage) -> Message:
    calls = tuple(ToolCall(call.tool, call.arguments) for call in written.calls)
    images = tuple(Image(description) for description in written.images)
    return Message(written.role, written.text, calls, images, written.tool)


def record(agents: dict[str, Any], request: Request, outcome: Reply | Failure) -> dict[str, Any]:
    """Return an exchange as plain data, its agent added to `agents` where it is a new one."""
    agent = {
        "model": request.model,
        "instruction": request.instruction,
        "tools": {name: _lean(description=t.description, parameters=t.parameters) for name, t in request.tools.items()},
        "schema": request.schema,
        "forced_tool": request.forced_tool,
    }
    name = _name(agents, {key: value for key, value in agent.items() if value or value == {} == request.schema})
    messages = [_plain(message) for message in request.messages]
    if isinstance(outcome, Failure):
        error = _lean(status=outcome.status, message=outcome.message, type=outcome.type)
        reply: dict[str, Any] = {"error": error | _lean(retry_after=outcome.retry_after)}
    else:
        reply = _lean(say=outcome.text, call=list(map(_call, outcome.calls)))
        reply |= {} if outcome.finish == "stop" else {"finish": outcome.finish}
    return {"agent": name, "messages": messages, "reply": reply}


def _name(agents: dict[str, Any], agent: Mapping[str, Any]) -> str:
    """Return the key of an agent: the first words of its instruction, numbered where others have them too."""
    words = "-".join(re.findall(r"[a-z0-9]+", agent.get("instruction", "").lower())[:4]) or "agent"
    number = 1
    name = words
    while name in agents and agents[name] != agent:
        number += 1
        name = f"{words}-{number}"
    agents[name] = dict(agent)
    return name


def _plain(message: Message) -> dict[str, Any]:
    calls = list(map(_call, message.calls))
    images = list(map(str, message.images))
    return {"role": message.role, **_lean(tool=message.tool, text=message.text, calls=calls, images=images)}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"tool": call.tool, **_lean(arguments=dict(call.arguments))}


def _lean(**values: Any) -> dict[str, Any]:
    """Return the values that say something."""
    return {key: value for key, value in values.items() if value not in ("", [], {}, None)}


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def dump(agents: Mapping[str, Any], exchanges: list[dict[str, Any]]) -> str:
    """Return the text of a cassette."""
    data = {"cassette": 1, "agents": dict(agents), "exchanges": exchanges}
    return HEADER + yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
