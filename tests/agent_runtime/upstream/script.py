"""What the scripted model says: it uses every tool once, fills in any form, and else repeats what it was told."""

from __future__ import annotations

import json
from typing import Any

from tests.agent_runtime.upstream.scripted_model import Reply, Request

FEEDBACK = "say it again, better"
BETTER = "This is better."


def answer(request: Request) -> Reply:
    text = request.last[1]
    if request.schema:
        return Reply(json.dumps(_form(request)))
    if request.tools and "tool" not in dict(request.messages):
        return Reply("Let me see.", tuple((name, _arguments(text, schema)) for name, schema in request.tools.items()))
    if "support intent classifier" in request.system:
        return Reply("COMPLAINT")
    return Reply(f"{label(request)}: {BETTER if FEEDBACK in text else text}")


def label(request: Request) -> str:
    """Return the model, and the first words of the instruction: who is speaking."""
    return f"<{request.model} {' '.join(request.system.split()[:4])}>"


def _form(request: Request) -> dict[str, Any]:
    """Return what the workflows of fast-agent ask for: a way, a rating or the next step of a plan."""
    fields = request.schema["properties"]
    text = request.last[1]
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
    worker = "finder" if "finder" in request.system + text else "context_researcher"
    return {
        "description": "look",
        "tasks": [] if done else [{"description": "find", "agent": worker}],
        "is_complete": done,
    }


def _arguments(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    if "fields" in schema["properties"]:
        return {"message": "Which size?", "fields": [{"name": "size", "type": "text", "required": True}]}
    return dict.fromkeys(schema.get("required") or schema["properties"], text)
