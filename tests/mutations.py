"""Strategies for input that was once right: documents with values in the wrong places, text with bytes knocked about.

A mutation names its place by a number, so that hypothesis shrinks a failure to the fewest changes and plainest values.
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

_YAML = [
    "yes",
    "NO",
    "~",
    "",
    "0x1",
    "017",
    "1e3",
    ".5",
    "1:30",
    "2024-01-01",
    ".inf",
    ".nan",
    "<<",
    "=",
    "!!int 3",
    "!x",
]
_YAML += [
    "*a",
    "- x",
    "? x",
    ": ",
    "# c",
    "{a: b}",
    "[1]",
    "[[[[",
    "|",
    ">",
    "@x",
    "`x",
    "%YAML",
    "---",
    "...",
    "'",
    '"',
    "\\",
]
_SHELLS = ["{{ .Values.x }}", "{{- range }}", "${HOME}", "$$", "$", "${x:-y}", "${x?err}", "$(id)", "%(x)s", "${{x}}"]
_CHARACTERS = [
    "\n",
    "a\r\nb",
    "\t",
    "\0",
    "\x1b[31m",
    "\x7f",
    "\x85",
    "\u2028",
    "\ufeff",
    "\ufffe",
    "\U0001f600",
    "e\u0301",
]
_CHARACTERS += ["\u202e", "\u0130", "\u0430", "\uff41", "\xb2", "\u0663", "\u200b"]
_PATHS = ["../x", "/etc/passwd", "/", "//", "a/../b", "./a", "a//b", ".", "..", "a\\b", "~root", "con", "a" * 300]
_NAMES = [
    "a" * 41,
    "a" * 64,
    "a" * 5000,
    "-a",
    "a_",
    "a__b",
    "A",
    "registry",
    "agents",
    "localhost",
    "PATH",
    "PALLAS_BIND",
]
_NETWORKS = ["10.0.0.0/8", "::/0", "::1", "169.254.169.254", "::ffff:169.254.169.254", "fe80::1%eth0", "1.2.3.4/33"]
_NETWORKS += [
    "10.213.0.0/30",
    "http://[::1",
    "http://a:99999",
    "http://user:pw@h/",
    "https://{name}",
    "https://x/{name}",
]
TEXTS = st.sampled_from([*_YAML, *_SHELLS, *_CHARACTERS, *_PATHS, *_NAMES, *_NETWORKS]) | st.text(max_size=20)
NUMBERS = st.sampled_from(
    [0, -1, 1, 64, 65535, 65536, 2**31, 2**64, 10**30, 1.5, float("inf"), float("nan"), 1e300, -0.0]
)
_FIELDS = (
    "a b c_c [a] model name env secrets labels depends_on access port module card replicas publish egress jwt tokens"
)
_FIELDS += " file image required forward reach servers store resources memory url target command headers api_key"
KEYS = st.sampled_from(_FIELDS.split(" "))
VALUES = st.recursive(
    TEXTS | NUMBERS | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | TEXTS, inner, max_size=3),
    max_leaves=5,
)
_CHANGES = st.tuples(
    st.integers(0, 400),
    st.sampled_from(["set", "add", "drop", "rename", "copy"]),
    KEYS | TEXTS,
    VALUES,
)
_BYTES = [b"&a ", b"*a", b"<<: *a\n", b"{", b"}", b"[", b"]", b": ", b"- ", b"\n", b"#", b"!!python/object:os.system "]
_BYTES += [b"\0", b"\xff", b"\t", b"---\n", b"%YAML 1.1\n", b"? ", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"9" * 30]


def documents(base: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return documents that are `base` with up to three changes."""
    return st.lists(_CHANGES, max_size=3).map(lambda changes: _changed(base, changes))


def texts(base: bytes) -> st.SearchStrategy[bytes]:
    """Return files that are `base` with up to three pieces put in, or taken out."""
    pieces = st.tuples(st.integers(0, len(base)), st.sampled_from(_BYTES), st.integers(0, 9))
    return st.lists(pieces, max_size=3).map(lambda changes: _knocked(base, changes))


def _changed(base: dict[str, Any], changes: list[tuple[int, str, str, Any]]) -> dict[str, Any]:
    document = copy.deepcopy(base)
    for number, way, key, value in changes:
        places = list(_places(document))
        holder, index = places[number % len(places)]
        target = holder[index]
        if way == "add" and isinstance(target, dict):
            target[key] = value
        elif way == "add" and isinstance(target, list):
            target.append(value)
        elif way == "drop":
            del holder[index]
        elif way == "rename" and isinstance(holder, dict):
            holder[key] = holder.pop(index)
        elif way == "copy":
            other, place = places[(number * 7 + 1) % len(places)]
            holder[index] = copy.deepcopy(other[place])
        else:
            holder[index] = value
        if not document:
            break
    return document


def _places(value: Any) -> Any:
    """Yield each place of a document as the container and the key or index in it."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for index, inner in list(entries):
        yield value, index
        yield from _places(inner)


def _knocked(base: bytes, changes: list[tuple[int, bytes, int]]) -> bytes:
    for place, piece, cut in changes:
        base = base[:place] + (piece if cut < 5 else b"") + base[place + cut :]
    return base
