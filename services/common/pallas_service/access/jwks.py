"""The public keys of an issuer: fetched in the background, and once more when a token names one that is not known."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from jwt import PyJWK

from pallas_contract import limited_file
from pallas_contract.probe import http_client

LASTING = 300.0
"""Seconds between two looks at the keys: how long one that was withdrawn is still believed."""
PAUSE = 30.0
"""Fewest seconds between two looks for any reason: tokens with made-up key ids cannot make us a flood."""
TRUSTED = 3600.0
"""Seconds for which keys are believed while their source does not answer."""
TIMEOUT = 5.0
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
"""Members of private and shared keys (RFC 7518, 6): nobody should publish them, and checking them takes seconds."""
_LONGEST = {"n": 2731, "e": 11, "x": 88, "y": 88}
"""Most characters of a number, in base64: RSA of 16,384 bits with an exponent of 64, coordinates of P-521. The time
that a signature takes grows with them, and whoever has a token can ask for it."""

Fetch = Callable[[], Awaitable[bytes]]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Key:
    """A public key; with `alg` it may only be used with that algorithm."""

    id: str | None
    alg: str | None
    jwk: PyJWK

    @property
    def usable(self) -> Any:
        """The form that PyJWT takes: its own class binds the algorithm, the bare key leaves it to the allow-list."""
        return self.jwk if self.alg else self.jwk.key


class Keys:
    """A set of keys that is looked after; `fetch` gives the JWK set (RFC 7517) as bytes."""

    def __init__(self, fetch: Fetch, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._clock = clock
        self._keys: list[Key] = []
        self._last_attempt = -TRUSTED
        self._last_success = -TRUSTED
        self._lock = asyncio.Lock()
        self.problem = ""
        """The reason why the last look brought no keys."""

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self._refresh()
            await asyncio.sleep(PAUSE if self.problem else LASTING)

    async def find(self, key_id: str | None) -> Key | None:
        """Return the key of that id, or the only one where a token names none; looked for at most every 30 s."""
        if (key := self._cached(key_id)) is None:
            await self._refresh()
            key = self._cached(key_id)
        return key

    def _cached(self, key_id: str | None) -> Key | None:
        if self._clock() - self._last_success > TRUSTED:
            return None
        matches = self._keys if key_id is None else [key for key in self._keys if key.id == key_id]
        return matches[0] if len(matches) == 1 else None  # of two with one id nobody can say which is meant

    async def _refresh(self) -> None:
        async with self._lock:  # who waited here finds what the one before has fetched
            if self._clock() - self._last_attempt < PAUSE:
                return
            self._last_attempt = self._clock()
            previous_problem = self.problem
            try:
                async with asyncio.timeout(TIMEOUT):
                    self._keys = parse(await self._fetch())
                self._last_success = self._clock()
                self.problem = "" if self._keys else "no key that can check a signature"
            except TimeoutError:
                self.problem = f"no answer in {TIMEOUT:g} s"
            except (OSError, ValueError, http_client.Unreachable) as error:
                self.problem = str(error)
            except Exception as error:  # whatever an issuer answers, the agent goes on with the keys it has
                self.problem = f"the look at the keys failed: {type(error).__name__}"
                log.exception("issuer_keys_failed")
            if self.problem != previous_problem:
                log.warning("issuer_keys", keys=len(self._keys), problem=self.problem or None)


def parse(document: bytes) -> list[Key]:
    """Return the keys of a JWK set that can check a signature; all others are left out, each by itself.

    Raises:
        ValueError: it is none. A set without a usable key is one: so all keys are taken back at once.
    """
    try:
        listed: list[Any] = json.loads(document)["keys"]
        if not isinstance(listed, list):
            raise TypeError
        keys = [_key(data) for data in listed if isinstance(data, dict)]
    except (KeyError, TypeError, ValueError, RecursionError):
        raise ValueError("not a JWK set") from None
    return [key for key in keys if key]


def _key(data: dict[str, Any]) -> Key | None:
    """Return the key, None for one that is not for signatures, not public, too large, or that PyJWT cannot read."""
    if data.get("use", "sig") != "sig" or data.get("kty") == "oct" or _PRIVATE & data.keys():
        return None
    key_id = data.get("kid")
    alg = data.get("alg")
    if not all(isinstance(text, str | None) for text in (key_id, alg)):
        return None
    if any(len(str(data.get(member, ""))) > longest for member, longest in _LONGEST.items()):
        return None
    try:
        return Key(key_id, alg, PyJWK.from_dict(data))
    except Exception:  # PyJWT lets more out than its own errors: NotImplementedError for `"alg": "none"`
        return None


def from_url(url: str) -> Fetch:
    """Return a fetch without redirects: where keys come from is said in agents.yaml and nowhere else."""

    async def fetch() -> bytes:
        reply = await http_client.request("GET", url, headers={"accept": "application/json"})
        if reply.status != 200:
            raise ValueError(f"HTTP {reply.status}")
        return reply.body

    return fetch


def from_file(path: Path) -> Fetch:
    """Return a fetch that reads again each time, so that a replaced file needs no restart."""

    async def fetch() -> bytes:
        return await asyncio.to_thread(limited_file.read, path)

    return fetch
