"""`/events` of the registry, followed in a thread from the fleet's start to its end."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import httpx

from pallas_testing.fleet import http

_SILENCE = 60.0
"""Seconds without a byte after which the stream is opened anew; the registry sends one every 15."""
_PAUSE = 0.2
"""Seconds until a stream that ended is opened anew."""
_ANEW = 5.0
"""Most seconds until a registry that was started anew is followed again."""
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
        self._last = _FROM_THE_START
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

    def catch_up(self, timeout: float) -> None:
        """Return when all that the registry has told of by now has arrived, or after `timeout` seconds.

        A registry that was started anew is followed anew within moments; replicas of one count each for themselves, and
        another one than is followed is not waited for.
        """
        run, _, newest = self._newest(timeout).rpartition("-")
        with self._arrived:
            if newest and self._arrived.wait_for(lambda: self._place()[0] == run, min(timeout, _ANEW)):
                self._arrived.wait_for(lambda: self._place()[0] != run or self._place()[1] >= int(newest), timeout)

    def _place(self) -> tuple[str, int]:
        run, _, number = self._last.rpartition("-")
        return run, int(number)

    def _newest(self, timeout: float) -> str:
        """Return the id of the newest change, with which a stream from now on begins; empty where nobody says."""
        with (
            suppress(httpx.HTTPError),
            httpx.Client(timeout=timeout, trust_env=False, verify=http.TRUSTS_NOBODY) as client,
            client.stream("GET", self._url) as reply,
        ):
            return next(iter(blocks(reply.iter_lines())), {}).get("id", "")
        return ""

    def close(self) -> None:
        """Follow no longer. The thread ends by itself with the registry's next byte."""
        self._closed.set()

    def _follow(self) -> None:
        while not self._closed.is_set():
            with (
                suppress(httpx.HTTPError),
                httpx.Client(timeout=_SILENCE, trust_env=False, verify=http.TRUSTS_NOBODY) as client,
                client.stream("GET", self._url, headers={"last-event-id": self._last}) as reply,
            ):
                for fields in blocks(reply.iter_lines()):
                    if self._closed.is_set():
                        return
                    with self._arrived:
                        self._last = fields.get("id", self._last)
                        self._changes += changes(fields)
                        self._arrived.notify_all()
            self._closed.wait(_PAUSE)


def blocks(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield the fields of each block of an event stream (HTML standard, section 9.2.6)."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
            continue
        yield fields
        fields = {}


def changes(fields: Mapping[str, str]) -> list[Change]:
    """Return the change of which a block tells, if any."""
    if fields.get("event") != "change":
        return []
    data = json.loads(fields["data"])
    return [Change(*(data[key] for key in ("agent", "old", "new", "reason", "code")))]
