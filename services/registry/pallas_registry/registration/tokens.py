"""The tokens by which agents outside of agents.yaml prove who they are: read from files, kept as digests only."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pallas_contract import names
from pallas_contract.fleet.model import Registration
from pallas_contract.problems import Problem, Refused, Where

LEAST = 16
"""Fewest characters of a token."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Digest of each token by its name, and which agents are bound to which."""

    digests: Mapping[str, bytes]
    bound: Mapping[str, frozenset[str]]

    def whose(self, given: str) -> str | None:
        """The name of the token `given`. Takes as long for a wrong one as for a right one, and compares with all."""
        digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).digest()
        found = None
        for name, known in self.digests.items():
            if hmac.compare_digest(digest, known):
                found = name
        return found

    def admits(self, token: str, agent: str) -> bool:
        """Whether `token` may speak for `agent`."""
        return admits(self.bound, token, agent)


def bound(chosen: Registration) -> dict[str, frozenset[str]]:
    """The slugs of the agents that each token is bound to."""
    return {name: frozenset(map(names.slug, token.agents)) for name, token in chosen.tokens.items()}


def admits(bound: Mapping[str, frozenset[str]], token: str, agent: str) -> bool:
    """Whether `token` may speak for `agent`: it is bound to it, or neither of them is bound at all."""
    mine = bound[token]
    if mine:
        return names.slug(agent) in mine
    return not any(names.slug(agent) in others for others in bound.values())


def places(chosen: Registration, folder: Path, secrets: Path) -> dict[str, Path]:
    """Where the file of each token is: in the secrets folder, else where agents.yaml (in `folder`) says."""
    found = {}
    for name, token in chosen.tokens.items():
        mounted = secrets / names.registration_secret(name)
        found[name] = mounted if mounted.is_file() else folder / token.file
    return found


def read(chosen: Registration, files: Mapping[str, Path], agents_file: str) -> Tokens:
    """All tokens; `files` are their `places`.

    Raises:
        Refused: with each file that cannot be read or holds no token, never with what is in it.
    """
    problems, digests = [], {}
    for name, path in files.items():
        where = Where(agents_file, field=f"registry.registration.tokens.{name}.file")
        try:
            text = path.read_text("utf-8").strip()
        except OSError as error:
            reason = f"{chosen.tokens[name].file} cannot be read: {(error.strerror or 'failed').lower()}"
            problems.append(
                Problem(where, reason, "create it for the registry to read, for example `openssl rand -hex 32`")
            )
            continue
        except UnicodeDecodeError:
            text = ""
        digests[name] = hashlib.sha256(text.encode()).digest()
        if len(text) < LEAST or not text.isascii() or not text.isprintable() or " " in text:
            reason = (
                f"{chosen.tokens[name].file} holds no token: {LEAST} or more characters in one line, without spaces"
            )
            problems.append(Problem(where, reason, "`openssl rand -hex 32` makes one"))
        elif list(digests.values()).count(digests[name]) > 1:
            problems.append(Problem(where, "is the same token as another one's", "give each its own"))
    if problems:
        raise Refused(problems)
    return Tokens(digests, bound(chosen))
