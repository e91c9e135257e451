"""Reasons for states, like the reason and message of a Kubernetes condition: a code for programs, a text for people.

No program reads the text. What an agent says of itself arrives as text only (seed 000 section 2, seed 001 Response
Format); `reported` reads it once, where it comes in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Code = Literal[
    "Ok",
    # The registry looks for an agent.
    "NotProbedYet",
    "NotProbed",
    "Starting",
    "InputRefused",
    "Exited",
    "NameNotFound",
    "NameUnresolved",
    "AddressNotAllowed",
    # The connection.
    "ConnectionRefused",
    "ConnectionReset",
    "ConnectionFailed",
    "TlsError",
    "NoAnswer",
    "InvalidRequest",
    "InvalidHttp",
    "AnswerTooLarge",
    # The HTTP status.
    "Unauthorized",
    "TooManyRequests",
    "ServiceUnavailable",
    "MisdirectedRequest",
    "Redirect",
    "HttpError",
    # The protocol.
    "JsonRpcError",
    "NotMcp",
    "UnknownProtocolVersion",
    "NoHealthTool",
    "HealthToolFailed",
    "InvalidHealth",
    "NameMismatch",
    "NotAnAgent",
    "ProbeFailed",
    # The agent's own words.
    "CannotProcess",
    "Unreachable",
    "Refused",
    "NotCheckedYet",
    "ProviderDown",
    "AccessUnavailable",
    "ConversationsNotKept",
    "SelfReported",
    # The replicas of an agent.
    "ReplicaUnavailable",
    "ReplicasDiffer",
    "ReplicaMissing",
    # The lock.
    "Drift",
    # Agents that registered themselves.
    "NotHeardYet",
    "Silent",
    "Deregistered",
    "RegistrationEnded",
]
"""The closed set; docs/registry.md says of each what it means and what to do."""

INPUT_REFUSED: Code = "InputRefused"
"""In `data.reason` of the JSON-RPC error of an agent that refuses its input, and is about to end."""

CANNOT_PROCESS = "Cannot process requests: "
UNREACHABLE = "Unreachable: "
REFUSED = "Refused by: "
UNCHECKED = "Not checked yet: "
PROVIDER = "LLM: "
ACCESS = "Access: "
CONVERSATIONS = "Conversations: "
SEPARATOR = "; "
"""Between the parts of a `get_health` message, each of which begins with one of the words above."""

_CODES: dict[str, Code] = {
    CANNOT_PROCESS: "CannotProcess",
    UNREACHABLE: "Unreachable",
    REFUSED: "Refused",
    UNCHECKED: "NotCheckedYet",
    PROVIDER: "ProviderDown",
    ACCESS: "AccessUnavailable",
    CONVERSATIONS: "ConversationsNotKept",
}
_LISTS = (UNREACHABLE, REFUSED)
_NAME = re.compile(r"[\w.:-]{1,100}")
MAX_NAMES = 256
"""Most names that are read from one message: it comes from elsewhere and is kept until the next probe."""


@dataclass(frozen=True, slots=True, order=True)
class Reason:
    """The reason for a state. `Ok` may have a message too, which is then a remark.

    `about` names what the trouble is with: servers and agents that the agent cannot reach or that refuse it, addresses
    of replicas. The agent whose state it is goes without saying.
    """

    code: Code = "Ok"
    message: str = ""
    about: tuple[str, ...] = ()


OK = Reason()
NOT_FOUND = Reason("NameNotFound", "name not found")
UNRESOLVED = Reason("NameUnresolved", "name resolution fails")


def unauthorized(status: int) -> Reason:
    """Return the reason of who answers, with this HTTP status, that other credentials are wanted."""
    return Reason("Unauthorized", f"reachable, needs credentials (HTTP {status})")


def joined(reasons: Iterable[Reason]) -> Reason:
    """Return several reasons as one: the code of the first trouble, every message once, all names.

    A reason without a message has nothing to tell and does not count.
    """
    by_message: dict[str, Reason] = {}
    for reason in reasons:
        if reason.message:
            by_message.setdefault(reason.message, reason)
    if not by_message:
        return OK
    code: Code = next((reason.code for reason in by_message.values() if reason.code != "Ok"), "Ok")
    about = dict.fromkeys(name for reason in by_message.values() for name in reason.about)
    return Reason(code, SEPARATOR.join(by_message), tuple(about))


def reported(message: str, *, well: bool) -> Reason:
    """Return the reason in the message of an agent's own health; the text itself is not made fit to be shown here.

    Names come only from the exact lists after "Unreachable:" and "Refused by:", so a message that merely contains the
    name of an agent is not about it.
    """
    if well:
        return Reason("Ok", message)
    codes: list[Code] = []
    about: dict[str, None] = {}
    for part in message.split(SEPARATOR):
        prefix = next((prefix for prefix in _CODES if part.startswith(prefix)), "")
        if prefix:
            codes.append(_CODES[prefix])
        if prefix in _LISTS:
            about |= dict.fromkeys(_names(part.removeprefix(prefix)))
    return Reason(codes[0] if codes else "SelfReported", message, tuple(about)[:MAX_NAMES])


def _names(text: str) -> list[str]:
    """Return the names of a list; none when anything in it is no name, since then it is prose."""
    entries = text.split(", ")
    return entries if all(map(_NAME.fullmatch, entries)) else []
