"""What the scripted model says: it uses every tool once, fills in any form, and else repeats what it was told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pallas_testing.model import Reply, Request, ToolCall

FEEDBACK = "say it again, better"
BETTER = "This is better."


def answer(request: Request) -> Reply:
    text = request.messages[-1].text
    if request.schema:
        return Reply(json.dumps(_form(request)))
    if request.tools and all(message.role != "tool" for message in request.messages):
        return Reply(
            "Let me see.",
            tuple(ToolCall(name, _arguments(text, tool.parameters)) for name, tool in request.tools.items()),
        )
    if "support intent classifier" in request.instruction:
        return Reply("COMPLAINT")
    return Reply(f"{label(request)}: {BETTER if FEEDBACK in text else text}")


def label(request: Request) -> str:
    """Return the model, and the first words of the instruction: who is speaking."""
    return f"<{request.model} {' '.join(request.instruction.split()[:4])}>"


def _form(request: Request) -> dict[str, Any]:
    """Return what the workflows of fast-agent ask for: a way, a rating or the next step of a plan."""
    assert request.schema is not None
    fields = request.schema["properties"]
    text = request.messages[-1].text
    if "confidence" in fields:
        return {"agent": "code_expert", "confidence": "high", "reasoning": "it is about code"}
    if "rating" in fields:
        done = BETTER in text
        return {
            "rating": "EXCELLENT" if done else "FAIR",
            "feedback": FEEDBACK,
            "needs_improvement": not done,
            "focus_areas": [],
        }
    done = "found it" in text
    worker = "finder" if "finder" in request.instruction + text else "context_researcher"
    return {
        "description": "look",
        "tasks": [] if done else [{"description": "find", "agent": worker}],
        "is_complete": done,
    }


def _arguments(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    if "fields" in schema["properties"]:
        return {"message": "Which size?", "fields": [{"name": "size", "type": "text", "required": True}]}
    return dict.fromkeys(schema.get("required") or schema["properties"], text)
