"""What stands in for Open-Meteo without a network: its shape, four places, and weather that never changes."""

from __future__ import annotations

import httpx2

_PLACES = {
    "oslo": (59.91, 10.75, "Oslo", "Norway", "Oslo"),
    "san francisco": (37.77, -122.42, "San Francisco", "United States", "California"),
    "nairobi": (-1.29, 36.82, "Nairobi", "Kenya", "Nairobi"),
    "tokyo": (35.69, 139.69, "Tokyo", "Japan", "Tokyo"),
}
_WEATHER = {59.91: (-4.2, 71, 12.0), 37.77: (22.4, 0, 9.5), -1.29: (24.0, 2, 14.1), 35.69: (13.6, 61, 20.3)}
"""Latitude -> degrees Celsius, WMO's code, km/h."""


def answer(request: httpx2.Request) -> httpx2.Response:
    """Answer as Open-Meteo does: `/v1/search` with places, `/v1/forecast` with the weather of one."""
    query = request.url.params
    if request.url.path == "/v1/search":
        place = _PLACES.get(query["name"].casefold())
        if place is None:
            return httpx2.Response(200, json={"generationtime_ms": 0.1})
        keys = ("latitude", "longitude", "name", "country", "admin1")
        return httpx2.Response(200, json={"results": [dict(zip(keys, place, strict=True))]})
    temperature, code, wind = _WEATHER[float(query["latitude"])]
    units = {"temperature_2m": "°C", "wind_speed_10m": "km/h", "weather_code": "wmo code"}
    if query.get("temperature_unit") == "fahrenheit":
        temperature, units["temperature_2m"] = round(temperature * 9 / 5 + 32, 1), "°F"
    if query.get("wind_speed_unit") == "mph":
        wind, units["wind_speed_10m"] = round(wind / 1.609, 1), "mp/h"
    current = {"temperature_2m": temperature, "weather_code": code, "wind_speed_10m": wind}
    return httpx2.Response(200, json={"current": current, "current_units": units})
