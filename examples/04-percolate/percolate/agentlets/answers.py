"""The answer of an agent: it fits the output schema, or there is none."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from referencing.exceptions import Unresolvable

from percolate.agentlets.definition import Definition
from percolate.agentlets.runners import Runner, Task
from percolate.problems import Problem

_SHOWN = 300


class WrongAnswer(Exception):
    """Why an answer is not accepted."""


async def ask(runner: Runner, definition: Definition, *, tenant: str, prompt: str) -> dict[str, Any]:
    """Return the answer of an agent. One that does not fit is asked for once more, with the reason.

    Raises:
        Problem: there is none, or the second one does not fit either.
    """
    task = Task(instruction(definition), prompt, tuple(definition.tools), tenant)
    try:
        return accepted(definition, await runner.run(task))
    except WrongAnswer as error:
        again = (
            f"{prompt}\n\nYour last answer was not accepted: {error}. Answer once more, with one JSON object that fits."
        )
        task = Task(task.instruction, again, task.tools, tenant)
    try:
        return accepted(definition, await runner.run(task))
    except WrongAnswer as error:
        raise Problem(f"{definition.uri} gave no answer that fits its output_schema, twice: {error}") from None


def instruction(definition: Definition) -> str:
    """Return the system prompt, with what the answer has to look like."""
    schema = json.dumps(definition.output_schema, ensure_ascii=False, sort_keys=True)
    return (
        f"{definition.description}\n\nAnswer with one JSON object and nothing around it. It fits this schema:\n{schema}"
    )


def accepted(definition: Definition, text: str) -> dict[str, Any]:
    """Return the object that a text is.

    Raises:
        WrongAnswer: it is none, or does not fit.
    """
    try:
        answer = json.loads(text)
        Draft202012Validator(dict(definition.output_schema)).validate(answer)
    except ValueError:
        raise WrongAnswer("it is no JSON") from None
    except ValidationError as error:
        where = ".".join(map(str, error.absolute_path))
        raise WrongAnswer(f"{where}: {error.message[:_SHOWN]}" if where else error.message[:_SHOWN]) from None
    except (RecursionError, Unresolvable):
        raise WrongAnswer("it cannot be compared with the schema") from None
    return dict(answer)
