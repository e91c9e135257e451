"""Real servers of mail, calendars and devices, in the test's own process, and ones that behave badly."""

from __future__ import annotations

import asyncio
import logging
import threading
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import radicale.app
import radicale.config
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword
from amqtt.broker import Broker
from mcp import Client
from proxyprotocol.reader import ProxyProtocolReader
from pymap.backend.dict import DictBackend
from pymap.imap import IMAPServer

from tests import ports

from .certificates import server_side

HERE = "127.0.0.1"
USER, PASSWORD = "anna@example.com", "a-good-password"


async def called(client: Client, tool: str, **arguments: Any) -> tuple[bool, Any]:
    """Return whether a call is an error, and its structured content or its words."""
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        return True, result.content[0].text
    return False, result.structured_content


@asynccontextmanager
async def talking(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], host: str = HERE
) -> AsyncIterator[int]:
    """Yield the port of a server of which each connection is one run of `talk`."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await talk(reader, writer)
        writer.close()

    async with _open(await asyncio.start_server(connected, host, 0)) as port:
        yield port


@asynccontextmanager
async def _open(server: asyncio.Server) -> AsyncIterator[int]:
    """Yield the port of a server, and leave no connection of it open."""
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        server.close_clients()
        await server.wait_closed()


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say nothing until the client is gone."""
    while await reader.read(1 << 16):
        pass


async def rubbish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say what no protocol has."""
    writer.write(b"\xff\x00\xfe rubbish \r\n" * 20)
    await writer.drain()
    await reader.read(1 << 16)


@asynccontextmanager
async def imap(
    host: str = HERE, port: int = 0, *, tls: Path | None = None, starttls: Path | None = None
) -> AsyncIterator[int]:
    """Yield the port of an IMAP server whose INBOX has four messages, and which has folders Sent and Trash.

    With a certificate in `tls` it speaks nothing else; with one in `starttls` it does when it is told to.
    """
    names = ("host", "key", "passlib_cfg", "proxy_protocol", "inherited_sockets")
    args = Namespace(**dict.fromkeys(names), port=0, debug=False, tls=bool(starttls), cert=starttls, demo_data=True)
    args.demo_user, args.demo_password = USER, PASSWORD
    backend, config = await DictBackend.init(args, secure_auth=False, invalid_user_sleep=0, reject_dnsbl=False)
    config.apply_context()
    callback = ProxyProtocolReader(config.proxy_protocol).get_callback(IMAPServer(backend.login, config))
    async with _open(await asyncio.start_server(callback, host, port, ssl=tls and server_side(tls))) as taken:
        yield taken


@dataclass
class Post:
    """An SMTP server: `taken` are the messages that it has; `refused` are recipients that it does not know."""

    taken: list[Envelope] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)

    async def handle_RCPT(self, server: Any, session: Any, envelope: Envelope, address: str, options: Any) -> str:  # noqa: N802
        if address in self.refused:
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802
        self.taken.append(envelope)
        return "250 taken" if session.authenticated else "530 who are you?"


@asynccontextmanager
async def smtp(
    post: Post, host: str = HERE, *, tls: Path | None = None, starttls: Path | None = None
) -> AsyncIterator[int]:
    """Yield the port of an SMTP server that takes messages of anna alone; `tls` and `starttls` are as of `imap`."""
    upgrade = server_side(starttls) if starttls else None

    def login(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        right = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
        return AuthResult(success=right, handled=False)

    def made() -> SMTP:
        return SMTP(
            post,
            authenticator=login,
            auth_require_tls=upgrade is not None,
            tls_context=upgrade,
            require_starttls=upgrade is not None,
            hostname="post",
        )

    loop = asyncio.get_running_loop()
    async with _open(await loop.create_server(made, host, 0, ssl=tls and server_side(tls))) as port:
        yield port


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def caldav(folder: Path, host: str = HERE, *, tls: Path | None = None) -> Iterator[int]:
    """Yield the port of a CalDAV server with its files in `folder`, by https with a certificate in `tls`."""
    (folder / "users").write_text(f"{USER}:{PASSWORD}\n")
    configuration = radicale.config.load()
    configuration.update(
        {
            "auth": {
                "type": "htpasswd",
                "htpasswd_filename": str(folder / "users"),
                "htpasswd_encryption": "plain",
                "delay": "0",
            },
            "storage": {"filesystem_folder": str(folder / "collections")},
            "logging": {"level": "critical"},
        },
        "tests",
    )
    app = radicale.app.Application(configuration)
    with make_server(host, 0, app, handler_class=_Quiet) as server:
        if tls:  # each connection is greeted when it is first read, by the one thread that answers
            server.socket = server_side(tls).wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
            server.handle_error = lambda *_: None  # type: ignore[method-assign]  # who breaks it off is told of by the client
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


_AMQTT = "amqtt.plugins"


class _Topics(dict[str, Any]):
    """The broker's subscriptions: it goes through them, waiting in between, while other clients come and leave."""

    def __iter__(self) -> Iterator[str]:
        return iter(list(self.keys()))


@dataclass
class Mqtt:
    """A broker at `port`."""

    port: int
    broker: Broker

    async def keeps(self, topics: set[str]) -> None:
        """Return once it keeps a message of each of these topics: it acknowledges them a little before."""
        async with asyncio.timeout(60):
            while not topics <= set(self.broker.retained_messages):
                await asyncio.sleep(0.01)


@asynccontextmanager
async def mqtt(host: str = HERE, *, tls: Path | None = None) -> AsyncIterator[Mqtt]:
    """Yield an MQTT broker that lets in everybody who has a name, by TLS with a certificate in `tls`."""
    port = ports.free_port()
    plugins = {f"{_AMQTT}.authentication.AnonymousAuthPlugin": {"allow_anonymous": False}}
    listener = {"type": "tcp", "bind": f"{host}:{port}"}
    if tls:
        listener |= {"ssl": True, "certfile": str(tls), "keyfile": str(tls)}
    broker = Broker({"listeners": {"default": listener}, "plugins": plugins})
    broker._subscriptions = _Topics()
    logging.getLogger("transitions").setLevel(logging.WARNING)
    await broker.start()
    try:
        yield Mqtt(port, broker)
    finally:
        await broker.shutdown()
