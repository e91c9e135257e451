"""From `access` in agents.yaml to the gate of one agent."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_agent_runtime.config.settings import Settings
from pallas_contract.fleet.access_model import Jwt
from pallas_contract.launch import credentials
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


def arrange(settings: Settings, tokens: Mapping[str, str], keys_file: Path | None) -> Arrangement:
    """Return the gate of the agent. `tokens` maps caller -> token, `keys_file` is where `jwks_file` is to be found."""
    access = settings.agent.access
    if not credentials.protected(settings.fleet, settings.name):
        return Arrangement()
    # 5 MB of PyJWT and cryptography, for those who need them
    from pallas_service.access.verifier import Trust, Verifier  # noqa: PLC0415

    resource = credentials.resource(settings.fleet, settings.name, settings.placement)
    static = StaticTokens(tokens)
    if access.jwt is None:
        return Arrangement(Gate(Verifier(static), resource))
    keys = _keys(access.jwt, keys_file)
    audience = credentials.audience(settings.fleet, settings.name, settings.placement)
    trust = Trust(access.jwt.issuer, audience, tuple(access.jwt.algorithms), keys)
    scopes = tuple(access.jwt.scopes)
    return Arrangement(Gate(Verifier(static, trust, scopes), resource, access.jwt.issuer, scopes), keys)


def _keys(jwt: Jwt, keys_file: Path | None) -> Keys:
    from pallas_service.access.jwks import Keys, from_file, from_url  # noqa: PLC0415

    return Keys(from_url(jwt.jwks_url) if jwt.jwks_url else from_file(keys_file or Path(str(jwt.jwks_file))))
