"""Registering over JSON-RPC: the methods of seed 003, who may call them and how often, and the seed's form of answers.

The seed writes its messages without `jsonrpc` and `id` (003, section 3); one without them is answered without them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from math import ceil
from typing import Any

import structlog

from pallas_registry.mcp.jsonrpc import INVALID_REQUEST, Handler, Request, Response
from pallas_registry.registration import errors, messages
from pallas_registry.registration.errors import Refusal
from pallas_registry.registration.leases import DEGRADED_AFTER, ERROR_AFTER, Registration, expiry
from pallas_registry.registration.rate_limit import RateLimit
from pallas_registry.registration.registrar import Registrar
from pallas_registry.registration.token_files import RegistrationTokens

CHANGES_RATE = 5.0
CHANGES_BURST = 50
"""Registrations and departures per second and token: each is written to the disk."""
BEATS_RATE = 2.0
BEATS_BURST = 10
"""Heartbeats per second, agent and token: a stranger to the agent cannot use up what its own token may send."""
STRANGERS_RATE = 10.0
STRANGERS_BURST = 50
"""Refused tokens per second, all together."""
MAX_DEPTH = 16
"""Levels of JSON in a request."""

Params = dict[str, Any]
_Method = Callable[[RegistrationTokens, str, Params], Awaitable[dict[str, Any]]]
"""The tokens of this moment, the name of the caller's, and `params` -> `result`. Raises Refusal."""

_log = structlog.get_logger()


class RegistrationMethods:
    """`server.register`, `agent.heartbeat` and `server.deregister`."""

    def __init__(
        self, registrar: Registrar, tokens: Callable[[], RegistrationTokens | None], *, clock: Callable[[], float]
    ) -> None:
        """`tokens` gives those of this moment; None while agents.yaml lets nobody register."""
        self._registrar = registrar
        self._tokens = tokens
        self._changes = RateLimit(CHANGES_RATE, CHANGES_BURST, clock)
        self._beats = RateLimit(BEATS_RATE, BEATS_BURST, clock)
        self._strangers = RateLimit(STRANGERS_RATE, STRANGERS_BURST, clock)

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handler of each method; none while agents.yaml lets nobody register."""
        tokens = self._tokens()
        if tokens is None:
            return {}
        return {
            messages.REGISTER: partial(self._answer, self._register, tokens),
            messages.HEARTBEAT: partial(self._answer, self._heartbeat, tokens),
            messages.DEREGISTER: partial(self._answer, self._deregister, tokens),
        }

    async def _answer(self, method: _Method, tokens: RegistrationTokens, request: Request) -> Response:
        message = request.message
        params = message.get("params")
        try:
            _check_shape(message)
            token = self._authenticate(tokens, request.headers)
            if not isinstance(params, dict):
                problem = {"field": "", "message": "is no object"}
                raise Refusal(400, errors.INVALID_PARAMS, "Invalid params", {"problems": [problem]})
            result = await method(tokens, token, params)
        except Refusal as refusal:
            agent = params.get("agent_id") if isinstance(params, dict) else None
            return _refused(message, refusal, agent if isinstance(agent, str) else "")
        if message.get("jsonrpc") and "id" not in message:  # a notification
            return Response(202, None)
        return Response(200, {**_envelope(message), "result": result})

    def _authenticate(self, tokens: RegistrationTokens, headers: Mapping[str, str]) -> str:
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        token = tokens.name_of(credentials.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            # one bucket for all: guesses come from any address, and those with a token never get here
            _enforce(self._strangers.wait(""))
            _log.warning("registration refused", reason="unknown token" if credentials else "no token")
            raise Refusal(401, errors.UNAUTHORIZED, "a known token is needed: Authorization: Bearer ...")
        return token

    async def _register(self, tokens: RegistrationTokens, token: str, params: Params) -> dict[str, Any]:
        _enforce(self._changes.wait(token))
        message = messages.read(messages.Register, params)
        _admit(tokens, token, message.agent_id)
        return _lease(await self._registrar.register(token, message), "registered")

    async def _heartbeat(self, tokens: RegistrationTokens, token: str, params: Params) -> dict[str, Any]:
        heartbeat = messages.read(messages.Heartbeat, params)
        _admit(tokens, token, heartbeat.agent_id)
        registered = self._registrar.leases.get(heartbeat.agent_id) is not None
        # the limit of one agent is for those that are there: made-up names would each have a bucket of their own
        _enforce(self._beats.wait((token, heartbeat.agent_id)) if registered else self._changes.wait(token))
        return _lease(self._registrar.beat(token, heartbeat), "ok")

    async def _deregister(self, tokens: RegistrationTokens, token: str, params: Params) -> dict[str, Any]:
        _enforce(self._changes.wait(token))
        message = messages.read(messages.Deregister, params)
        _admit(tokens, token, message.agent_id)
        await self._registrar.deregister(token, message.agent_id)
        return {"agent_id": message.agent_id, "status": "deregistered"}


def _admit(tokens: RegistrationTokens, token: str, agent: str) -> None:
    if not tokens.admits(token, agent):
        raise Refusal(403, errors.FORBIDDEN, f"this token is not for {agent}")


def _enforce(wait: float) -> None:
    if wait:
        raise Refusal(429, errors.TOO_MANY, "too many requests", wait=max(1, ceil(wait)))


def _lease(registration: Registration, status: str) -> dict[str, Any]:
    """Return the answer to a sign of life, with what follows silence, in seconds."""
    interval = registration.params.heartbeat_interval
    return {
        "agent_id": registration.agent,
        "status": status,
        "heartbeat_interval": interval,
        "degraded_after": DEGRADED_AFTER * interval,
        "error_after": ERROR_AFTER * interval,
        "expires_after": expiry(interval),
    }


def _check_shape(message: dict[str, Any]) -> None:
    version = message.get("jsonrpc", "2.0")
    if version != "2.0" or not _is_id(message.get("id", "")):
        raise Refusal(400, INVALID_REQUEST, "not a JSON-RPC 2.0 request")
    # level by level and not by recursion, which a deep body would end with a RecursionError
    level: list[Any] = [message]
    for _ in range(MAX_DEPTH):
        children = [child for node in level for child in (node.values() if isinstance(node, dict) else node)]
        level = [child for child in children if isinstance(child, dict | list)]
    if level:
        raise Refusal(400, errors.INVALID_PARAMS, f"nested deeper than {MAX_DEPTH} levels")


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _envelope(message: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message.get("id")} if "jsonrpc" in message or "id" in message else {}


def _refused(message: Mapping[str, Any], refusal: Refusal, agent: str) -> Response:
    headers = {"retry-after": str(refusal.wait)} if refusal.wait else {}
    if refusal.status == 401:
        headers["www-authenticate"] = "Bearer"
    request_id = message.get("id")
    usable = request_id if _is_id(request_id) else None
    envelope = _envelope({**message, "id": usable} if "id" in message else message)
    return Response(refusal.status, {**envelope, "error": refusal.as_dict(agent[:100])}, headers)
