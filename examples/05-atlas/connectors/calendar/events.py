"""Events of a calendar: from its text (RFC 5545) to what a model is told, and back."""

from __future__ import annotations

import itertools
import uuid
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import icalendar
import recurring_ical_events

from connectors.problems import Problem

MOST = 200
"""Events that are told at once."""
_LONGEST = timedelta(days=366)


def moment(text: str, what: str) -> datetime | date:
    """Return a day, or a moment with its offset, as ISO 8601 has them.

    Raises:
        Problem: `what` is neither.
    """
    try:
        if len(text) == len("2026-11-23"):
            return date.fromisoformat(text)
        read = datetime.fromisoformat(text)
    except ValueError:
        raise Problem(f"`{what}` is no date: write 2026-11-23, or 2026-11-23T10:00:00+01:00") from None
    if read.tzinfo is None:
        raise Problem(f"`{what}` needs an offset, as in {text}+01:00, or Z: nobody else knows where you are")
    return read


def period(start: str, end: str) -> tuple[datetime, datetime]:
    """Return both ends of a period, which may be days.

    Raises:
        Problem: it has no end after its start, or more than a year.
    """
    first, last = _at(moment(start, "start")), _at(moment(end, "end"))
    if not first < last <= first + _LONGEST:
        raise Problem("`end` must be after `start`, by a year at most")
    return first, last


def _at(value: datetime | date) -> datetime:
    return value.astimezone(UTC) if isinstance(value, datetime) else datetime.combine(value, time(), UTC)


def made(summary: str, start: str, end: str, *, location: str, notes: str) -> tuple[str, str]:
    """Return the uid and the text of a new event.

    Raises:
        Problem: its times make none.
    """
    first, last = moment(start, "start"), moment(end, "end")
    if type(first) is not type(last) or _at(first) >= _at(last):
        raise Problem("`end` must be after `start`, and a day where that is one")
    uid = str(uuid.uuid4())
    event = icalendar.Event()
    event.add("uid", uid)
    event.add("dtstamp", datetime.now(UTC))
    event.add("summary", summary)
    event.add("dtstart", first.astimezone(UTC) if isinstance(first, datetime) else first)
    event.add("dtend", last.astimezone(UTC) if isinstance(last, datetime) else last)
    for name, text in (("location", location), ("description", notes)):
        if text:
            event.add(name, text)
    calendar = icalendar.Calendar()
    calendar.add("prodid", "-//pallas-kit//atlas//EN")
    calendar.add("version", "2.0")
    calendar.add_component(event)
    return uid, calendar.to_ical().decode()


def uids(text: str) -> set[str]:
    """Return the uids of the events in a file, none where it cannot be read."""
    try:
        return {str(event.get("uid", "")) for event in icalendar.Calendar.from_ical(text).walk("VEVENT")}
    except (ValueError, LookupError, TypeError):
        return set()


def told(texts: list[str], start: datetime, end: datetime) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the events in a period, each repetition by itself, and why files were left out."""
    rows: list[dict[str, Any]] = []
    left_out = []
    for text in texts:
        try:
            calendar = icalendar.Calendar.from_ical(text)
            found = itertools.takewhile(
                lambda event: _at(event.start) < end, recurring_ical_events.of(calendar).after(start)
            )
            rows += [_row(event) for event in itertools.islice(found, MOST + 1)]
        except Exception as error:  # what a stranger's calendar makes a parser raise has no common base
            left_out.append(f"an event cannot be read: {str(error)[:100]}")
    return sorted(rows, key=lambda row: (row["start"], row["uid"])), left_out


def _row(event: Any) -> dict[str, Any]:
    row = {
        "uid": str(event.get("uid", "")),
        "summary": str(event.get("summary", ""))[:500],
        "start": event.start.isoformat(),
        "end": event.end.isoformat(),
    }
    more = {"location": event.get("location"), "notes": event.get("description")}
    return row | {key: str(value)[:2000] for key, value in more.items() if value}
