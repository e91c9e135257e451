"""One file -> a document: Markdown, text and PDF, each within bounds, and never read whole before these are known."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from percolate import programs
from percolate.ingest import pdf
from percolate.memory.pieces import KNOWLEDGE_BASES, Document
from percolate.problems import Malformed

MIB = 1 << 20
_PATIENCE = 300
"""Seconds for the reader of a PDF, of which it may use `pdf.MOST_SECONDS`: the machine may have other things to do."""
LARGEST: Mapping[str, int] = {".md": 8 * MIB, ".txt": 8 * MIB, ".pdf": 64 * MIB}
"""Bytes that a file of a kind may have, by its suffix; others are no documents."""
_Pages = list[tuple[int | None, str]]


def read(path: Path, source: str, knowledge_base: str) -> Document:
    """Return the document in a file.

    Raises:
        Malformed: it is too large, damaged, or has no text.
    """
    suffix = path.suffix.lower()
    if suffix not in LARGEST:
        raise Malformed(f"is no document: {', '.join(sorted(LARGEST))} are")
    if knowledge_base not in KNOWLEDGE_BASES:
        raise Malformed(f"is in no knowledge base: its folder is one of {', '.join(KNOWLEDGE_BASES)}")
    try:
        size = path.stat().st_size
        if size > LARGEST[suffix]:
            raise Malformed(f"has {size / MIB:,.0f} MiB, and may have {LARGEST[suffix] // MIB}: split it")
        data = path.read_bytes()
    except OSError as error:
        raise Malformed(f"cannot be read: {error.strerror}") from None
    pages = _READERS[suffix](path, data)
    if not any(text.strip() for _, text in pages):
        raise Malformed("has no text" + (": a scan needs OCR first" if suffix == ".pdf" else ""))
    kinds = {".md": "markdown", ".txt": "text", ".pdf": "pdf"}
    return Document(source, knowledge_base, kinds[suffix], hashlib.sha256(data).hexdigest(), pages)


def _text(_: Path, data: bytes) -> _Pages:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Malformed(f"is not UTF-8, at byte {error.start + 1}: convert it") from None
    if "\0" in text:
        raise Malformed("has bytes of zero: it is no text")
    return [(None, text)]


def _pdf(path: Path, _: bytes) -> _Pages:
    """Return the text of each page, read by a process that may use so much memory and time, and then is ended."""
    command = programs.command(pdf.__file__, str(path))
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=_PATIENCE, env=programs.environment())
    except subprocess.TimeoutExpired:
        raise Malformed(f"was not read in {_PATIENCE} s: print it to a new PDF") from None
    if done.returncode == -signal.SIGXCPU:
        raise Malformed(f"was not read in {pdf.MOST_SECONDS} s of processor time: print it to a new PDF")
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {"problem": f"ended its reader, with code {done.returncode}: print it to a new PDF"}
    if "problem" in answer:
        raise Malformed(answer["problem"])
    return [(number, text) for number, text in answer["pages"]]


_READERS: Mapping[str, Callable[[Path, bytes], _Pages]] = {".md": _text, ".txt": _text, ".pdf": _pdf}
