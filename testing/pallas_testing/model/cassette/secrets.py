"""Secrets taken out of text before it is written: those that were sent, and whatever has the shape of one."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from pallas_testing.model.cassette import spellings

MARK = "<secret>"
SHORTEST = 8
"""Characters of the shortest value that is looked for within words, too."""
_SHORT = 4
"""Characters of the shortest one that is looked for where it stands alone; it must have a digit and a letter."""
_LONG_WORD = 16
"""Letters of which a word in one case is taken for a key; a shorter one may be a word, and hiding it changes texts."""

_NAMES = re.compile(r"auth|cookie|credential|key|passw|secret|sig|token", re.IGNORECASE)
_SHAPES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
    r"|\b(?:sk|pk|rk)[-_][A-Za-z0-9_*-]{8,}"
    r"|\b(?:gh[pousr]|github_pat|glpat|hf|xox[abprs])[-_][A-Za-z0-9_-]{10,}"
    r"|\bAIza[A-Za-z0-9_-]{20,}|\bA[KS]IA[0-9A-Z]{12,}"
    r"|\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*",
    re.DOTALL,
)
_BEARER = re.compile(r"(\b(?:Bearer|Basic)\s+)(?=\S*\d)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_USERINFO = re.compile(r"(://)[^/\s:@]*:[^/\s@]+(@)")
_QUERY = re.compile(
    r"([?&](?:[\w-]*(?:key|token|secret|passw(?:or)?d|signature|credential)|sig)=)[^&\s\"'<>]+", re.IGNORECASE
)
_NAMED = re.compile(
    r"((?:api[_-]?key|secret|token|passw(?:or)?d)(?:\\*[\"'])?\s*[:=]\s*(?:\\*[\"'])?)"
    r"(?=[^\s\"',;\\]*\d)[^\s\"',;<\\]{8,}",
    re.IGNORECASE,
)


class Scrubber:
    """What is secret in this recording: the values of headers, URLs and variables that it was told of."""

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        """`env`: variables of which those with the name of a secret are one."""
        self._values: dict[str, re.Pattern[str]] = {}
        self._add(value for name, value in (env or {}).items() if _NAMES.search(name))

    def learn(self, headers: Mapping[str, str], url: str) -> None:
        """Take the secrets of one request: its headers, and what its URL has of them."""
        for name, value in headers.items():
            if _NAMES.search(name):
                self._add([value, *re.split(r"[\s;,]+|(?<=\w)=(?=[^\s=])", value), *_basic(value)])
        parts = urlsplit(url)
        self._add(value for name, value in parse_qsl(parts.query) if _NAMES.search(name))
        self._add(unquote(value) for value in (parts.username, parts.password) if value)

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        text = spellings.replaced(text, self._values.values(), MARK)
        text = _SHAPES.sub(MARK, text)
        for pattern in (_BEARER, _QUERY, _NAMED):
            text = pattern.sub(rf"\g<1>{MARK}", text)
        return _USERINFO.sub(rf"\g<1>{MARK}\g<2>", text)

    def data(self, value: Any) -> Any:
        """Return plain data without secrets, in keys either."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.data(entry) for key, entry in value.items()}
        return [self.data(entry) for entry in value] if isinstance(value, list) else value

    def _add(self, values: Iterable[str]) -> None:
        for value in values:
            if value not in self._values and _is_telling(value):
                either = "|".join(map(re.escape, sorted(spellings.of(value), key=len, reverse=True)))
                alone = len(value) < SHORTEST
                self._values[value] = re.compile(rf"(?<![A-Za-z0-9])(?:{either})(?![A-Za-z0-9])" if alone else either)


def _is_telling(value: str) -> bool:
    """Return True for a value that is no word or number of a text."""
    if value.isalpha():
        cased = value in (value.lower(), value.upper(), value.capitalize())
        return len(value) >= (_LONG_WORD if cased else SHORTEST)
    mixed = any(character.isdigit() for character in value) and any(character.isalpha() for character in value)
    return len(value) >= SHORTEST or (len(value) >= _SHORT and mixed)


def _basic(value: str) -> Iterator[str]:
    """Yield user and password of an `authorization: Basic`."""
    scheme, _, encoded = value.partition(" ")
    if scheme.lower() == "basic":
        try:
            yield from base64.b64decode(encoded, validate=True).decode("utf-8", "replace").split(":", 1)
        except binascii.Error:
            return
