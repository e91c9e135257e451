"""The answer of an agent: it fits the output schema, or there is none."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from typing import Any

from percolate import programs
from percolate.agentlets import comparison
from percolate.agentlets.definition import Definition
from percolate.agentlets.runners import Runner, Task
from percolate.problems import Problem

SECONDS = 50
"""Of both answers together; the gateway gives 60 for all of the call."""


class WrongAnswer(Exception):
    """Why an answer is not accepted."""


async def ask(runner: Runner, definition: Definition, *, tenant: str, prompt: str) -> dict[str, Any]:
    """Return the answer of an agent. One that does not fit is asked for once more, with the reason.

    Raises:
        Problem: there is none in time, or the second one does not fit either.
    """
    try:
        async with asyncio.timeout(SECONDS):
            return await _asked(runner, definition, tenant, prompt)
    except TimeoutError:
        raise Problem(f"{definition.uri} gave no answer in {SECONDS} s") from None


async def _asked(runner: Runner, definition: Definition, tenant: str, prompt: str) -> dict[str, Any]:
    task = Task(instruction(definition), prompt, tuple(definition.tools), tenant)
    try:
        return await accepted(definition, await runner.run(task))
    except WrongAnswer as error:
        again = (
            f"{prompt}\n\nYour last answer was not accepted: {error}. Answer once more, with one JSON object that fits."
        )
        task = Task(task.instruction, again, task.tools, tenant)
    try:
        return await accepted(definition, await runner.run(task))
    except WrongAnswer as error:
        raise Problem(f"{definition.uri} gave no answer that fits its output_schema, twice: {error}") from None


def instruction(definition: Definition) -> str:
    """Return the system prompt, with what the answer has to look like."""
    schema = json.dumps(definition.output_schema, ensure_ascii=False, sort_keys=True)
    return (
        f"{definition.description}\n\nAnswer with one JSON object and nothing around it. It fits this schema:\n{schema}"
    )


async def accepted(definition: Definition, text: str) -> dict[str, Any]:
    """Return the object that a text is.

    Raises:
        WrongAnswer: it is none, or does not fit.
    """
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        raise WrongAnswer("it is no JSON") from None
    if reason := await _compared(definition.output_schema, answer):
        raise WrongAnswer(reason)
    return dict(answer)


async def _compared(schema: Mapping[str, Any], answer: Any) -> str:
    """Return why an answer does not fit, found by a process that may use so much memory and time, and then is ended."""
    process = await asyncio.create_subprocess_exec(
        *programs.command(comparison.__file__), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=programs.environment()
    )
    try:
        output, _ = await process.communicate(json.dumps([schema, answer]).encode())
        return str(json.loads(output))
    except ValueError:
        return f"{comparison.IMPOSSIBLE} in {comparison.MOST_SECONDS} s of processor time"
    finally:
        if process.returncode is None:  # whoever asked is gone
            process.kill()
            await process.wait()
