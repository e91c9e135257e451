"""One bounded HTTP/1.1 exchange: no redirects, no compression, a capped body, the deadline of the caller.

Small on purpose: a container healthcheck starts it every few seconds: it imports only the standard library and h11.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

import h11

LIMIT = 64 * 1024
"""Most bytes of a body that are read."""


class Unreachable(Exception):
    """No usable HTTP answer; the text is the reason, fit to be shown."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, headers by lower-case name, and the body (up to the limit, or up to where the reader had enough)."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Enough = Callable[[Reply], bool]
"""Asked after the headers and each piece of the body: does the reader have what it wants? Ends endless streams."""


async def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    address: str | None = None,
    enough: Enough | None = None,
) -> Reply:
    """Send one request on a connection of its own. `address` overrides where to connect; Host stays that of `url`.

    Raises:
        Unreachable: nothing usable came back.
        ValueError: `url` is not http(s) with a host, or a header cannot be sent.
        TimeoutError: only from a deadline the caller set around this call.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise ValueError(f"not an http(s) URL: {url}")
    writer = None
    try:
        reader, writer = await _connect(parts, address)
        return await _exchange(reader, writer, _head(method, parts, headers or {}, body), body, enough)
    except socket.gaierror as error:
        known = error.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
        raise Unreachable("name not found" if known else "name resolution fails") from None
    except ConnectionRefusedError:
        raise Unreachable("connection refused") from None
    except ConnectionError:
        raise Unreachable("connection reset") from None
    except h11.RemoteProtocolError:
        raise Unreachable("broken HTTP answer") from None
    except h11.LocalProtocolError as error:
        raise ValueError(f"not an HTTP request: {error}") from None
    except OSError as error:
        raise Unreachable((error.strerror or type(error).__name__).lower()) from None
    finally:
        if writer is not None:
            writer.transport.abort()  # a clean shutdown would wait for a peer that may be frozen


async def _connect(parts: SplitResult, address: str | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    if not secure:
        return await asyncio.open_connection(address or parts.hostname, port)
    import ssl  # noqa: PLC0415 - 20 ms of start-up that a plain healthcheck does not pay

    context = ssl.create_default_context()
    return await asyncio.open_connection(address or parts.hostname, port, ssl=context, server_hostname=parts.hostname)


def _head(method: str, parts: SplitResult, headers: Mapping[str, str], body: bytes) -> h11.Request:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    fields = {"host": parts.netloc, "connection": "close", "accept-encoding": "identity"}
    if body or method in ("POST", "PUT"):
        fields["content-length"] = str(len(body))
    fields |= {key.lower(): value for key, value in headers.items()}
    encoded = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in fields.items()]
    return h11.Request(method=method, target=target, headers=encoded)


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: h11.Request, body: bytes, enough: Enough | None
) -> Reply:
    wire = h11.Connection(h11.CLIENT, max_incomplete_event_size=LIMIT)
    writer.write(
        (wire.send(head) or b"")
        + (wire.send(h11.Data(body)) or b"" if body else b"")
        + (wire.send(h11.EndOfMessage()) or b"")
    )
    await writer.drain()
    status, fields, received = 0, {}, bytearray()
    while True:
        event = wire.next_event()
        if event is h11.NEED_DATA:
            wire.receive_data(await reader.read(LIMIT))
        elif isinstance(event, h11.Response):
            status = event.status_code
            fields = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in event.headers}
            if fields.get("content-encoding", "identity") != "identity":
                raise Unreachable("compressed answer to a request for an uncompressed one")
            if enough is not None and enough(Reply(status, fields, b"")):
                return Reply(status, fields, b"")
        elif isinstance(event, h11.Data):
            received += event.data
            if len(received) > LIMIT:
                raise Unreachable(f"answer larger than {LIMIT // 1024} KiB")
            if enough is not None and enough(Reply(status, fields, bytes(received))):
                return Reply(status, fields, bytes(received))
        elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
            return Reply(status, fields, bytes(received))
