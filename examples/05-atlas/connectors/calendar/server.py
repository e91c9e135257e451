"""The server of a calendar: `python -m connectors.calendar.server`. `delete_event` is to be confirmed by a person."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from connectors import accounts
from connectors.calendar import events
from connectors.calendar.dav import PORTS, Calendar
from connectors.problems import Problem
from connectors.serving import Tool, run, within

Line = Annotated[str, Field(max_length=500)]
Moment = Annotated[str, Field(max_length=40, description="ISO 8601: a day, or a moment with its offset")]


def tools(environ: Mapping[str, str] = os.environ, timeout: float = 20.0) -> list[Tool]:
    """Return the tools for the calendar at CALENDAR_URL, with CALENDAR_USER and CALENDAR_PASSWORD.

    `timeout` are the seconds that the server may take for an answer.

    Raises:
        Problem: a variable is not there, or wrong.
    """
    account = accounts.read("CALENDAR_URL", "CALENDAR_PASSWORD", PORTS, environ, user="CALENDAR_USER")
    calendar = Calendar(account, timeout)

    async def list_events(start: Moment, end: Moment) -> dict[str, Any]:
        """List the events of a period, a year at most; each repetition of an event is one."""
        first, last = events.period(start, end)
        entries = await calendar.between(f"{first:%Y%m%dT%H%M%SZ}", f"{last:%Y%m%dT%H%M%SZ}")
        late = "an event repeats too often: ask for a shorter period"
        rows, left_out = await within(timeout, late, events.told, [entry.text for entry in entries], first, last)
        notices = left_out + (
            [f"there are more than {events.MOST}: ask for a shorter period"] if len(rows) > events.MOST else []
        )
        return {"events": rows[: events.MOST]} | ({"notices": notices} if notices else {})

    async def add_event(  # noqa: PLR0917 - a tool: its arguments go by name
        summary: Annotated[str, Field(min_length=1, max_length=500)],
        start: Moment,
        end: Moment,
        location: Line = "",
        notes: Annotated[str, Field(max_length=10_000)] = "",
    ) -> dict[str, Any]:
        """Add an event; where both are days, `end` is the day after the last one."""
        uid, text = events.made(summary, start, end, location=location, notes=notes)
        await calendar.add(uid, text)
        return {"uid": uid}

    async def delete_event(uid: Annotated[str, Field(min_length=1, max_length=255)]) -> dict[str, Any]:
        """Delete an event, with all its repetitions. A person confirms this."""
        found = [entry for entry in await calendar.with_uid(uid) if uid in events.uids(entry.text)]
        if not found:
            raise Problem(f"there is no event {uid}")
        for entry in found:
            await calendar.remove(entry)
        return {"deleted": uid}

    return [list_events, add_event, delete_event]


def main() -> int:
    """Serve on PALLAS_BIND."""
    return run("calendar", tools)


if __name__ == "__main__":
    sys.exit(main())
