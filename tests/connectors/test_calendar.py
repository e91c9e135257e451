"""The connector of calendars, before Radicale and servers that behave badly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from connectors import serving
from connectors.accounts import Account
from connectors.calendar.dav import Calendar
from connectors.calendar.server import tools
from connectors.problems import Problem
from mcp import Client

from tests import ports

from . import servers
from .servers import PASSWORD, USER, called

DAY = {"start": "2026-11-23", "end": "2026-11-24"}
DENTIST = {"summary": "Dentist", "start": "2026-11-23T10:00:00+01:00", "end": "2026-11-23T11:00:00+01:00"}
WEEKLY = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:x
BEGIN:VEVENT
UID:weekly
DTSTAMP:20261101T000000Z
SUMMARY:Choir
DTSTART:20261102T180000Z
DTEND:20261102T193000Z
RRULE:FREQ=WEEKLY
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n")


@asynccontextmanager
async def calendar(port: int, *, password: str = PASSWORD, timeout: float = 60) -> AsyncIterator[Client]:
    """Yield a client of the connector for the server at `port`."""
    account = {"CALENDAR_USER": USER, "CALENDAR_PASSWORD": password}
    environ = {"CALENDAR_URL": f"http://127.0.0.1:{port}/{USER}/home/", **account}
    async with Client(serving.server("calendar", tools(environ, timeout))) as client:
        yield client


@pytest.fixture
def radicale(tmp_path: Path) -> object:
    """The port of Radicale, with an empty calendar."""
    with servers.caldav(tmp_path) as port:
        made = httpx.request("MKCALENDAR", _at(port), auth=(USER, PASSWORD), trust_env=False, timeout=60)
        assert made.status_code == 201
        yield port


def _at(port: int, name: str = "") -> str:
    return f"http://127.0.0.1:{port}/{USER}/home/{name}"


async def _store(port: int, text: str) -> None:
    """Store a file of the calendar, as another client of it does."""
    async with httpx.AsyncClient(auth=(USER, PASSWORD), trust_env=False, timeout=60) as web:
        (await web.put(_at(port, "w.ics"), content=text)).raise_for_status()


async def test_an_event_is_added_found_and_deleted(radicale: int) -> None:
    async with calendar(radicale) as client:
        _, added = await called(client, "add_event", **DENTIST, location="Main Street 4", notes="Bring the card; early")
        _, day = await called(client, "list_events", **DAY)
        (event,) = day["events"]
        assert event == {
            "uid": added["uid"],
            "summary": "Dentist",
            "start": "2026-11-23T09:00:00+00:00",
            "end": "2026-11-23T10:00:00+00:00",
            "location": "Main Street 4",
            "notes": "Bring the card; early",
        }
        assert (await called(client, "list_events", start="2026-11-24", end="2026-11-25"))[1] == {"events": []}
        assert await called(client, "delete_event", uid=added["uid"]) == (False, {"deleted": added["uid"]})
        assert (await called(client, "list_events", **DAY))[1] == {"events": []}
        failed, words = await called(client, "delete_event", uid=added["uid"])
        assert (failed, words.endswith(f"there is no event {added['uid']}")) == (True, True)


async def test_repetitions_are_events_of_their_own_and_a_day_is_one(radicale: int) -> None:
    await _store(radicale, WEEKLY)
    async with calendar(radicale) as client:
        await called(client, "add_event", summary="Holiday", **DAY)
        _, month = await called(client, "list_events", start="2026-11-01", end="2026-12-01")
    starts = [event["start"] for event in month["events"]]
    assert starts == [f"2026-11-{day}T18:00:00+00:00" for day in ("02", "09", "16")] + ["2026-11-23"] + [
        f"2026-11-{day}T18:00:00+00:00" for day in ("23", "30")
    ]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"start": "tomorrow"}, "`start` is no date"),
        ({"start": "2026-11-23T10:00:00"}, "`start` needs an offset"),
        ({"end": "2026-11-22T10:00:00Z"}, "`end` must be after `start`"),
        ({"end": "2026-11-24"}, "`end` must be after `start`, and a day where that is one"),
    ],
)
async def test_wrong_times_reach_no_server(wrong: dict[str, str], words: str) -> None:
    async with calendar(1) as client:
        failed, said = await called(client, "add_event", **DENTIST | wrong)
    assert failed
    assert words in said


async def test_a_login_that_is_refused_is_said_without_the_password(radicale: int) -> None:
    async with calendar(radicale, password="not-the-password") as client:
        failed, words = await called(client, "list_events", **DAY)
    assert failed
    assert f"refuses {USER}: check CALENDAR_USER and CALENDAR_PASSWORD" in words
    assert "not-the-password" not in words


async def test_an_event_that_changed_meanwhile_is_not_deleted(radicale: int) -> None:
    account = Account("http", "127.0.0.1", radicale, USER, PASSWORD, f"/{USER}/home/")
    await _store(radicale, WEEKLY)
    (read,) = await Calendar(account).with_uid("weekly")
    await _store(radicale, WEEKLY.replace("Choir", "Orchestra"))
    with pytest.raises(Problem, match="the event has changed since it was read"):
        await Calendar(account).remove(read)
    (there,) = await Calendar(account).with_uid("weekly")
    assert "Orchestra" in there.text


def _replying(body: bytes, head: str = "HTTP/1.1 207 Multi-Status") -> object:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"{head}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        await reader.read()

    return reply


BOMB = (
    b'<!DOCTYPE x [<!ENTITY a "'
    + b"a" * 1000
    + b'"><!ENTITY b "'
    + b"&a;" * 1000
    + b'"><!ENTITY c "'
    + b"&b;" * 1000
    + b'">]><x>&c;</x>'
)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (servers.rubbish, "cannot be reached, or speaks no HTTP"),
        (_replying(b"<html><p>Welcome"), "does not answer as a CalDAV server does"),
        (_replying(BOMB), "does not answer as a CalDAV server does"),
        (_replying(b"x" * (5 << 20)), "answers with more than 4 MiB"),
        (_replying(b"", "HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/"), "leads elsewhere"),
        (_replying(b"", "HTTP/1.1 404 Not Found"), "has no such calendar"),
        (_replying(b"", "HTTP/1.1 500 Oops"), "answers with HTTP 500"),
    ],
)
async def test_a_server_that_speaks_something_else_is_named(reply: object, words: str) -> None:
    async with servers.talking(reply) as port, calendar(port) as client:
        failed, said = await called(client, "list_events", **DAY)
    assert failed
    assert words in said
    assert f"127.0.0.1:{port}" in said


async def test_an_event_that_cannot_be_read_is_left_out_and_named() -> None:
    parts = "".join(
        f"<D:response><D:href>/{name}.ics</D:href><D:propstat><D:prop><C:calendar-data>{text}</C:calendar-data></D:prop>"
        "</D:propstat></D:response>"
        for name, text in (("a", "BEGIN:VCALENDAR rubbish"), ("b", WEEKLY))
    )
    elsewhere = parts.replace("<D:href>/", "<D:href>http://elsewhere.example/")
    body = f'<D:multistatus xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav">{parts}{elsewhere}</D:multistatus>'
    async with servers.talking(_replying(body.encode())) as port, calendar(port) as client:
        failed, day = await called(client, "list_events", **DAY)
    assert not failed
    assert [event["summary"] for event in day["events"]] == ["Choir"]
    assert day["notices"][0].startswith("an event cannot be read")


async def test_a_server_that_is_away_or_silent_is_named_and_a_change_may_have_been_made() -> None:
    away = ports.free_port()
    async with servers.talking(servers.silent) as silent:
        async with calendar(away) as client:
            assert "cannot be reached" in (await called(client, "list_events", **DAY))[1]
        async with calendar(silent, timeout=0.5) as client:
            assert "has not answered for 0.5 s." in (await called(client, "list_events", **DAY))[1]
            assert "It is not known whether it did that" in (await called(client, "add_event", **DENTIST))[1]


def test_a_password_never_goes_in_clear_over_a_network() -> None:
    with pytest.raises(Problem, match="in clear: use https"):
        tools({"CALENDAR_URL": "http://anna@calendar.example.com/home/"})
