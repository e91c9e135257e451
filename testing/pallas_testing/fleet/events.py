"""`/events` of the registry, followed in a thread from the fleet's start to its end."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import httpx

from pallas_testing.fleet import http
from pallas_testing.project.fleet_file import slug

_SILENCE = 60.0
"""Seconds without a byte after which the stream is opened anew; the registry sends one every 15."""
_PAUSE = 0.2
"""Seconds until a stream that ended is opened anew."""
_FROM_THE_START = "none-0"
"""An event id that no registry has given: it sends all that it still knows."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of state as the registry tells it; `agent` is the name in agents.yaml, `code` a reason of its list."""

    agent: str
    old: str
    new: str
    reason: str
    code: str

    def __str__(self) -> str:
        return f"{self.agent}: {self.old} -> {self.new}{f', {self.reason}' if self.reason else ''}"


class Events:
    """All changes since the fleet began, in order. `url` is the registry's, asked anew for each connection."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/events"
        self._changes: list[Change] = []
        self._arrived = threading.Condition()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="pallas-testing-events", daemon=True)
        self._thread.start()

    def since(self, number: int = 0) -> list[Change]:
        """Return the changes after the first `number` ones."""
        with self._arrived:
            return self._changes[number:]

    def wait(self, count: int, timeout: float) -> None:
        """Return as soon as there are more than `count` changes, or after `timeout` seconds."""
        with self._arrived:
            self._arrived.wait_for(lambda: len(self._changes) > count, timeout)

    def catch_up(self, states: Mapping[str, str], timeout: float) -> None:
        """Return when the changes have led to these states, by names in the registry, or after `timeout` seconds."""
        with self._arrived:
            self._arrived.wait_for(lambda: states.items() <= self._latest().items(), timeout)

    def _latest(self) -> dict[str, str]:
        return {slug(change.agent): change.new for change in self._changes}

    def close(self) -> None:
        """Follow no longer. The thread ends by itself with the registry's next byte."""
        self._closed.set()

    def _follow(self) -> None:
        last = _FROM_THE_START
        while not self._closed.is_set():
            with (
                suppress(httpx.HTTPError),
                httpx.Client(timeout=_SILENCE, trust_env=False, verify=http.TRUSTS_NOBODY) as client,
                client.stream("GET", self._url, headers={"last-event-id": last}) as reply,
            ):
                for event_id, change in changes(reply.iter_lines()):
                    if self._closed.is_set():
                        return
                    last = event_id
                    with self._arrived:
                        self._changes.append(change)
                        self._arrived.notify_all()
            self._closed.wait(_PAUSE)


def changes(lines: Iterable[str]) -> Iterator[tuple[str, Change]]:
    """Yield the changes of an event stream, each with its id (HTML standard, section 9.2.6)."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
            continue
        if fields.get("event") == "change":
            data = json.loads(fields["data"])
            yield fields["id"], Change(*(data[key] for key in ("agent", "old", "new", "reason", "code")))
        fields = {}
