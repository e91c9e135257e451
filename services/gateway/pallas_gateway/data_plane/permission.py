"""What a message asks of an agent or service, and whether its caller may (decision 0037)."""

from __future__ import annotations

from collections.abc import Mapping

from pallas_gateway.data_plane.message import Message
from pallas_gateway.policy.policy import Decision, Policy
from pallas_service.access.caller import Caller

_SESSION = frozenset({"", "initialize", "logging/setLevel", "ping", "server/discover", "subscriptions/listen"})
"""Methods that MCP needs whatever is called; an answer to a question has none."""
_PREFIXES = ("notifications/", "tasks/")
"""Further ones: notifications, and the tasks that calls have become."""
OFFERED = frozenset(
    {"completion/complete", "prompts/get", "resources/read", "resources/subscribe", "resources/unsubscribe"}
)
"""What a member can offer besides tools (MCP, both eras)."""


def decide(policy: Policy, caller: Caller | None, host: str, message: Message) -> Decision:
    """Return the verdict on `message` to the agent or service `host`; lists are for everybody, and filtered."""
    if message.method == "tools/call":
        arguments = message.arguments if isinstance(message.arguments, Mapping) else {}
        return policy.decide(caller, host, message.name or "", arguments)
    if not policy.knows(caller, host):
        return Decision("refused", policy.version, "unknown_agent")
    method = message.method
    if method in _SESSION or method.startswith(_PREFIXES) or method.endswith("/list"):
        return Decision("allowed", policy.version)
    if not policy.may_all(caller, host):
        text = f"this caller may call tools of `{host}` only"
        return Decision("refused", policy.version, "not_granted", text, "method")
    if policy.confirms(host) and method not in OFFERED:
        text = f"calls of `{host}` must be confirmed, and nobody knows what it calls by another method than MCP's"
        return Decision("refused", policy.version, "not_granted", text, "method")
    return policy.decide_offered(caller, host)


def status(request_id: str | int | None) -> int:
    """Return the HTTP status of a refusal: 200 where there is an id to answer (decision 0022)."""
    return 403 if request_id is None else 200
