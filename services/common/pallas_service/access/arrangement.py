"""From one `access` of agents.yaml to the gate that it asks for."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_contract.fleet.access_model import Access, Jwt
from pallas_service.access.gate import Gate
from pallas_service.access.static_tokens import StaticTokens

if TYPE_CHECKING:
    from pallas_service.access.jwks import Keys


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The gate, None where everybody may enter, and the keys it needs, None where it needs none."""

    gate: Gate | None = None
    keys: Keys | None = None

    @property
    def problem(self) -> str:
        """Return why callers with a token of the issuer are turned away at present; empty when they are not."""
        return f"keys of the issuer: {self.keys.problem}" if self.keys and self.keys.problem else ""

    def background(self) -> list[Coroutine[Any, Any, None]]:
        """Return what has to run as long as the gate is there."""
        return [self.keys.run()] if self.keys else []


def arrange(
    access: Access, tokens: Mapping[str, str], *, resource: str, audience: str, keys_file: Path | None
) -> Arrangement:
    """Return the gate of `access`. `tokens` maps caller -> token, `keys_file` is where `jwks_file` is to be found.

    `resource` is the URL that callers know the program by, `audience` the `aud` of JWTs for it.
    """
    if not (access.tokens or access.jwt):
        return Arrangement()
    from pallas_service.access.verifier import Trust, Verifier  # noqa: PLC0415

    static = StaticTokens(tokens)
    if access.jwt is None:
        return Arrangement(Gate(Verifier(static), resource))
    keys = _keys(access.jwt, keys_file)
    trust = Trust(access.jwt.issuer, audience, tuple(access.jwt.algorithms), keys)
    scopes = tuple(access.jwt.scopes)
    return Arrangement(Gate(Verifier(static, trust, scopes), resource, access.jwt.issuer, scopes), keys)


def _keys(jwt: Jwt, keys_file: Path | None) -> Keys:
    # PyJWT and cryptography come with it, for those who need them
    from pallas_service.access.jwks import Keys, from_file, from_url  # noqa: PLC0415

    return Keys(from_url(jwt.jwks_url) if jwt.jwks_url else from_file(keys_file or Path(str(jwt.jwks_file))))
