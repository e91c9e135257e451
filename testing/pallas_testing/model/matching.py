"""A request and a script -> what the model answers, or why nobody scripted this call."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pallas_testing.model.exchange import Answer, Failure, Reply, Request, ToolCall
from pallas_testing.model.reader import Place, dotted
from pallas_testing.model.script import Call, Rule, Script
from pallas_testing.model.wire import sse

LENIENT = "The script has no line for this."
_PLACEHOLDER = re.compile(r"\{(user|results|caller)\}")
_SHOWN = 300
"""Characters of a text in a message to the user."""


class Unscripted(Exception):
    """A call that no rule fits; the text says what was asked, and of each rule why it does not fit."""


class Matcher:
    """A script that is being followed: how often each rule has answered is remembered, and nothing else."""

    def __init__(self, script: Script, where: Callable[[Place], str] = dotted) -> None:
        """`where` names a rule in messages, by its path in the script."""
        self.script = script
        self._where = where
        self._used: Counter[Place] = Counter()

    def answer(self, request: Request) -> Answer:
        """Return what the first rule that fits says.

        Raises:
            Unscripted: none fits, and the script is strict.
        """
        reasons: list[str] = []
        for path, rule in self._rules(request, reasons):
            if reason := self._misfit(path, rule, request):
                reasons.append(f"{self._where(path)}: {reason}")
            else:
                self._used[path] += 1
                return fill(rule, request)
        if not self.script.strict:
            return Answer(Reply(LENIENT))
        raise Unscripted(f"nobody scripted this call:\n{describe(request)}\n{_listed('the rules', reasons)}")

    def unused(self) -> list[str]:
        """Return a sentence for each rule with `times` that was not used so often."""
        return [
            f"{self._where(path)}: scripted {rule.times} times, asked {self._used[path]} times"
            for path, rule in self._all()
            if rule.times and self._used[path] < rule.times
        ]

    def _all(self) -> Iterator[tuple[Place, Rule]]:
        for name, agent in self.script.agents.items():
            yield from ((("agents", name, "rules", index), rule) for index, rule in enumerate(agent.rules))
        yield from ((("rules", index), rule) for index, rule in enumerate(self.script.rules))

    def _rules(self, request: Request, reasons: list[str]) -> Iterator[tuple[Place, Rule]]:
        """Yield the rules of the agent that asks and those of everybody; add to `reasons` which agents it is not."""
        for name, agent in self.script.agents.items():
            if _words(agent.instruction) not in _words(request.instruction):
                reasons.append(f"agents.{name}: the instruction does not have {short(agent.instruction)!r}")
            elif agent.model not in ("", request.model):
                reasons.append(f"agents.{name}: its model is {agent.model!r}")
            else:
                yield from ((("agents", name, "rules", index), rule) for index, rule in enumerate(agent.rules))
                break
        yield from ((("rules", index), rule) for index, rule in enumerate(self.script.rules))

    def _misfit(self, path: Place, rule: Rule, request: Request) -> str:
        if rule.times and self._used[path] >= rule.times:
            return f"has answered its {rule.times} times"
        return next(_misfits(rule, request), "")


def _misfits(rule: Rule, request: Request) -> Iterator[str]:
    """Yield why a rule does not fit a request; nothing where it does."""
    if not re.search(rule.user, request.user, re.IGNORECASE):
        yield f"the user's message does not match {rule.user!r}"
    if isinstance(rule.results, bool) and rule.results != bool(request.results):
        yield "no tool has answered yet" if rule.results else "a tool has answered already"
    if isinstance(rule.results, str) and not re.search(rule.results, listed_results(request), re.IGNORECASE):
        yield f"no result matches {rule.results!r}"
    if missing := sorted(set(rule.tools) - set(request.tools)):
        yield f"the agent does not have {', '.join(missing)}"
    types = [image.media_type for image in request.images]
    if isinstance(rule.images, int) and rule.images != len(types):
        yield f"wants {rule.images} images, and there are {len(types)}"
    if isinstance(rule.images, list) and rule.images != types:
        yield f"wants the images {', '.join(rule.images) or 'none'}, and there are {', '.join(types) or 'none'}"
    if rule.structured is not None and rule.structured != (request.schema is not None or bool(request.forced_tool)):
        yield "the answer is free text" if rule.structured else "the answer has to fit a schema"
    if absent := [call.tool for call in rule.call if call.if_missing == "fail" and call.tool not in request.tools]:
        yield f"calls {', '.join(absent)}, which the agent does not have (`if_missing` allows it)"
    if rule.call and not rule.say and not _calls(rule.call, request):
        yield "the agent has none of the tools that it calls"


def fill(rule: Rule, request: Request) -> Answer:
    """Return what a rule answers to a request."""
    result: Reply | Failure
    if rule.error:
        error = rule.error
        result = Failure(error.status, _filled(error.message, request), error.type, error.retry_after)
    elif rule.json_ is not None and request.forced_tool:
        result = Reply(calls=(ToolCall(request.forced_tool, _filled(rule.json_, request)),))
    else:
        text = _filled(rule.say, request) if rule.json_ is None else sse.dump(_filled(rule.json_, request))
        calls = tuple(ToolCall(call.tool, _filled(call.arguments, request)) for call in _calls(rule.call, request))
        result = Reply(text, calls, rule.finish)
    return Answer(result, rule.delay, rule.per_token, rule.cut_after, rule.hang)


def _calls(calls: Sequence[Call], request: Request) -> list[Call]:
    return [call for call in calls if call.if_missing == "call" or call.tool in request.tools]


def _filled(value: Any, request: Request) -> Any:
    """Put the request into templates, in one pass: braces in what people or tools said stay as they are."""
    if isinstance(value, str):
        values = {"user": request.user, "results": listed_results(request), "caller": request.caller}
        return _PLACEHOLDER.sub(lambda match: values[match[1]], value)
    if isinstance(value, dict):
        return {key: _filled(entry, request) for key, entry in value.items()}
    return [_filled(entry, request) for entry in value] if isinstance(value, list) else value


def listed_results(request: Request) -> str:
    """Return what tools answered in this turn, as a list."""
    return "\n".join(f"- {tool}: {text.replace('\n', '\n  ')}" for tool, text in request.results)


def describe(request: Request) -> str:
    """Return a request in a few lines, for messages."""
    way = f"{request.api}, {'streamed' if request.stream else 'in one piece'}"
    lines = [
        f"  model: {request.model} ({way})",
        f"  instruction: {short(request.instruction)}",
        f"  user: {short(request.user)}",
        *(f"  result of {tool}: {short(text)}" for tool, text in request.results),
        *(f"  image: {image}" for image in request.images),
        f"  tools: {', '.join(sorted(request.tools)) or 'none'}",
    ]
    if request.schema is not None or request.forced_tool:
        lines.append(f"  answer has to fit: {request.forced_tool or short(sse.dump(request.schema))}")
    return "\n".join(lines)


def short(text: str) -> str:
    """Return a text in one line, without its middle where it is long."""
    line = _words(text)
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 100]} ... {line[-90:]}"


def _words(text: str) -> str:
    return " ".join(text.split())


def _listed(title: str, lines: list[str]) -> str:
    return "\n".join([f"  {title}:", *(f"    {line}" for line in lines or ["there are none"])])
