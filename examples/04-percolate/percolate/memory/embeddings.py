"""Vectors of texts: from an OpenAI-compatible endpoint, or made here, the same for the same text."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx

from percolate.problems import EmbeddingFailed
from percolate.settings import Settings

AT_ONCE = 64
"""Texts of one request."""
MOST_NUMBERS = 8192
"""Numbers of a vector."""
_TIMEOUT = httpx.Timeout(20, connect=5)
_WORD = re.compile(r"\w+")
_STAND_IN_NUMBERS = 256


class Embedder(Protocol):
    """Whoever turns texts into vectors. Those of one `model` and length can be compared."""

    model: str

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return a vector of 32-bit numbers for each text.

        Raises:
            EmbeddingFailed: there is none.
        """


class StandIn:
    """Vectors of the letters of words: texts that share words, or most letters of words, are near each other."""

    model = "letters"

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return a vector for each text; it cannot fail."""
        return [_letters(text) for text in texts]


class Endpoint:
    """`POST /embeddings` of an OpenAI-compatible API."""

    def __init__(self, settings: Settings, client: httpx.Client) -> None:
        self.model = settings.embeddings_model
        self._url = f"{settings.embeddings_url}/embeddings"
        self._host = urlsplit(settings.embeddings_url).hostname
        self._headers = {"Authorization": f"Bearer {settings.embeddings_key}"} if settings.embeddings_key else {}
        self._client = client

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return a vector for each text, `AT_ONCE` of them in a request.

        Raises:
            EmbeddingFailed: the endpoint cannot be reached, refuses, or answers something else than vectors.
        """
        vectors: list[bytes] = []
        for start in range(0, len(texts), AT_ONCE):
            vectors += self._ask(texts[start : start + AT_ONCE])
        if len({len(vector) for vector in vectors}) > 1:
            raise self._failed("answers vectors of different lengths")
        return vectors

    def _ask(self, texts: Sequence[str]) -> list[bytes]:
        body = {"model": self.model, "input": list(texts), "encoding_format": "float"}
        try:
            reply = self._client.post(self._url, json=body, headers=self._headers, timeout=_TIMEOUT)
        except httpx.HTTPError as error:
            raise self._failed(f"gives no answer ({type(error).__name__})") from None
        if reply.status_code != 200:
            raise self._failed(f"answers HTTP {reply.status_code}")
        try:
            entries = sorted(reply.json()["data"], key=lambda entry: entry["index"])
            vectors = [_vector(entry["embedding"]) for entry in entries]
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            raise self._failed("answers no list of embeddings") from None
        if len(vectors) != len(texts):
            raise self._failed(f"answers {len(vectors)} vectors for {len(texts)} texts")
        return vectors

    def _failed(self, reason: str) -> EmbeddingFailed:
        return EmbeddingFailed(f"the embedding endpoint {self._host} {reason}")


def embedder(settings: Settings, client: httpx.Client | None = None) -> Embedder:
    """Return what the settings name."""
    return Endpoint(settings, client or httpx.Client()) if settings.embeddings_url else StandIn()


def _vector(values: Sequence[Any]) -> bytes:
    vector = array("f", values)
    if not 0 < len(vector) <= MOST_NUMBERS or not all(map(math.isfinite, vector)):
        raise ValueError("no vector")
    return _unit(vector)


def _letters(text: str) -> bytes:
    vector = array("f", bytes(4 * _STAND_IN_NUMBERS))
    for word in _WORD.findall(text.casefold()):
        framed = f" {word} "
        for start in range(len(framed) - 2):
            place, sign = _place(framed[start : start + 3])
            vector[place] += sign
    return _unit(vector)


@lru_cache(4096)  # the same letters follow one another again and again
def _place(letters: str) -> tuple[int, int]:
    digest = blake2b(letters.encode(), digest_size=4).digest()
    return int.from_bytes(digest[:2]) % _STAND_IN_NUMBERS, 1 if digest[3] & 1 else -1


def _unit(vector: array[float]) -> bytes:
    length = math.sqrt(math.sumprod(vector, vector))
    return array("f", (value / length for value in vector)).tobytes() if length else vector.tobytes()
