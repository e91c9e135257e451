"""The static tokens that an agent or the gateway accepts, read from secret files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.fleet.source import Source
from pallas_contract.launch.secret_files import Secret
from pallas_contract.problems import Problem, refuse_errors
from pallas_service import secret_text
from pallas_service.access.static_tokens import SHORTEST

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""`b64token` of RFC 6750: what can stand in a header."""


def read(
    callers: Iterable[str], known: Iterable[Secret], tree: Source, *, project: Path, secrets: Path
) -> dict[str, str]:
    """Return caller -> token for all `callers`, from `secrets` (a folder) or where agents.yaml says.

    `known` are the secrets of the program, with the files of its tokens among them.

    Raises:
        Refused: one is missing or cannot be a token; never with its content.
    """
    written = {secret.target: secret for secret in known}
    tokens: dict[str, str] = {}
    problems: list[Problem] = []
    for caller in callers:
        secret = written[names.token_file(caller)]
        token, wrong = from_file(secret_text.locate(secret.target, secret.file, project, secrets), secret.file)
        if not wrong and token in tokens.values():
            wrong = "is also the token of another caller", "give each caller its own"
        if wrong:
            problems.append(
                tree.problem(*secret.path, message=f"{secret.file} {wrong[0]}", hint=wrong[1], code=Code.SECRET_FILE)
            )
        tokens[caller] = token
    refuse_errors(problems)
    return tokens


def from_file(path: Path, written: str) -> tuple[str, tuple[str, str] | None]:
    """Return the token in the file; else why it is none and what helps. `written` is its path in agents.yaml."""
    make = f"for example `openssl rand -hex 32 > {shlex.quote(written)}`"
    if not path.is_file():
        return "", ("does not exist", f"create it, {make}")
    token = secret_text.value(secret_text.read(path))
    if not _TOKEN.fullmatch(token):
        return "", ("is not a token: it must be one line of letters, digits and - . _ ~ + / =", make)
    if len(token) < SHORTEST:
        return "", (f"is too short to be a secret: it must have {SHORTEST} characters or more", make)
    return token, None
