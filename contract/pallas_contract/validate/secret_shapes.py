"""Literal secrets told from references, placeholders and other text: by the key they stand under, and by their shape.

A key counts by its last words, in any spelling (`apiKey`, `X-Api-Key`, `GITHUB_TOKEN`); a value of a well-known shape
(`sk-...`, `ghp_...`, a private key in PEM) counts under any key. Nothing here repeats a value.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from urllib.parse import parse_qsl, unquote, urlsplit

from pallas_contract.fleet.fastagent import VARIABLE

_LAST = frozenset({"apikey", "authorization", "cookie", "passphrase", "passwd", "password", "pat", "secret", "token"})
_BEFORE_KEY = frozenset(
    {"access", "account", "api", "auth", "encryption", "license", "master", "private", "secret", "signing"}
    | {"subscription"}
)
_QUERY = frozenset({"auth", "code", "key", "sig", "signature"})
"""Names of secrets in the query of a URL, besides those that are secrets everywhere."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_KNOWN = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-(?=[A-Za-z_-]*[0-9A-Z])|sk_live_|rk_live_|gh[oprsu]_|github_pat_|glpat-|xox[abeoprs]-|hf_"
    r"|npm_|pypi-|gsk_|xai-|tvly-|pplx-|r8_|AIza|SG\.)(?P<tail>[A-Za-z0-9_-]{16,})"
    r"|(?<![A-Za-z0-9])A[KS]IA(?P<aws>[0-9A-Z]{16})(?![A-Za-z0-9])"
    r"|(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
_WORDS = re.compile(r"(?:[a-z]*[0-9]{0,4}[_-])*[a-z]*[0-9]{0,4}")
"""The rest of a name in code or of a package (`hf_embedding_model_2`); the characters of a key are random."""
_PROSE = re.compile(r"[A-Za-z][a-z]*(?:[-_/'][a-z]+)*[.,;:!?)]*")
"""A word after one that also names a scheme: `Basic calculator`."""
_EXAMPLE = re.compile(r"example|your|placeholder|x{4}|0{6}|\.\.\.|dummy|no-key", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"|[x*.\u2026_-]+|<.*>|\[.*\]|\{\{.*\}\}|\{.*\}|%.*%|\$[A-Za-z_][A-Za-z0-9_]*|\$\(.*\)"
    r"|(put|insert|enter|add|paste)?[ _-]*(your|my)[ _-].*|(change|replace)[ _-]?(me|this).*|.*placeholder.*|example"
    r"|todo|[a-z]{2,6}[_-](proj-)?([x.*\u2026]+|your.*)|no[ _-](key|token|password|secret).*"
    r"|(not|no|un)[ _-]?(key[ _-]?)?(needed|required|used|set|necessary).*"
    r"|empty|none|null|nil|false|true|dummy|fake|unused|anonymous|ollama|lm-?studio|vllm|local|localhost",
    re.IGNORECASE,
)
_FILE = re.compile(r"(~|\.{1,2})/.*|/(etc|home|mnt|opt|root|run|secrets|srv|tmp|usr|var)/.*|file:.*")
_SCHEME = re.compile(r"(basic|bearer|token|apikey|key|negotiate|digest)\s+", re.IGNORECASE)
_BEARER = re.compile(r"(?:basic|bearer)\s+(?P<token>\S{8,})", re.IGNORECASE)
_PAIR = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_.-]*)(?:=|:\s*)(?P<value>.+)", re.DOTALL)
_PUBLIC_USERS = frozenset({"git", "hg", "svn"})


def is_secret_key(key: str) -> bool:
    """Return whether the value under a key of that name is a secret, in any spelling of its words."""
    words = [word.lower() for word in _WORD.findall(key)]
    while words and words[-1].isdigit():
        words.pop()
    if not words:
        return False
    if words[-2:-1] == ["per"]:  # a price
        return False
    return words[-1] in _LAST or (words[-1] == "key" and len(words) > 1 and words[-2] in _BEFORE_KEY)


def is_literal(text: str) -> bool:
    """Return whether a text under the key of a secret is one itself: no reference, placeholder or path of a file."""
    text = _SCHEME.sub("", text.strip(), count=1)
    if any(match["default"] is None for match in VARIABLE.finditer(text)):
        return False
    rest = VARIABLE.sub(lambda match: match["default"], text).strip()
    return not (_PLACEHOLDER.fullmatch(rest) or _FILE.fullmatch(rest) or (rest.isupper() and is_secret_key(rest)))


def known_shape(text: str) -> re.Match[str] | None:
    """Return the first place in a text that has the shape of somebody's key, None where there is none."""
    for match in _KNOWN.finditer(text):
        body = match["tail"] or match["aws"] or ""
        if not body or not (_EXAMPLE.search(body) or _WORDS.fullmatch(body) or len(set(body)) <= 3):
            return match
    return None


def has_secret(key: str, text: str) -> bool:
    """Return whether a text under `key` is or holds a literal secret."""
    if known_shape(text):
        return True
    if is_secret_key(key):
        return is_literal(text)
    bearer = _BEARER.fullmatch(text.strip())
    token = bearer["token"] if bearer else ""
    return (not _PROSE.fullmatch(token) and is_literal(token)) or in_url(text)


def in_url(text: str) -> bool:
    """Return whether a text is a URL that holds a password, a token as its user, or one in its query."""
    # A variable may hold characters that end a part of a URL.
    bare = VARIABLE.sub(lambda match: match["default"] or "", text.strip())
    if "://" not in bare:
        return False
    try:
        parts = urlsplit(bare)
        user = unquote(parts.username or "")
        password = None if parts.password is None else unquote(parts.password)
    except ValueError:
        return False
    if password and is_literal(password):
        return True
    if (
        password is None
        and parts.scheme in ("http", "https")
        and user
        and user not in _PUBLIC_USERS
        and is_literal(user)
    ):
        return True
    query = parse_qsl(parts.query, max_num_fields=None)
    return any((is_secret_key(name) or name.lower() in _QUERY) and is_literal(value) for name, value in query)


def in_arguments(arguments: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield index and name of each argument of a command line that is or holds a literal secret.

    As `--api-key VALUE`, `--token=VALUE`, `TOKEN=VALUE` or `-H "Authorization: VALUE"`; the name is empty for a value
    that is told by its shape alone.
    """
    for index, argument in enumerate(arguments):
        pair = _PAIR.fullmatch(argument.lstrip("-"))
        if pair and "://" not in pair["name"] and is_secret_key(pair["name"]) and is_literal(pair["value"]):
            yield index, pair["name"]
        elif has_secret("", argument) or (pair and has_secret("", pair["value"])):
            yield index, pair["name"] if pair and argument.startswith("-") else ""
    for index, (option, value) in enumerate(pairwise(arguments)):
        named = option.startswith("-") and "=" not in option and is_secret_key(option)
        if named and not value.startswith("-") and is_literal(value) and not has_secret("", value):
            yield index + 1, option


def words(command: str) -> list[str]:
    """Return the words of a command line; where its quotes do not close, those between spaces."""
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()
