"""The script of the stand-in model: which rule answers a chat, and with what. Pure: chat in, turn out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class Call:
    """A tool to call. Texts among the `arguments` are templates."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """When to speak (`system`, `user`, `results`; see model.yaml), and what: `say` or `call`."""

    system: str = ""
    user: str = ""
    results: bool | None = None
    say: str = ""
    call: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Chat:
    """What one request says, as far as rules look at it. `results` holds (tool, answer) of the current turn."""

    system: str
    user: str
    results: tuple[tuple[str, str], ...]
    tools: frozenset[str]
    caller: str = ""

    def fill(self, template: str) -> str:
        """Put this chat into `template`, in one pass: braces in what people or tools said stay as they are."""
        values = {"user": self.user, "results": _listed(self.results), "caller": self.caller}
        return re.sub(r"\{(user|results|caller)\}", lambda match: values[match[1]], template)


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model answers: text, or calls, never both."""

    text: str = ""
    calls: tuple[Call, ...] = ()


def load(path: Path) -> list[Rule]:
    """Read the rules of a script.

    Raises:
        TypeError: a rule has a key that rules do not have.
    """
    written = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [Rule(**{**rule, "call": tuple(Call(**call) for call in rule.get("call", ()))}) for rule in written]


def read(body: Mapping[str, Any], caller: str) -> Chat:
    """A chat completion request, seen as a `Chat`.

    Raises:
        KeyError, TypeError: it is not one.
    """
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    system = "\n".join(_text(m["content"]) for m in messages if m["role"] in ("system", "developer"))
    last = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=-1)
    turn = messages[last + 1 :]
    names = {call["id"]: call["function"]["name"] for m in turn for call in m.get("tool_calls") or ()}
    results = tuple((names[m["tool_call_id"]], _text(m["content"])) for m in turn if m["role"] == "tool")
    tools = frozenset(tool["function"]["name"] for tool in body.get("tools") or ())
    return Chat(system, _text(messages[last]["content"]) if last >= 0 else "", results, tools, caller)


def answer(rules: Sequence[Rule], chat: Chat) -> Turn:
    """What the first fitting rule answers.

    Raises:
        LookupError: no rule fits.
    """
    for rule in rules:
        calls = tuple(call for call in rule.call if call.tool in chat.tools)
        if _fits(rule, chat) and (calls or not rule.call):
            return Turn(calls=tuple(_filled(call, chat) for call in calls)) if calls else Turn(chat.fill(rule.say))
    raise LookupError("no rule of the script fits")


def _fits(rule: Rule, chat: Chat) -> bool:
    return (
        rule.system in chat.system
        and re.search(rule.user, chat.user, re.IGNORECASE) is not None
        and rule.results in (None, bool(chat.results))
    )


def _filled(call: Call, chat: Chat) -> Call:
    filled = {key: chat.fill(value) if isinstance(value, str) else value for key, value in call.arguments.items()}
    return Call(call.tool, filled)


def _listed(results: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"- {tool}: {text.replace('\n', '\n  ')}" for tool, text in results)


def _text(content: Any) -> str:
    """The text of a message: OpenAI allows a text or a list of parts."""
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""
