"""Weather in Open-Meteo's shape, and the time of day where clocks are put forward and back."""

from __future__ import annotations

from dataclasses import replace

import httpx2
import pytest
from home_tools.weather import Weather

PLACE = {"name": "Bergen", "country": "Norway", "admin1": "Vestland", "latitude": 60.39, "longitude": 5.32}
OTHER = {"name": "Bergen", "country": "Germany", "country_code": "DE", "latitude": 52.8, "longitude": 9.96}
UNITS = {"temperature_2m": "°C", "wind_speed_10m": "km/h"}


def answering(replies: dict[str, httpx2.Response], asked: list[httpx2.URL]) -> httpx2.AsyncClient:
    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url)
        return replies[request.url.path]

    return httpx2.AsyncClient(transport=httpx2.MockTransport(answer))


async def test_a_place_is_found_by_its_name_and_the_weather_there_is_a_sentence(home, call) -> None:
    answer = await call("weather", location="San Francisco, CA", units="imperial")
    assert answer.content[0].text == "The weather in San Francisco, United States is 72°F and clear, wind 6 mp/h."


async def test_open_meteo_is_asked_as_it_wants_to_be() -> None:
    current = {"temperature_2m": 7.6, "weather_code": 61, "wind_speed_10m": 20.2}
    asked: list[httpx2.URL] = []
    replies = {
        "/v1/search": httpx2.Response(200, json={"results": [PLACE, OTHER]}),
        "/v1/forecast": httpx2.Response(200, json={"current": current, "current_units": UNITS}),
    }
    weather = Weather("https://weather.example", "https://places.example", answering(replies, asked))
    assert await weather.now("Bergen, Germany", "metric") == (
        "The weather in Bergen, Germany is 8°C and raining, wind 20 km/h."
    )
    assert [url.host for url in asked] == ["places.example", "weather.example"]
    assert asked[0].params["name"] == "Bergen"
    assert (asked[1].params["latitude"], asked[1].params["longitude"]) == ("52.8", "9.96")
    assert asked[1].params["current"] == "temperature_2m,weather_code,wind_speed_10m"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (httpx2.Response(503, json={"error": True}), "answers HTTP 503: try again later"),
        (httpx2.Response(200, text="<html>"), "gives no answer"),
        (httpx2.Response(200, json=[1]), "answers HTTP 200"),
        (httpx2.Response(200, json={"current": {"temperature_2m": None}}), "answers no weather"),
    ],
)
async def test_weather_that_does_not_come_is_said(home, reply: httpx2.Response, said: str) -> None:
    replies = {"/v1/search": httpx2.Response(200, json={"results": [PLACE]}), "/v1/forecast": reply}
    weather = Weather("https://weather.example", "", answering(replies, []))
    with pytest.raises(Exception, match=said):
        await weather.now("Bergen", "metric")


async def test_the_time_is_that_of_the_zone_and_of_the_house_where_none_is_named(home, clock, call) -> None:
    assert (await call("current_time")).content[0].text == "It is Monday 2026-11-23 12:00 UTC (UTC+00:00)."
    there = await call("current_time", time_zone="Asia/Kolkata")
    assert there.content[0].text == "It is Monday 2026-11-23 17:30 IST (UTC+05:30)."


@pytest.mark.parametrize(
    ("time", "zones", "said"),
    [
        ("2026-07-01T12:00", ("Europe/Oslo", "UTC"), "Wednesday 2026-07-01 10:00 UTC"),
        ("2026-07-01T12:00+05:00", ("Europe/Oslo", "UTC"), "Wednesday 2026-07-01 07:00 UTC"),
        ("2026-03-29T02:30", ("Europe/Oslo", "UTC"), "there is no 2026-03-29T02:30 in Europe/Oslo"),
        ("2026-10-25T02:30", ("Europe/Oslo", "UTC"), "write 2026-10-25T02:30+02:00 or 2026-10-25T02:30+01:00"),
        ("half past", ("Europe/Oslo", "UTC"), "`half past` is no date and time"),
        ("2026-07-01T12:00", ("Europe/Oslo", "../etc/passwd"), "there is no time zone `../etc/passwd`"),
        ("2026-07-01T12:00", ("", "UTC"), "there is no time zone ``"),
        ("2026-07-01T12:00", ("Europe", "UTC"), "there is no time zone `Europe`"),
    ],
)
async def test_a_time_is_converted_or_said_to_be_none(call, time: str, zones: tuple[str, str], said: str) -> None:
    answer = await call("convert_time", time=time, from_zone=zones[0], to_zone=zones[1])
    assert said in answer.content[0].text


async def test_the_zone_of_the_house_is_a_setting(home, call) -> None:
    object.__setattr__(home, "settings", replace(home.settings, zone="Europe/Oslo"))
    assert "13:00 CET (UTC+01:00)" in (await call("current_time")).content[0].text
