"""set_timer, set_reminder, list_timers, cancel_timer, wait_for_timer."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import BaseModel, Field

from home_tools.clock import local, shown, zone
from home_tools.home import Home
from home_tools.problems import Problem
from home_tools.timers.store import Timer
from home_tools.tools import Tools, both
from home_tools.tools.talk import Moment, Zone

_YEAR = 366 * 24 * 3600
Label = Annotated[str, Field(min_length=1, max_length=200, description="What it is for")]
Number = Annotated[int, Field(ge=1, description="Number of the timer")]
Seconds = Annotated[float, Field(gt=0, le=300, description="Wait no longer")]


class Listed(BaseModel):
    """A timer or reminder."""

    id: int
    kind: Literal["timer", "reminder"]
    label: str
    due: datetime
    fired: datetime | None = None


class Timers(BaseModel):
    """Those that wait, the next one first, then those that have fired, the last one first."""

    timers: list[Listed]


def tools(home: Home) -> Tools:
    """Return them."""
    here = zone(home.settings.zone)

    def said(timer: Timer) -> str:
        what = f"{timer.kind} {timer.id} ({timer.label})"
        moment = shown(datetime.fromtimestamp(timer.fired or timer.due, here))
        return f"{what} fired on {moment}" if timer.fired else f"{what} fires on {moment}"

    async def kept(kind: Literal["timer", "reminder"], label: str, due: float) -> str:
        timer = await asyncio.to_thread(home.timers.store.add, kind, label, due)
        home.timers.changed()
        return f"{_begun(said(timer))}."

    async def set_timer(
        seconds: Annotated[float, Field(gt=0, le=_YEAR, description="Seconds from now")], label: Label = "timer"
    ) -> str:
        return await kept("timer", label, home.clock.now() + seconds)

    async def set_reminder(at: Moment, text: Label, time_zone: Zone | None = None) -> str:
        due = local(at, zone(time_zone or home.settings.zone)).timestamp()
        if not 0 < due - home.clock.now() <= _YEAR:
            raise Problem(f"{at} is not within the next year")
        return await kept("reminder", text, due)

    async def list_timers() -> Annotated[CallToolResult, Timers]:
        timers = await asyncio.to_thread(home.timers.store.all)
        text = "\n".join(map(said, timers)) or "No timer waits, and none has fired."
        return both(text, {"timers": [_listed(timer) for timer in timers]})

    async def cancel_timer(timer: Number) -> str:
        gone = await asyncio.to_thread(home.timers.store.cancel, timer)
        return f"{gone.kind.capitalize()} {gone.id} ({gone.label}) is cancelled."

    async def wait_for_timer(timer: Number, context: Context, seconds: Seconds = 60) -> str:
        return f"{_begun(said(await _waited(home, timer, seconds, context)))}."

    return {
        "set_timer": set_timer,
        "set_reminder": set_reminder,
        "list_timers": list_timers,
        "cancel_timer": cancel_timer,
        "wait_for_timer": wait_for_timer,
    }


async def _waited(home: Home, number: int, seconds: float, context: Context) -> Timer:
    """Return a timer once it has fired, or `seconds` have passed; the caller hears meanwhile how long it takes."""
    begun = home.clock.now()
    async for _ in home.timers.fired():
        timer = await home.timers.find(number)
        now = home.clock.now()
        if timer.fired or now - begun >= seconds:
            break
        await context.report_progress(now - begun, timer.due - begun, f"{timer.label}: {timer.due - now:.0f} s")
    return timer


def _listed(timer: Timer) -> dict[str, Any]:
    due, fired = (moment and datetime.fromtimestamp(moment, UTC).isoformat() for moment in (timer.due, timer.fired))
    return {"id": timer.id, "kind": timer.kind, "label": timer.label, "due": due, "fired": fired}


def _begun(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"
