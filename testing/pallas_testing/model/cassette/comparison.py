"""Two requests compared by meaning: what does not count, what is the same, and what differs."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator

from pallas_testing.model.exchange import Message, Request

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_VOLATILE = (
    (re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"), "<date>"),
    (re.compile(rf"\d{{1,2}} (?:{_MONTHS}) \d{{4}}|(?:{_MONTHS}) \d{{1,2}}, \d{{4}}"), "<date>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE), "<uuid>"),
    (re.compile(r"\b(localhost|127\.0\.0\.1|\[::1\]):\d+"), r"\g<1>:<port>"),
)
"""What changes from run to run and means the same: dates, UUIDs, ports of this machine."""


def parts(request: Request, scrub: Callable[[str], str]) -> dict[str, str]:
    """Return a request as named texts; two requests mean the same where all of them are equal.

    The API, streaming, ids of calls, the order of tools and keys, and white space are not in them.
    """
    texts = {"model": request.model, "instruction": request.instruction}
    for number, message in enumerate(request.messages, 1):
        texts[f"message {number} ({message.role})"] = _message(message)
    for name in sorted(request.tools):
        tool = request.tools[name]
        texts[f"tool {name}"] = f"{tool.description}\n{_dump(tool.parameters)}"
    if request.schema is not None:
        texts["schema of the answer"] = _dump(request.schema)
    texts["forced tool"] = request.forced_tool
    return {label: normal(scrub(text)) for label, text in texts.items()}


def normal(text: str) -> str:
    """Return a text without what does not count, line by line."""
    for pattern, word in _VOLATILE:
        text = pattern.sub(word, text)
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(filter(None, lines))


def same(left: dict[str, str], right: dict[str, str]) -> bool:
    """Return whether two requests mean the same: where lines break does not count."""
    flat = ({label: text.split() for label, text in side.items()} for side in (left, right))
    return next(flat) == next(flat)


def differences(recorded: dict[str, str], asked: dict[str, str]) -> Iterator[str]:
    """Yield what differs, part by part: lines that were recorded with `-`, lines that were asked with `+`."""
    for label in dict.fromkeys([*recorded, *asked]):
        if label not in asked:
            yield f"{label}: recorded, and not asked now"
        elif label not in recorded:
            yield f"{label}: asked now, and not recorded"
            yield from (f"  + {line}" for line in asked[label].splitlines())
        elif recorded[label].split() != asked[label].split():
            yield f"{label}:"
            lines = difflib.unified_diff(recorded[label].splitlines(), asked[label].splitlines(), lineterm="", n=1)
            yield from (f"  {line[0]} {line[1:]}" for line in list(lines)[2:] if not line.startswith("@@"))


def distance(recorded: dict[str, str], asked: dict[str, str]) -> tuple[int, float]:
    """Return how far two requests are apart: parts that differ, then how unlike these are."""
    labels = [label for label in {**recorded, **asked} if recorded.get(label) != asked.get(label)]
    ratios = (
        difflib.SequenceMatcher(None, recorded.get(label, "")[:2000], asked.get(label, "")[:2000]).quick_ratio()
        for label in labels
    )
    return len(labels), -sum(ratios)


def _message(message: Message) -> str:
    calls = (f"calls {call.tool} {_dump(call.arguments)}" for call in message.calls)
    images = (f"image {image if image.data or image.url else image.media_type}" for image in message.images)
    tool = [f"from {message.tool}"] if message.tool else []
    return "\n".join([*tool, message.text, *calls, *images])


def _dump(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, indent=1, default=dict)
