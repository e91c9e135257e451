"""Delegation that cannot run away: who asked whom on the way here, how much time is left, and when it is too much.

A call carries its task in `_meta`, in keys of our own: the task's id, its depth, the agents it went through and the
seconds left. They are sent on by a propagator of OpenTelemetry's API, which the MCP SDK asks for every request it sends
(SEP-414): fast-agent's own `RequestParams.mcp_metadata` is gone again by the time a model's tool call is made. So they
reach every server, also one that is no agent, and hold nothing that is secret.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from opentelemetry.context import Context
from opentelemetry.propagate import get_global_textmap, set_global_textmap
from opentelemetry.propagators.textmap import (
    CarrierT,
    Getter,
    Setter,
    TextMapPropagator,
    default_getter,
    default_setter,
)

from pallas_contract import names

ID = names.META_TASK
DEPTH = names.META_DEPTH
PATH = names.META_PATH
SECONDS = names.META_SECONDS
LONGEST = 3600.0
"""Seconds that a task may take at most, and those of one whose caller does not say."""
MAX_PATH = 64
"""Most agents in a path that is read at all."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_AGENT = re.compile(r"[A-Za-z0-9._/-]{1,200}")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


class TooFar(Exception):
    """A call that goes round in a circle, too deep, or has no time left; the text names the path."""


class BadTask(Exception):
    """A key of ours in `_meta` that is not what it should be; the text names it."""


@dataclass(frozen=True, slots=True)
class Task:
    """The task a call is part of, as its agent sees it. `path` ends with the agent itself, `deadline` is monotonic."""

    id: str
    path: tuple[str, ...]
    deadline: float

    @property
    def depth(self) -> int:
        """The number of agents that passed it on: 0 for a call from outside."""
        return len(self.path) - 1

    @property
    def remaining(self) -> float:
        """Seconds left, never less than 0."""
        return max(0.0, self.deadline - time.monotonic())

    @property
    def route(self) -> str:
        """The path for people."""
        return " -> ".join(self.path)

    def check(self, max_depth: int) -> None:
        """Refuse a task that may not go on here.

        Raises:
            TooFar: this agent was there before, or more than `max_depth` agents are on the way.
        """
        if self.path[-1] in self.path[:-1]:
            raise TooFar(f"delegation goes in a circle: {self.route}")
        if len(self.path) > max_depth:
            raise TooFar(f"delegation is more than {max_depth} agents deep: {self.route}")


_current: ContextVar[Task | None] = ContextVar("pallas_task", default=None)


def arrived(meta: Mapping[str, Any] | None, agent: str) -> Task:
    """Return the task of a call to `agent` (its registry name); a call that carries none begins one.

    Raises:
        BadTask: what the call carries is malformed.
    """
    meta = meta or {}
    return Task(_id(meta), (*_path(meta), agent), time.monotonic() + _seconds(meta))


def depth(meta: Mapping[str, Any] | None) -> int:
    """Return how many agents passed a call on, for the metrics; 0 also where that is not to be read."""
    try:
        return len(_path(meta or {}))
    except BadTask:
        return 0


@contextmanager
def carried(task: Task) -> Iterator[None]:
    """Send `task` along with every MCP request made inside, also from tasks begun there."""
    token = _current.set(task)
    try:
        yield
    finally:
        _current.reset(token)


_NOT_OURS = frozenset({"tracestate", "baggage"})
"""What a caller's systems say to each other in free text. It would go on to every server, and with spans: a trace goes
on by its id, which is all that joins its parts."""


class _Getter(Getter[CarrierT]):
    """A getter of what `inner` reads, without what is not ours."""

    def __init__(self, inner: Getter[CarrierT]) -> None:
        self._inner = inner

    def get(self, carrier: CarrierT, key: str) -> list[str] | None:
        return None if key in _NOT_OURS else self._inner.get(carrier, key)

    def keys(self, carrier: CarrierT) -> list[str]:
        return [key for key in self._inner.keys(carrier) if key not in _NOT_OURS]


class _Propagator(TextMapPropagator):
    """A propagator of the current task, after `first`. Reading it is for `arrived`, which can refuse."""

    def __init__(self, first: TextMapPropagator) -> None:
        self._first = first

    def inject(
        self, carrier: CarrierT, context: Context | None = None, setter: Setter[CarrierT] = default_setter
    ) -> None:
        self._first.inject(carrier, context, setter)
        task = _current.get()
        if task is not None:
            entries = {
                ID: task.id,
                DEPTH: str(len(task.path)),
                PATH: ",".join(task.path),
                SECONDS: f"{task.remaining:.3f}",
            }
            for key, value in entries.items():
                setter.set(carrier, key, value)

    def extract(
        self, carrier: CarrierT, context: Context | None = None, getter: Getter[CarrierT] = default_getter
    ) -> Context:
        """Return what `first` finds; a trace in `_meta` that is not even text, on which it trips, is no trace."""
        try:
            return self._first.extract(carrier, context, _Getter(getter))
        except Exception:
            return Context() if context is None else context

    @property
    def fields(self) -> set[str]:
        return {*self._first.fields, ID, DEPTH, PATH, SECONDS}


def install() -> None:
    """Send the current task along from now on, beside what is sent along already (the trace's id)."""
    set_global_textmap(_Propagator(get_global_textmap()))


def _id(meta: Mapping[str, Any]) -> str:
    return _read(meta, ID, _ID, "1 to 64 letters, digits and . _ -") or uuid.uuid4().hex


def _seconds(meta: Mapping[str, Any]) -> float:
    written = _read(meta, SECONDS, _SECONDS, "a number of seconds, as text")
    return min(float(written), LONGEST) if written else LONGEST


def _path(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the agents before this one; their number must be the depth that came with them."""
    path = meta.get(PATH)
    if path is None:
        return ()
    parts = tuple(path.split(",", MAX_PATH)) if isinstance(path, str) else ()
    if not 0 < len(parts) <= MAX_PATH or not all(map(_AGENT.fullmatch, parts)):
        raise BadTask(f"_meta.{PATH}: must be up to {MAX_PATH} names of agents, separated by commas")
    if meta.get(DEPTH, str(len(parts))) != str(len(parts)):
        raise BadTask(f"_meta.{DEPTH}: must be the number of agents in {PATH}, as text")
    return parts


def _read(meta: Mapping[str, Any], key: str, pattern: re.Pattern[str], kind: str) -> str:
    value = meta.get(key, "")
    if value == "" and key not in meta:
        return ""
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise BadTask(f"_meta.{key}: must be {kind}")
    return value
