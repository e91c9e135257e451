"""Output of a build that failed -> the lines that say why: pip's, npm's or apt's own, not docker's around them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]")
_STEP_LINE = re.compile(r"(?:#(?P<step>\d+) )?\d+\.\d+ (?P<text>.*)")
"""A line of the program that a step runs, behind the seconds since it began; docker repeats the last ten at its end."""
_STEP_FAILED = re.compile(r"#(\d+) ERROR: ")
_TELLING = ("ERROR: ", "error: ", "npm error ", "npm ERR! ", "E: ", "bake: ")
_OUR_OWN = "bake: this failed: "
_MOST = 12


def reason(output: str) -> list[str]:
    """Return the lines of a build's output that say why it failed, the last one last; none where nothing does.

    They are those of the program that the step ran, from its first error to its last; without such docker's own.
    """
    lines = [_ESCAPES.sub("", line).rstrip() for line in output.replace("\r", "\n").splitlines()]
    texts = _of_step(lines)
    telling = [number for number, line in enumerate(texts) if line.startswith(_TELLING)]
    if others := [number for number in telling if not texts[number].startswith(_OUR_OWN)]:
        telling = others
    if telling:
        return [line for line in texts[telling[0] : telling[-1] + 1] if line.strip()][-_MOST:]
    return [line for line in lines if line.startswith("ERROR: ")][-1:]


def _of_step(lines: Sequence[str]) -> list[str]:
    """Return what the step that failed has printed, each line once."""
    failed = next((match[1] for match in map(_STEP_FAILED.match, lines) if match), None)
    matches = [match for match in map(_STEP_LINE.fullmatch, lines) if match]
    streamed = [match["text"] for match in matches if failed and match["step"] == failed]
    return list(dict.fromkeys(streamed or [match["text"] for match in matches if match["step"] is None]))
