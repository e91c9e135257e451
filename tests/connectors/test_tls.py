"""The connectors by TLS: who proves to be the server gets the password, anybody else is named and gets nothing."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from connectors import serving
from connectors.calendar import server as calendar
from connectors.mail import server as mail
from connectors.smart_home import server as smart_home
from mcp import Client

from tests import ports

from . import servers
from .certificates import Authority, authority
from .servers import HERE, PASSWORD, USER, Post, called

# paho leaves the socket of a greeting that failed to the garbage collection
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")

ELSEWHERE = "127.0.0.2"
"""A loopback address that is not one of those to which a connector speaks without TLS."""
LOGIN = USER.replace("@", "%40")
NEW = {"to": ["ben@example.com"], "subject": "Dinner", "text": "At seven?"}
DAY = {"start": "2026-11-23", "end": "2026-11-24"}


@dataclass
class Door:
    """A server that speaks TLS, and the tool that asks it."""

    tool: str
    arguments: dict[str, Any]
    client: Callable[[int], AbstractAsyncContextManager[Client]]
    """From the server's port to a client of the connector."""
    serve: Callable[[Path], AbstractAsyncContextManager[int]]
    """From the server's certificate to its port."""
    host: str = HERE
    post: Post = field(default_factory=Post)


@asynccontextmanager
async def connector(name: str, tools: Callable[..., list[Any]], **environ: str) -> AsyncIterator[Client]:
    """Yield a client of a connector with the variables `environ`."""
    async with Client(serving.server(name, tools(environ, 60))) as client:
        yield client


def _mail(scheme: str, host: str) -> Callable[[int], AbstractAsyncContextManager[Client]]:
    def client(port: int) -> AbstractAsyncContextManager[Client]:
        suffix = "s" if scheme == "tls" else ""
        urls = {f"MAIL_{kind.upper()}_URL": f"{kind}{suffix}://{LOGIN}@{host}:{port}" for kind in ("imap", "smtp")}
        return connector("mail", mail.tools, **urls, MAIL_PASSWORD=PASSWORD)

    return client


def _calendar(port: int) -> AbstractAsyncContextManager[Client]:
    url = f"https://{LOGIN}@{HERE}:{port}/{USER}/home/"
    return connector("calendar", calendar.tools, CALENDAR_URL=url, CALENDAR_PASSWORD=PASSWORD)


def _devices(port: int) -> AbstractAsyncContextManager[Client]:
    return connector("smart_home", smart_home.tools, MQTT_URL=f"mqtts://anna@{HERE}:{port}", MQTT_PASSWORD=PASSWORD)


@asynccontextmanager
async def _caldav(certificate: Path) -> AsyncIterator[int]:
    folder = certificate.parent / "calendars"
    folder.mkdir()
    with servers.caldav(folder, tls=certificate) as port:
        url = f"https://{HERE}:{port}/{USER}/home/"
        async with httpx.AsyncClient(auth=(USER, PASSWORD), verify=False, trust_env=False, timeout=60) as web:
            assert (await web.request("MKCALENDAR", url)).status_code == 201
        yield port


@asynccontextmanager
async def _mqtt(certificate: Path) -> AsyncIterator[int]:
    async with servers.mqtt(tls=certificate) as broker:
        yield broker.port


def _doors() -> dict[str, Door]:
    posts = Post(), Post()
    return {
        "imaps": Door("list_mail", {}, _mail("tls", HERE), lambda file: servers.imap(tls=file)),
        "imap": Door(
            "list_mail",
            {},
            _mail("starttls", ELSEWHERE),
            lambda file: servers.imap(ELSEWHERE, starttls=file),
            ELSEWHERE,
        ),
        "smtps": Door(
            "send_mail", NEW, _mail("tls", HERE), lambda file: servers.smtp(posts[0], tls=file), post=posts[0]
        ),
        "smtp": Door(
            "send_mail",
            NEW,
            _mail("starttls", ELSEWHERE),
            lambda file: servers.smtp(posts[1], ELSEWHERE, starttls=file),
            ELSEWHERE,
            posts[1],
        ),
        "https": Door("list_events", DAY, _calendar, _caldav),
        "mqtts": Door("list_devices", {}, _devices, _mqtt),
    }


@pytest.fixture(scope="module")
def _looked_through() -> None:
    """What there is of all tests before: to look through it takes 0.2 s of processor time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=list(_doors()))
def door(request: pytest.FixtureRequest, _looked_through: None) -> Iterator[Door]:
    """Each way by which a connector speaks TLS."""
    yield _doors()[request.param]
    if request.param == "mqtts":
        gc.collect()  # here, and not in some later test that is told of it


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """An authority of the house's own, named as agents.full.yaml would name it."""
    made = authority(tmp_path, "house")
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    return made


async def test_a_server_of_an_own_authority_is_asked(door: Door, own: Authority) -> None:
    async with door.serve(own.signed(door.host)) as port, door.client(port) as client:
        failed, answer = await called(client, door.tool, **door.arguments)
    assert not failed, answer
    assert len(door.post.taken) == (door.tool == "send_mail")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            "stranger",
            "has a certificate that is not trusted: unable to get local issuer certificate: have SSL_CERT_FILE",
        ),
        ("other name", "has a certificate that is not trusted: IP address mismatch, certificate is not valid for "),
        ("expired", "has a certificate that is not trusted: certificate has expired"),
    ],
)
async def test_who_cannot_prove_to_be_the_server_is_told_nothing(
    door: Door, own: Authority, tmp_path: Path, wrong: str, words: str
) -> None:
    (folder := tmp_path / "other").mkdir()
    certificate = {
        "stranger": lambda: authority(folder, "stranger").signed(door.host),
        "other name": lambda: own.signed("192.0.2.1"),
        "expired": lambda: own.signed(door.host, days=-1),
    }[wrong]()
    async with door.serve(certificate) as port, door.client(port) as client:
        failed, answer = await called(client, door.tool, **door.arguments)
    assert failed
    assert f"{door.host}:{port} {words}" in answer
    assert PASSWORD not in answer
    assert door.post.taken == []


async def test_a_server_that_speaks_no_tls_is_told_nothing(door: Door, own: Authority) -> None:
    """Neither one that answers in clear, nor one that does not take STARTTLS."""
    heard = bytearray()

    async def plainly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK post\r\n" if door.tool == "list_mail" else b"220 post\r\n")
        while line := await reader.readline():
            heard.extend(line)
            tag = line.split()[0]
            writer.write(tag + b" BAD no\r\n" if door.tool == "list_mail" else b"250 post\r\n")

    async with servers.talking(plainly, door.host) as port, door.client(port) as client:
        failed, answer = await called(client, door.tool, **door.arguments)
    assert failed
    assert f"{door.host}:{port}" in answer
    assert PASSWORD.encode() not in heard
    assert LOGIN.encode() not in heard
    assert USER.encode() not in heard


async def test_a_file_of_authorities_that_is_not_there_trusts_nobody_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nowhere.pem"))
    door = _doors()["imaps"]
    certificate = authority(tmp_path, "house").signed(HERE)
    async with door.serve(certificate) as port, door.client(port) as client:
        failed, answer = await called(client, door.tool)
    assert failed
    assert "have SSL_CERT_FILE name the file of an authority of your own" in answer


async def test_who_is_away_is_not_called_untrusted(door: Door, own: Authority) -> None:
    away = ports.free_port()
    async with door.client(away) as client:
        failed, answer = await called(client, door.tool, **door.arguments)
    assert failed
    assert f"{door.host}:{away} " in answer
    assert "certificate" not in answer
