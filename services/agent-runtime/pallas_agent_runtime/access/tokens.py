"""Static tokens: read from secret files, kept as digests, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from pathlib import Path

from pallas_agent_runtime.config import environment
from pallas_contract import names
from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.source import Source
from pallas_contract.launch import credentials
from pallas_contract.problems import Problem, refuse_errors

SHORTEST = 16
"""Fewest characters of a token: 64 bits of chance where it is hexadecimal."""
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""`b64token` of RFC 6750: what can stand in a header."""


class StaticTokens:
    """Knows callers by their tokens; the tokens themselves are forgotten."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        """`tokens` maps caller -> token."""
        self._callers = [(_digest(token), caller) for caller, token in tokens.items()]

    def caller(self, token: str) -> str | None:
        """Whose token this is. Every known one is compared, so that time tells nothing."""
        digest, found = _digest(token), None
        for known, caller in self._callers:
            if hmac.compare_digest(known, digest):
                found = caller
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def read(fleet: Fleet, tree: Source, name: str, project: Path, secrets: Path) -> dict[str, str]:
    """Caller -> token, for all that agent `name` accepts: from `secrets` (a folder) or the files agents.yaml names.

    Raises:
        Refused: one is missing or cannot be a token; never with its content.
    """
    places = credentials.places(fleet, name)
    out: dict[str, str] = {}
    found: list[Problem] = []
    for caller, secret in fleet.agent(name).access.tokens.items():
        key = names.token_file(caller)
        token, wrong = _read(environment.locate(key, secret.file, project, secrets))
        if not wrong and token in out.values():
            wrong = "is also the token of another caller", "give each caller its own"
        if wrong:
            found.append(tree.problem(*places[key], message=f"{secret.file} {wrong[0]}", hint=wrong[1]))
        out[caller] = token
    refuse_errors(found)
    return out


def _read(path: Path) -> tuple[str, tuple[str, str] | None]:
    """The token in the file, and what is wrong with it in words and what helps."""
    make = f"for example `openssl rand -hex 32 > {path.name}`"
    if not path.is_file():
        return "", ("does not exist", f"create it, {make}")
    token = environment.value(environment.read_text(path))
    if not _TOKEN.fullmatch(token):
        return "", ("is not a token: it must be one line of letters, digits and - . _ ~ + / =", make)
    if len(token) < SHORTEST:
        return "", (f"is too short to be a secret: it must have {SHORTEST} characters or more", make)
    return token, None
