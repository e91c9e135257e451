"""weather, echo, current_time, convert_time."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from home_tools.clock import local, shown, zone
from home_tools.home import Home
from home_tools.tools import Tools
from home_tools.weather import Units

Place = Annotated[str, Field(min_length=1, max_length=200, description="City name or address, as San Francisco, CA")]
Zone = Annotated[str, Field(max_length=64, description="Time zone of the IANA database, as Europe/Oslo")]
Moment = Annotated[str, Field(max_length=40, description="Date and time of day, as 2026-11-23T18:30")]


def tools(home: Home) -> Tools:
    """Return them."""

    async def weather(location: Place, units: Units = "metric") -> str:
        return await home.weather.now(location, units)

    async def echo(text: Annotated[str, Field(max_length=10_000)]) -> str:
        return text

    async def current_time(time_zone: Zone | None = None) -> str:
        where = zone(time_zone or home.settings.zone)
        return f"It is {shown(datetime.fromtimestamp(home.clock.now(), where))}."

    async def convert_time(time: Moment, from_zone: Zone, to_zone: Zone) -> str:
        there = local(time, zone(from_zone))
        return f"{shown(there)} is {shown(there.astimezone(zone(to_zone)))}."

    return {"weather": weather, "echo": echo, "current_time": current_time, "convert_time": convert_time}
