"""What the tools work with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from home_tools.clock import Clock, zone
from home_tools.files.board import Board
from home_tools.settings import Settings
from home_tools.timers.running import Timers
from home_tools.timers.store import Store
from home_tools.weather import Weather


@dataclass(frozen=True, slots=True)
class Home:
    """The house: its settings, clock, weather, timers and board."""

    settings: Settings
    clock: Clock
    weather: Weather
    timers: Timers
    board: Board


def opened(settings: Settings, clock: Clock) -> Home:
    """Return the house whose things lie below `settings.state`, which is there.

    Raises:
        Problem: the time zone is none, or the timers cannot be read.
    """
    here = zone(settings.zone)

    def today() -> date:
        return datetime.fromtimestamp(clock.now(), here).date()

    return Home(
        settings=settings,
        clock=clock,
        weather=Weather(settings.weather_url, settings.geocoding_url),
        timers=Timers(Store(settings.state / "timers.db"), clock),
        board=Board(settings.state, today),
    )
