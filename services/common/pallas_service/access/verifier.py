"""A bearer token -> who sent it: static tokens first, then JWTs of the one issuer that is trusted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import structlog
from mcp.server.auth.provider import AccessToken

from pallas_service.access.static_tokens import StaticTokens

if TYPE_CHECKING:
    from pallas_service.access.jwks import Keys

LEEWAY = 30.0
"""Seconds by which two clocks may differ."""
_REQUIRED = ["exp", "iss", "aud", "sub"]
_OUR_CLOCK = {"require": _REQUIRED, "verify_exp": False, "verify_nbf": False, "verify_iat": False}
"""Times are compared here, by the clock that was given: PyJWT reads the machine's."""

log = structlog.get_logger(__name__)


class _Refused(Exception):
    """A token that is not accepted; the text says why, never with a part of it."""


@dataclass(frozen=True, slots=True)
class Trust:
    """The demands on a JWT (RFC 9068): from `issuer`, for `audience`, signed with one of `algorithms`."""

    issuer: str
    audience: str
    algorithms: tuple[str, ...]
    keys: Keys


class Verifier:
    """The SDK's `TokenVerifier`. `scopes` are those every call needs; a static token stands for all of them."""

    def __init__(
        self,
        static: StaticTokens,
        trust: Trust | None = None,
        scopes: tuple[str, ...] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._static = static
        self._trust = trust
        self._scopes = scopes
        self._clock = clock

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the owner and scopes of `token`; None for one that is not accepted, logged without a part of it."""
        if (caller := self._static.caller(token)) is not None:
            return AccessToken(token=token, client_id=caller, scopes=list(self._scopes))
        try:
            if self._trust is None:
                raise _Refused("unknown token")
            return self._accepted(token, await self._claims(token, self._trust))
        except _Refused as refused:
            log.warning("token_refused", reason=str(refused))
        except Exception:  # an issuer signs what it likes: no claim may become a 500
            log.exception("token_refused", reason="its check failed")
        return None

    async def _claims(self, token: str, trust: Trust) -> dict[str, Any]:
        """Return the claims of a token that is signed by the issuer, for us, and valid now."""
        # ten megabytes with cryptography; who trusts an issuer has imported it with its keys
        import jwt  # noqa: PLC0415
        from jwt.exceptions import PyJWTError  # noqa: PLC0415

        try:
            header = jwt.get_unverified_header(token)
        except (PyJWTError, ValueError):
            raise _Refused("unknown token, and no JWT") from None
        if header.get("alg") not in trust.algorithms:
            raise _Refused("algorithm not accepted")
        key = await trust.keys.find(header.get("kid"))
        if key is None:
            raise _Refused(f"unknown key{f' (keys: {trust.keys.problem})' if trust.keys.problem else ''}")
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key.usable,
                algorithms=list(trust.algorithms),
                audience=trust.audience,
                issuer=trust.issuer,
                options=_OUR_CLOCK,  # type: ignore[arg-type]
            )
        except (PyJWTError, TypeError, ValueError) as error:
            raise _Refused(type(error).__name__) from None
        self._check_times(claims)
        return claims

    def _check_times(self, claims: dict[str, Any]) -> None:
        now = self._clock()
        ends = claims["exp"]
        begins = claims.get("nbf", 0)
        if not all(
            isinstance(moment, int) or (isinstance(moment, float) and isfinite(moment)) for moment in (ends, begins)
        ):
            raise _Refused("a time that is no number")
        if ends <= now - LEEWAY:
            raise _Refused("expired")
        if begins > now + LEEWAY:
            raise _Refused("not valid yet")

    def _accepted(self, token: str, claims: dict[str, Any]) -> AccessToken:
        subject = str(claims["sub"])
        audience = claims["aud"]
        if not subject:
            raise _Refused("an empty subject")
        return AccessToken(
            token=token,
            client_id=str(claims.get("client_id") or claims.get("azp") or subject),
            scopes=_scopes(claims),
            subject=subject,
            claims={"iss": claims["iss"], "aud": [audience] if isinstance(audience, str) else list(audience)},
        )


def _scopes(claims: dict[str, Any]) -> list[str]:
    """Return the scopes of a token: text with spaces between (RFC 9068), or the list that some issuers write.

    Raises:
        _Refused: neither.
    """
    granted = claims.get("scope", claims.get("scp"))
    if granted is None:
        return []
    if isinstance(granted, str):
        return granted.split()
    if isinstance(granted, list) and all(isinstance(scope, str) for scope in granted):
        return granted
    raise _Refused("a scope that is no text")
