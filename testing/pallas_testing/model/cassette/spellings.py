"""Where a value stands in a text, however JSON, URLs and HTML have escaped it, within each other as well."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Iterator, Mapping

_LAYERS = 6
"""How often texts within texts are read: JSON in JSON in a URL needs three."""
_HEX = "[0-9a-fA-F]"
_NEXT = "%[89abAB][0-9a-fA-F]"
"""A further octet of a character in UTF-8."""
_ESCAPE = re.compile(
    rf"\\u[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}|\\u{_HEX}{{4}}|\\x{_HEX}{{2}}|\\[\"'\\/bfnrt]"
    rf"|%[0-7]{_HEX}|%[c-dC-D]{_HEX}{_NEXT}|%[eE]{_HEX}(?:{_NEXT}){{2}}|%[fF]{_HEX}(?:{_NEXT}){{3}}"
    r"|&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|amp|apos|gt|lt|quot);"
)
"""One escaped character."""
_LETTERS: Mapping[str, str] = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def of(value: str) -> set[str]:
    """Return a value as it is, as forms write its spaces, and in base64 with and without padding."""
    data = value.encode("utf-8", "surrogatepass")
    encoded = {code.decode() for code in (base64.b64encode(data), base64.urlsafe_b64encode(data))}
    return {value, value.replace(" ", "+"), *encoded, *(code.rstrip("=") for code in encoded)}


def replaced(text: str, patterns: Iterable[re.Pattern[str]], mark: str) -> str:
    """Return a text with `mark` for each match of a pattern, in the text or in what its escapes stand for."""
    found = [(start, end) for layer in _layers(text) for pattern in patterns for start, end in layer.spans(pattern)]
    pieces = []
    done = 0
    for start, end in sorted(found):
        if start >= done:
            pieces += [text[done:start], mark]
        done = max(done, end)
    return "".join([*pieces, text[done:]])


class _Layer:
    """A text after some unescaping: `starts` and `ends` say where each of its characters stands in the original."""

    def __init__(self, text: str, starts: list[int], ends: list[int]) -> None:
        self.text = text
        self._starts = starts
        self._ends = ends

    def spans(self, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
        """Yield where in the original the matches begin and end."""
        for match in pattern.finditer(self.text):
            yield self._starts[match.start()], self._ends[match.end() - 1]

    def unescaped(self) -> _Layer:
        """Return the layer beneath."""
        texts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        done = 0
        for match in _ESCAPE.finditer(self.text):
            character = _character(match[0])
            texts += [self.text[done : match.start()], character]
            starts += [*self._starts[done : match.start()], *[self._starts[match.start()]] * len(character)]
            ends += [*self._ends[done : match.start()], *[self._ends[match.end() - 1]] * len(character)]
            done = match.end()
        return _Layer("".join([*texts, self.text[done:]]), starts + self._starts[done:], ends + self._ends[done:])


def _layers(text: str) -> Iterator[_Layer]:
    layer = _Layer(text, list(range(len(text))), list(range(1, len(text) + 1)))
    yield layer
    for _ in range(_LAYERS):
        if not _ESCAPE.search(layer.text):
            return
        layer = layer.unescaped()
        yield layer


def _character(escape: str) -> str:
    """Return what an escape stands for."""
    if escape.startswith("&"):
        return html.unescape(escape)
    if escape.startswith("%"):
        return bytes.fromhex(escape.replace("%", "")).decode("utf-8", "replace")
    if escape[1] == "u":
        return bytes.fromhex(escape.replace("\\u", "")).decode("utf-16-be", "surrogatepass")
    if escape[1] == "x":
        return chr(int(escape[2:], 16))
    return _LETTERS.get(escape[1], escape[1])
