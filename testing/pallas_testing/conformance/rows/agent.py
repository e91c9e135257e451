"""The endpoint of an agent, and what it offers beside its health (seed 000 sections 4 and 5, seed 001)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pallas_testing.conformance.evidence import (
    CHAT_TOOL,
    Agent,
    chat_tool,
    history_prompt,
    listed,
    properties,
    tool_named,
)
from pallas_testing.conformance.requirement import Table, demand, not_asked
from pallas_testing.conformance.session import LEGACY, MODERN
from pallas_testing.conformance.wire import objects

TABLE: Table[Agent] = Table()


@TABLE.row("agent.mcp", "000, 5 Why MCP", "an agent is an MCP server over streamable HTTP")
def mcp(evidence: Agent) -> str:
    if not evidence.spoken and not evidence.demanded:
        not_asked(f"does not speak {evidence.era}; the seeds name no version")
    right = {
        LEGACY: "the result of `initialize` with a protocolVersion",
        MODERN: f"the result of `server/discover` with {MODERN} among the supportedVersions",
    }
    demand(evidence.spoken, evidence.opening, right[evidence.era])
    return ""


@TABLE.row(
    "agent.tear-down", "000, 2 Implementation Guidance", "DELETE with the session's id ends it", after="agent.mcp"
)
def tear_down(evidence: Agent) -> str:
    if not evidence.closing:
        return "it has no session"
    end, late = evidence.closing
    if end.status == 405:
        return "it lets no client end a session, as MCP allows (HTTP 405)"
    demand(200 <= end.status < 300, end, "HTTP 200 or 204, or 405 of a server that lets no client end one")
    demand(400 <= late.status < 500 or "error" in late.answer, late, "a refusal, the session being gone")
    return ""


@TABLE.row(
    "agent.tools", "000, 5 Why MCP", "the tools are listed, each with the schema of its input", after="agent.mcp"
)
def tools(evidence: Agent) -> str:
    entries = evidence.tools.result.get("tools")
    demand(isinstance(entries, list) and entries, evidence.tools, '{"tools": [...]}')
    for number, entry in enumerate(entries or ()):
        whole = isinstance(entry, dict) and isinstance(entry.get("inputSchema"), dict)
        right = 'an object with "name" and "inputSchema"'
        demand(whole and isinstance(entry.get("name"), str), evidence.tools, right, f"tools[{number}]: {entry!r}")
    return ""


@TABLE.row("chat.tool", "000, 4 Sending the Progress Token", "a tool takes the user's message", after="agent.tools")
def chat(evidence: Agent) -> str:
    demand(chat_tool(evidence.tools), evidence.tools, "a tool other than get_health with an argument `message`")
    return ""


@TABLE.row("chat.send-message", "001, send_message Tool", "it is `send_message`, and needs a text", after="agent.tools")
def send_message(evidence: Agent) -> str:
    tool = tool_named(evidence.tools, CHAT_TOOL) or {}
    demand(tool, evidence.tools, f"a tool named {CHAT_TOOL}")
    text = properties(tool).get("message", {}).get("type") == "string"
    right = "`message`, a string, among the required arguments"
    demand(text and "message" in _required(tool), evidence.tools, right, json.dumps(tool["inputSchema"]))
    return ""


@TABLE.row(
    "chat.images", "001, send_message Tool", "images are a list of objects, and optional", after="chat.send-message"
)
def images(evidence: Agent) -> str:
    tool = tool_named(evidence.tools, CHAT_TOOL) or {}
    value = properties(tool).get("images", {})
    forms = [value, *objects(value.get("anyOf"))]
    array = any(form.get("type") in ("array", ["array", "null"]) for form in forms)
    right = "`images`, an array that is not required"
    demand(array and "images" not in _required(tool), evidence.tools, right, json.dumps(tool["inputSchema"]))
    return ""


@TABLE.row(
    "history.prompt",
    "001, Conversation History Prompt",
    "unless its scope is `request` an agent has the prompt `{agent}_history`",
    after="agent.mcp",
)
def history(evidence: Agent) -> str:
    if evidence.prompts is None:
        not_asked("it offers no prompts, as only an agent of `instance_scope: request` does")
    names = [prompt["name"] for prompt in listed(evidence.prompts, "prompts")]
    right = "a prompt whose name ends with _history"
    demand(history_prompt(evidence.prompts), evidence.prompts, right, f"prompts: {', '.join(names)}" if names else "")
    return ""


@TABLE.row(
    "history.content",
    "001, Conversation History Prompt",
    "the prompt returns the conversation so far",
    after="history.prompt",
)
def content(evidence: Agent) -> str:
    if evidence.expected is None:
        not_asked("needs --message")
    if evidence.history is None:
        not_asked("needs a session, or a tool that takes `session_id`")
    messages = objects(evidence.history.result.get("messages"))
    pairs = [(entry.get("role"), _text(entry)) for entry in messages]
    right = f"a message of the user with {evidence.expected.message!r}, and one of the assistant"
    asked = ("user", evidence.expected.message) in pairs
    demand(asked and "assistant" in [role for role, _ in pairs], evidence.history, right)
    return ""


def _text(message: Mapping[str, Any]) -> str:
    block = message.get("content")
    return str(block.get("text", "")) if isinstance(block, dict) else ""


def _required(tool: Mapping[str, Any]) -> list[Any]:
    required = tool["inputSchema"].get("required")
    return required if isinstance(required, list) else []
