"""The time of day, and waiting: what a test replaces. Zones are those of the IANA database."""

from __future__ import annotations

import asyncio
import contextlib
import time
from datetime import UTC, datetime
from typing import Protocol
from zoneinfo import ZoneInfo

from home_tools.problems import Problem


class Clock(Protocol):
    """A clock on the wall, which somebody may set, and a way to wait."""

    def now(self) -> float:
        """Return the seconds since 1970, UTC."""

    async def wait(self, seconds: float, changed: asyncio.Event) -> None:
        """Return after `seconds`, or when `changed` is set."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        """Return the seconds since 1970, UTC."""
        return time.time()

    async def wait(self, seconds: float, changed: asyncio.Event) -> None:
        """Return after `seconds`, or when `changed` is set."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(changed.wait(), seconds)


def zone(name: str) -> ZoneInfo:
    """Return the time zone `name`.

    Raises:
        Problem: there is none.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # a path, a folder
        raise Problem(f"there is no time zone `{name}`: name it as in Europe/Oslo or UTC") from None


def local(text: str, where: ZoneInfo) -> datetime:
    """Return the moment that `text` (ISO 8601) means in `where`, unless it has an offset of its own.

    Raises:
        Problem: it is no date and time, or there is none such: clocks are put forward then, or back.
    """
    try:
        written = datetime.fromisoformat(text)
    except ValueError:
        raise Problem(f"`{text}` is no date and time: write it as in 2026-11-23T18:30") from None
    if written.tzinfo is not None:
        return written
    first, second = (written.replace(tzinfo=where, fold=fold) for fold in (0, 1))
    if first.astimezone(UTC).astimezone(where).replace(tzinfo=None) != written:
        raise Problem(f"there is no {text} in {where.key}: clocks are put forward then")
    if first.utcoffset() != second.utcoffset():
        one, other = first.isoformat(timespec="minutes"), second.isoformat(timespec="minutes")
        raise Problem(f"{text} is there twice in {where.key}, when clocks are put back: write {one} or {other}")
    return first


def shown(moment: datetime) -> str:
    """Return a moment for people: `Monday 2026-11-23 18:30 CET (UTC+01:00)`."""
    offset = moment.strftime("%z")
    return f"{moment:%A %Y-%m-%d %H:%M} {moment.tzname()} (UTC{offset[:3]}:{offset[3:5]})"
