"""Records of what went through the data plane, for whoever counts and audits."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Literal, Protocol

from pallas_gateway.data_plane.errors import Reason

Outcome = Literal["answered", "hung_up"] | Reason
SUBSCRIBE = "subscriptions/listen"
"""Method whose answer is a stream of changes (MCP 2026-07-28)."""
LISTEN = "_LISTEN"
END = "_END"
"""Methods of the two requests that bear no message: a stream that is listened to (GET), a session's end (DELETE)."""


@dataclass(slots=True)
class Call:
    """One request. `caller` is the verified caller's name, empty where nobody is asked for a token.

    `method` is empty for a client's answer to a question, and until the message is read: what is not known at its
    beginning is noted on it later, by who serves it alone. Each request has one, which is not copied for that.
    """

    agent: str
    caller: str
    method: str
    name: str | None = None
    """Tool, prompt, task, or the URI of a resource."""
    tenant: str = ""
    """Empty for a caller that is in none."""
    http_method: str = "POST"
    """The only one of the two methods that a body cannot claim."""
    trace: str = ""
    """Id of the trace that it is part of, where that is known."""
    own: bool = False
    """Whether it came to the gateway's own tools, of which every name is known."""
    arguments: str = ""
    """Digest of its arguments, where there is an audit."""
    decision: int = 0
    """Number of the record that it may be passed on; 0 where there is none."""
    principal: str = ""
    """Its verified caller, told apart from one of the same name that has a JWT."""
    number: int = field(default_factory=itertools.count(1).__next__, repr=False, compare=False)
    """Its own in this process, whatever becomes known of it."""

    @property
    def listens(self) -> bool:
        """Return whether it is a stream to which only the session belongs."""
        return self.http_method == "GET"

    @property
    def lasts(self) -> bool:
        """Return whether it lasts as long as its listener likes: a session's stream, or that of subscriptions."""
        return self.listens or self.method == SUBSCRIBE


@dataclass(slots=True)
class Record:
    """One request and its end; `status` is that of HTTP, 0 where nothing was answered, `seconds` the time it took.

    `member` is the host name of whom the outcome tells something, empty for nobody; None: of the agent of the call.
    """

    call: Call
    outcome: Outcome
    status: int
    seconds: float
    member: str | None = None


class Unrecorded(Exception):
    """A call that may not be passed on, because it cannot be recorded before."""


class Ledger(Protocol):
    """Records of decisions before they take effect: called in the event loop, so quick."""

    def digest(self, arguments: object) -> str:
        """Return what tells the arguments of two calls apart; may be called in another thread."""

    def allowed(self, call: Call) -> int:
        """Record that `call` is passed on, and return the number of the record, 0 where it needs none.

        Raises:
            Unrecorded: that cannot be done.
        """

    async def kept(self, seq: int) -> None:
        """Wait until that record is kept whatever becomes of this process.

        Raises:
            Unrecorded: it may not be.
        """


class Board(Protocol):
    """Calls that are under way, for people who watch."""

    def passed_on(self, call: Call) -> None:
        """Note a call that is passed on from now on; called in the event loop, so quick."""


class Watcher(Protocol):
    """Counters and audit of the data plane: called in the event loop, so quick, and without exceptions."""

    def begin(self, call: Call) -> None:
        """Note a request that came in; its message is not read yet."""

    def end(self, record: Record) -> None:
        """Note its end: once for each `begin`."""
