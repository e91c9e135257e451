"""A turn of an agent: progress notifications and the answer (seed 000 section 4)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from pallas_testing.conformance.evidence import TOKEN, Agent
from pallas_testing.conformance.requirement import Table, demand, not_asked
from pallas_testing.conformance.wire import Exchange, objects

TABLE: Table[Agent] = Table()
_METHOD = "notifications/progress"
_TOOL = re.compile(r"(?P<call>[^/\n]+/.+): (?P<event>started|completed|failed)")
_STEP = re.compile(r".+ step [1-9]\d* \((?:llm|tool)\)")

Params = Mapping[str, Any]


def _turn(exchange: Exchange | None) -> Exchange:
    if exchange is None:
        not_asked("needs --message")
    return exchange


def _progress(exchange: Exchange) -> list[Params]:
    notifications = [message for message in exchange.messages if message.get("method") == _METHOD]
    return [params if isinstance(params := message.get("params"), dict) else {} for message in notifications]


def _text(params: Params) -> str:
    return str(params.get("message") or "")


@TABLE.row("turn.quiet", "000, 4 Pallas Guarantees", "who sends no progress token gets no progress", after="chat.tool")
def quiet(evidence: Agent) -> str:
    exchange = _turn(evidence.quiet)
    demand(not _progress(exchange), exchange, "no notifications/progress")
    return ""


@TABLE.row("turn.answer", "000, 4 How It Works", "the call ends with the answer as text", after="chat.tool")
def answer(evidence: Agent) -> str:
    exchange = _turn(evidence.turn)
    blocks = objects(exchange.result.get("content"))
    texts = [block for block in blocks if block.get("type") == "text" and isinstance(block.get("text"), str)]
    right = "a result with a block of text that is no error"
    demand(texts and exchange.result.get("isError") is not True, exchange, right)
    return ""


@TABLE.row("turn.reply", "000, 4 Limitations", "what the model says is in the final result", after="turn.answer")
def reply(evidence: Agent) -> str:
    expected = evidence.expected.reply if evidence.expected else ""
    if not expected:
        not_asked("needs the model's answer: --reply")
    exchange = _turn(evidence.turn)
    texts = [str(block.get("text", "")) for block in objects(exchange.result.get("content"))]
    demand(expected in "\n".join(texts), exchange, f"the text {expected!r}")
    return ""


@TABLE.row("turn.progress", "000, 4 Pallas Guarantees", "each step of the agent's loop is told", after="turn.answer")
def progress(evidence: Agent) -> str:
    exchange = _turn(evidence.turn)
    steps = [params for params in _progress(exchange) if _STEP.fullmatch(_text(params))]
    demand(steps, exchange, "at least one notification `{agent} step N (llm)`")
    return ""


@TABLE.row(
    "turn.stream",
    "000, 4 How It Works",
    "all messages flow over the stream of the call, the result last",
    after="turn.progress",
)
def stream(evidence: Agent) -> str:
    exchange = _turn(evidence.turn)
    demand("result" in exchange.messages[-1], exchange, "no message after the result")
    return ""


@TABLE.row("turn.token", "000, 4 Handling", "progress carries the token of the call", after="turn.progress")
def token(evidence: Agent) -> str:
    return _each(evidence, f"progressToken {TOKEN!r}", lambda params: params.get("progressToken") == TOKEN)


@TABLE.row("turn.fields", "000, 4 Handling", "progress and total are numbers, message is a text", after="turn.progress")
def fields(evidence: Agent) -> str:
    right = "`progress` a number, `total` a number or null, `message` a text or null"

    def fits(params: Params) -> bool:
        total, message = params.get("total"), params.get("message")
        return _is_number(params.get("progress")) and (total is None or _is_number(total)) and _is_text(message)

    return _each(evidence, right, fits)


@TABLE.row("turn.format", "000, 4 Message Format", "each message has one of five forms", after="turn.fields")
def form(evidence: Agent) -> str:
    right = "`{server}/{tool}: started`, `: completed`, `: failed`, `{agent} step N (llm)` or `(tool)`"
    return _each(evidence, right, lambda params: bool(_TOOL.fullmatch(_text(params)) or _STEP.fullmatch(_text(params))))


@TABLE.row("turn.pairs", "000, 4 Pallas Guarantees", "each call of a tool is told, start and end", after="turn.format")
def pairs(evidence: Agent) -> str:
    exchange = _turn(evidence.turn)
    opened: Counter[str] = Counter()
    unstarted: set[str] = set()
    for match in filter(None, (_TOOL.fullmatch(_text(params)) for params in _progress(exchange))):
        if match["event"] == "started":
            opened[match["call"]] += 1
        elif opened[match["call"]]:
            opened[match["call"]] -= 1
        else:
            unstarted.add(match["call"])
    rest = sorted(call for call, count in opened.items() if count)
    demand(not rest, exchange, "`completed` or `failed` for each `started`", f"no end of {', '.join(rest)}")
    if unstarted:
        return f"no start of {', '.join(sorted(unstarted))}, as in the seed's picture: notifications are best-effort"
    return "" if opened else "the turn called no tool"


@TABLE.row(
    "turn.total", "000, 4 Handling", "total is null until a tool is finished", after="turn.format", decision="0010"
)
def total(evidence: Agent) -> str:
    right = "`total` null, and of `completed` or `failed` equal to `progress`"

    def fits(params: Params) -> bool:
        ended = _is_end(params)
        return params.get("total") == (params["progress"] if ended else None)

    _each(evidence, right, fits)
    return _behaviour(evidence)


@TABLE.row(
    "turn.increasing", "000, 4 Handling", "progress counts up, step by step", after="turn.format", decision="0010"
)
def increasing(evidence: Agent) -> str:
    last = float("-inf")
    for params in _progress(_turn(evidence.turn)):
        if _is_end(params) and params["progress"] == params.get("total") == 1:
            continue  # the seed's picture: 1 of 1, wherever the count is
        received = f"{params['progress']!r} after {last!r}: {_text(params)}"
        demand(params["progress"] > last, _turn(evidence.turn), "more than the one before", received)
        last = params["progress"]
    return _behaviour(evidence)


def _behaviour(evidence: Agent) -> str:
    ends = [params for params in _progress(_turn(evidence.turn)) if _is_end(params)]
    if not ends:
        return ""
    ours = any(params["progress"] != 1 for params in ends)
    return "a finished tool is N of N, as decision 0010 has it" if ours else "a finished tool is 1 of 1, as the seed's"


def _each(evidence: Agent, right: str, fits: Any) -> str:
    exchange = _turn(evidence.turn)
    for params in _progress(exchange):
        demand(fits(params), exchange, right, json.dumps(params))
    return ""


def _is_end(params: Params) -> bool:
    match = _TOOL.fullmatch(_text(params))
    return match is not None and match["event"] != "started"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)
