"""The three prompts that seed 002 plans: an instruction around what the user gives."""

from __future__ import annotations

from collections.abc import Mapping

import mcp_types as t

from pallas_gateway.own.failures import invalid

_TEXTS = {
    "analyze-document": (
        "Document analysis workflow",
        {"document": True, "focus": False},
        "Analyze this document. Say what it is about, its main points, and what is missing or doubtful in it.",
    ),
    "create-summary": (
        "Multi-document summarization",
        {"documents": True, "focus": False},
        "Summarize these documents together: what they agree on, where they differ, and what follows.",
    ),
    "extract-entities": (
        "Entity extraction from text",
        {"text": True, "entity_types": False},
        "Extract the entities that this text names, as a JSON array of objects with `type`, `name` and `mention`.",
    ),
}
"""Name -> description, arguments and whether they are required, instruction."""

PROMPTS = [
    t.Prompt(
        name=name,
        description=description,
        arguments=[t.PromptArgument(name=argument, required=required) for argument, required in arguments.items()],
    )
    for name, (description, arguments, _) in _TEXTS.items()
]


def get(name: str, arguments: Mapping[str, str]) -> t.GetPromptResult:
    """Return the prompt `name` as one message of the user.

    Raises:
        MCPError: there is none of that name, or an argument is missing or not known.
    """
    if name not in _TEXTS:
        raise invalid("name", f"there are {', '.join(_TEXTS)}")
    description, known, instruction = _TEXTS[name]
    for argument, required in known.items():
        if required and not arguments.get(argument):
            raise invalid(argument, "Field required", f"{argument} is required")
    if unknown := sorted(arguments.keys() - known.keys()):
        raise invalid(unknown[0], "Extra inputs are not permitted")
    parts = [instruction, *(f"{argument}:\n{arguments[argument]}" for argument in known if arguments.get(argument))]
    content = t.TextContent(type="text", text="\n\n".join(parts))
    return t.GetPromptResult(description=description, messages=[t.PromptMessage(role="user", content=content)])
