"""Registering as JSON-RPC: whose request it is, whether it may ask, and the answer in the seed's form or in JSON-RPC's.

The seed writes its messages without `jsonrpc` and `id` (003, section 3); one without them is answered without them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import structlog

from pallas_registry.registration import errors, messages
from pallas_registry.registration.errors import Refusal
from pallas_registry.registration.leases import DEGRADED_AFTER, ERROR_AFTER, Registration, expiry
from pallas_registry.registration.rate_limit import Limit
from pallas_registry.registration.registrar import Registrar
from pallas_registry.registration.token_files import RegistrationTokens

CHANGES_RATE, CHANGES_BURST = 5.0, 50
"""Registrations and departures per second and token: each is written to the disk."""
BEATS_RATE, BEATS_BURST = 2.0, 10
"""Heartbeats per second, agent and token: a stranger to the agent cannot use up what its own token may send."""
STRANGERS_RATE, STRANGERS_BURST = 10.0, 50
"""Refused tokens per second, all together."""
MAX_DEPTH = 16
"""Levels of JSON in a request."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer over HTTP; no body where `message` is None."""

    status: int
    message: dict[str, Any] | None
    headers: Mapping[str, str] = field(default_factory=dict)


class Desk:
    """Takes the requests. `tokens` are those of this moment; None while agents.yaml lets nobody register."""

    def __init__(
        self, registrar: Registrar, tokens: Callable[[], RegistrationTokens | None], *, clock: Callable[[], float]
    ) -> None:
        self._registrar, self._tokens = registrar, tokens
        self._changes = Limit(CHANGES_RATE, CHANGES_BURST, clock)
        self._beats = Limit(BEATS_RATE, BEATS_BURST, clock)
        self._strangers = Limit(STRANGERS_RATE, STRANGERS_BURST, clock)

    async def answer(self, headers: Mapping[str, str], body: bytes) -> Reply | None:
        """Answer one POST; None when it is none of this desk's. `headers` by lower-case name. Never raises."""
        tokens = self._tokens()
        message = _parsed(body)
        method = message.get("method") if isinstance(message, dict) else None
        if tokens is None or not isinstance(method, str) or method not in messages.METHODS:
            return None
        params = message.get("params")
        agent = params.get("agent_id") if isinstance(params, dict) else None
        try:
            _check_shape(message)
            token = self._known(tokens, headers)
            result = await self._do(tokens, token, method, params)
        except Refusal as refusal:
            return _refused(message, refusal, agent if isinstance(agent, str) else "")
        if message.get("jsonrpc") and "id" not in message:  # a notification
            return Reply(202, None)
        return Reply(200, {**_envelope(message), "result": result})

    def _known(self, tokens: RegistrationTokens, headers: Mapping[str, str]) -> str:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        token = tokens.name_of(given.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            _wait(self._strangers.wait(""))
            _log.warning("registration refused", reason="unknown token" if given else "no token")
            raise Refusal(401, errors.UNAUTHORIZED, "a known token is needed: Authorization: Bearer ...")
        return token

    async def _do(self, tokens: RegistrationTokens, token: str, method: str, params: Any) -> dict[str, Any]:
        if not isinstance(params, dict):
            raise Refusal(
                400, errors.INVALID, "Invalid params", {"problems": [{"field": "", "message": "is no object"}]}
            )
        if method == messages.HEARTBEAT:
            beat = messages.read(messages.Heartbeat, params)
            _admit(tokens, token, beat.agent_id)
            known = self._registrar.ledger.get(beat.agent_id) is not None
            _wait(self._beats.wait((token, beat.agent_id)) if known else self._changes.wait(token))
            return _told(self._registrar.beat(token, beat), "ok")
        _wait(self._changes.wait(token))
        if method == messages.DEREGISTER:
            leaving = messages.read(messages.Deregister, params)
            _admit(tokens, token, leaving.agent_id)
            await self._registrar.deregister(token, leaving.agent_id)
            return {"agent_id": leaving.agent_id, "status": "deregistered"}
        said = messages.read(messages.Register, params)
        _admit(tokens, token, said.agent_id)
        return _told(await self._registrar.register(token, said), "registered")


def _admit(tokens: RegistrationTokens, token: str, agent: str) -> None:
    if not tokens.admits(token, agent):
        raise Refusal(403, errors.FORBIDDEN, f"this token is not for {agent}")


def _wait(seconds: float) -> None:
    if seconds:
        raise Refusal(429, errors.TOO_MANY, "too many requests", wait=max(1, ceil(seconds)))


def _told(registration: Registration, status: str) -> dict[str, Any]:
    """What becomes of the agent when it falls silent, in seconds."""
    interval = registration.said.heartbeat_interval
    return {
        "agent_id": registration.agent,
        "status": status,
        "heartbeat_interval": interval,
        "degraded_after": DEGRADED_AFTER * interval,
        "error_after": ERROR_AFTER * interval,
        "expires_after": expiry(interval),
    }


def _parsed(body: bytes) -> Any:
    """The JSON of a body; None for what is none, or could not be published: NaN, half a surrogate pair."""
    try:
        message = json.loads(body)
        json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return message


def _check_shape(message: dict[str, Any]) -> None:
    version, number = message.get("jsonrpc", "2.0"), message.get("id", "")
    if version != "2.0" or not isinstance(number, str | int) or isinstance(number, bool):
        raise Refusal(400, errors.NOT_A_REQUEST, "not a JSON-RPC 2.0 request")
    level: list[Any] = [message]
    for _ in range(MAX_DEPTH):
        level = [item for each in level for item in (each.values() if isinstance(each, dict) else each)]
        level = [each for each in level if isinstance(each, dict | list)]
    if level:
        raise Refusal(400, errors.INVALID, f"nested deeper than {MAX_DEPTH} levels")


def _envelope(message: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message.get("id")} if "jsonrpc" in message or "id" in message else {}


def _refused(message: Mapping[str, Any], refusal: Refusal, agent: str) -> Reply:
    headers = {"retry-after": str(refusal.wait)} if refusal.wait else {}
    if refusal.status == 401:
        headers["www-authenticate"] = "Bearer"
    number = message.get("id")
    usable = isinstance(number, str | int) and not isinstance(number, bool)
    envelope = _envelope({**message, "id": number if usable else None} if "id" in message else message)
    return Reply(refusal.status, {**envelope, "error": refusal.as_dict(agent[:100])}, headers)
