"""What a message asks of an agent or service, and whether its caller may (decision 0037)."""

from __future__ import annotations

from collections.abc import Mapping

from pallas_gateway.data_plane.message import Message
from pallas_gateway.data_plane.record import SUBSCRIBE
from pallas_gateway.policy.keys import folded
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
_ALL_TASKS = "tasks/list"
"""The tasks of a requestor (MCP 2025-11-25, Tasks), which to a member is the gateway: those of all callers."""
_SUBSCRIPTIONS = folded("resourceSubscriptions")


def decide(policy: Policy, caller: Caller | None, host: str, message: Message) -> Decision:
    """Return the verdict on `message` to the agent or service `host`; lists are for everybody, and filtered."""
    if message.method == "tools/call":
        arguments = message.arguments if isinstance(message.arguments, Mapping) else {}
        return policy.decide(caller, host, message.name or "", arguments)
    if not policy.knows(caller, host):
        return Decision("refused", policy.version, "unknown_agent")
    method = message.method
    subscribes = _subscribes(message)
    text = ""
    if method == _ALL_TASKS and caller is not None:
        text = f"`{host}` has the tasks of all callers in one list: ask for one by its id"
    elif _is_free(method) and not subscribes:
        return Decision("allowed", policy.version)
    elif not policy.may_all(caller, host):
        text = f"this caller may call tools of `{host}` only"
    elif policy.confirms(host) and method not in OFFERED and not subscribes:
        text = f"calls of `{host}` must be confirmed, and nobody knows what it calls by another method than MCP's"
    if text:
        return Decision("refused", policy.version, "not_granted", text, "method")
    return policy.decide_offered(caller, host)


def _is_free(method: str) -> bool:
    """Return whether a method is for everybody who has a grant."""
    return method in _SESSION or method.startswith(_PREFIXES) or method.endswith("/list")


def _subscribes(message: Message) -> bool:
    """Return whether a message listens to resources, as `resources/subscribe` did in the era before."""
    wanted = message.more.values() if message.method == SUBSCRIBE else ()
    keys = {
        folded(key) for filters in wanted if isinstance(filters, Mapping) for key, value in filters.items() if value
    }
    return _SUBSCRIPTIONS in keys


def status(request_id: str | int | None) -> int:
    """Return the HTTP status of a refusal: 200 where there is an id to answer (decision 0022)."""
    return 403 if request_id is None else 200
