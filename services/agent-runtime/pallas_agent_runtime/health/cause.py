"""The line of a program's output that says why it ended: after it often comes advice. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_FRAME = re.compile(r"^[\s|+\u2500-\u257f\u25b6\u00d7-]+|[\s|\u2500-\u257f]+$")
"""Frames around messages, as uv and rich draw them, and the bar of Python's groups of exceptions."""
_WRAPPED = "\u2570"
"""Corner of a frame: the lines that follow belong to the message beside it."""
_ADVICE = re.compile(
    r"(hint|note|help|tip|usage|try|see|warning|info|debug|npm (warn|notice))\b.*|node\.js v\d.*|at .*|file \".*|\W*"
    r"|npm err(or|!)( \d+| a complete log.*| (code|syscall|path|errno|dest|command|cwd|signal)\b.*)?",
    re.IGNORECASE,
)
_NPM = re.compile(r"npm err(or|!) (\d{3} )?(?P<text>.+)", re.IGNORECASE)
_ERROR = re.compile(
    r"([\w./-]+: )*(\w+ )?(?i:error|fatal|critical|panic)\b\W.*|[\w.]*\w(Error|Exception|ExceptionGroup)\b(\W.*)?"
)
_CAUSE = re.compile(r"(caused by|cause): *(?P<text>.+)", re.IGNORECASE)


def line(lines: Sequence[str]) -> str:
    """Return the line of `lines`, the end of an output, that names the cause; empty where there are none.

    That is the last one that calls itself an error, with what it says it was caused by (uv puts its `hint:` after
    both); npm's first one, since where its log is comes last; else the last line that is no advice.
    """
    texts = [text for text in _texts(lines) if not _ADVICE.fullmatch(text)]
    if not texts:
        return next((text.strip() for text in reversed(lines) if text.strip()), "")
    for text in texts:
        if match := _NPM.fullmatch(text):
            return f"npm: {match['text'].strip()}"
    errors = [index for index, text in enumerate(texts) if _ERROR.fullmatch(text)]
    if not errors:
        return texts[-1]
    following = (_CAUSE.fullmatch(text) for text in texts[errors[-1] + 1 :])
    causes = [match["text"] for match in following if match]
    return ": ".join([texts[errors[-1]].removesuffix(":"), *causes[-1:]])


def _texts(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines without frames; a message that is wrapped beside one is whole again."""
    message = ""
    for written in lines:
        text = _FRAME.sub("", written)
        if message and written.startswith("  ") and not _ADVICE.fullmatch(text):
            message = f"{message} {text}"
            continue
        if message:
            yield message
            message = ""
        if _WRAPPED in written and text:
            message = text
        else:
            yield text
    if message:
        yield message
