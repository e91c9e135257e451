"""The weather, as Open-Meteo has it: a place by its name, then what is measured there now."""

from __future__ import annotations

from typing import Any, Literal

import httpx2

from home_tools import made_up_weather
from home_tools.problems import Problem

Units = Literal["metric", "imperial"]
_PATIENCE = 10.0
_MADE_UP = "http://made-up.invalid"
_UNITS: dict[Units, dict[str, str]] = {
    "metric": {},
    "imperial": {"temperature_unit": "fahrenheit", "wind_speed_unit": "mph"},
}
_SKY = {0: "clear", 1: "mostly clear", 2: "partly cloudy", 3: "overcast", 45: "foggy", 48: "foggy"}
_SKY |= dict.fromkeys((51, 53, 55, 56, 57), "drizzling") | dict.fromkeys((61, 63, 65, 66, 67, 80, 81, 82), "raining")
_SKY |= dict.fromkeys((71, 73, 75, 77, 85, 86), "snowing") | dict.fromkeys((95, 96, 99), "thundery")
"""WMO's codes of the weather, in a word."""


class Weather:
    """Open-Meteo, or what stands in for it."""

    def __init__(self, forecast: str, geocoding: str, client: httpx2.AsyncClient | None = None) -> None:
        """`forecast` and `geocoding` are base URLs; without the first one the weather is made up."""
        self._forecast = forecast or _MADE_UP
        self._geocoding = geocoding or self._forecast
        transport = None if forecast else httpx2.MockTransport(made_up_weather.answer)
        self._client = client or httpx2.AsyncClient(timeout=_PATIENCE, trust_env=False, transport=transport)

    async def now(self, location: str, units: Units) -> str:
        """Return the weather at a place, in a sentence.

        Raises:
            Problem: there is no such place, or nobody tells.
        """
        # Open-Meteo knows names of places, and nothing that follows a comma
        name, _, region = (part.strip() for part in location.partition(","))
        found = await self._get(self._geocoding, "/v1/search", {"name": name, "count": 10})
        place = _nearest(found.get("results") or [], region)
        if place is None:
            raise Problem(f"there is no place `{location}`: name a town")
        wanted = {"current": "temperature_2m,weather_code,wind_speed_10m", "timezone": "auto", **_UNITS[units]}
        where = {"latitude": place["latitude"], "longitude": place["longitude"]}
        answer = await self._get(self._forecast, "/v1/forecast", {**where, **wanted})
        try:
            current, unit = answer["current"], answer["current_units"]
            sky = _SKY.get(int(current["weather_code"]), "hard to describe")
            temperature, wind = round(float(current["temperature_2m"])), round(float(current["wind_speed_10m"]))
            named = f"{place['name']}, {place['country']}" if place.get("country") else place["name"]
            return (
                f"The weather in {named} is {temperature}{unit['temperature_2m']} and {sky}, "
                f"wind {wind} {unit['wind_speed_10m']}."
            )
        except (KeyError, TypeError, ValueError):
            raise Problem("the weather service answers no weather: try again later") from None

    async def _get(self, base: str, path: str, query: dict[str, Any]) -> dict[str, Any]:
        try:
            reply = await self._client.get(f"{base}{path}", params=query)
            answer = reply.json()
        except (httpx2.HTTPError, ValueError) as error:
            raise Problem(f"the weather service gives no answer ({type(error).__name__}): try again later") from None
        if reply.is_error or not isinstance(answer, dict):
            raise Problem(f"the weather service answers HTTP {reply.status_code}: try again later")
        return answer


def _nearest(places: list[dict[str, Any]], region: str) -> dict[str, Any] | None:
    """Return the first place, of those in `region` where that is one's country or state."""
    keys = ("country", "country_code", "admin1")
    fitting = [place for place in places if region.casefold() in {str(place.get(key)).casefold() for key in keys}]
    return next(iter(fitting or places), None)
