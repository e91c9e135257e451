"""One bounded exchange against servers that do not play by the rules."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from pallas_contract.probe import http_client

STATUS = b"HTTP/1.1 200 OK\r\n"


async def test_a_plain_answer(serve, answer) -> None:
    server = await serve(answer(200, b'{"a":1}', content_type="application/json"))
    reply = await http_client.request("POST", f"{server.url}?x=1", headers={"X-Own": "yes"}, body=b"hello")
    assert (reply.status, reply.body, reply.headers["content-type"]) == (200, b'{"a":1}', "application/json")
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/mcp?x=1", b"hello")
    assert asked.headers["accept-encoding"] == "identity"
    assert asked.headers["x-own"] == "yes"


async def test_the_address_is_where_it_connects_and_the_url_is_what_it_says(serve, answer) -> None:
    server = await serve(answer(200))
    port = server.url.rsplit(":", 1)[1]
    await http_client.request("GET", f"http://research:{port}", address="127.0.0.1")
    assert server.asked[0].headers["host"].startswith("research:")


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch) -> Path:
    """One that this process trusts, with its key in one file."""
    file, subject = tmp_path / "own.pem", ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    new = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject)
    subprocess.run([*new, "-keyout", file, "-out", tmp_path / "cert.pem"], check=True, capture_output=True)
    file.write_bytes(file.read_bytes() + (tmp_path / "cert.pem").read_bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    return file


async def test_whom_to_trust_is_read_when_it_changes(certificate: Path, monkeypatch) -> None:
    later = certificate.with_name("later.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(later))
    made, make = [], ssl.create_default_context
    monkeypatch.setattr(ssl, "create_default_context", lambda: made.append(make()) or made[-1])
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(certificate)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(STATUS + b"content-length: 2\r\n\r\nok")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server_side) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(http_client.Unreachable, match="certificate verify failed"):
            await http_client.request("GET", f"https://localhost:{port}", address="127.0.0.1")
        certificate.rename(later)
        for _ in range(3):
            assert (await http_client.request("GET", f"https://localhost:{port}", address="127.0.0.1")).body == b"ok"
        with pytest.raises(http_client.Unreachable, match="certificate verify failed"):
            await http_client.request("GET", f"https://other.example:{port}", address="127.0.0.1")
    assert len(made) == 2


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_an_answer_and_never_followed(serve, answer, status: int) -> None:
    elsewhere = await serve(answer(200, b"secret"))
    server = await serve(answer(status, location=elsewhere.url))
    reply = await http_client.request("GET", server.url)
    assert reply.status == status
    assert elsewhere.asked == []


async def test_a_compressed_answer_is_refused(serve, answer) -> None:
    server = await serve(answer(200, b"\x1f\x8b" + b"\0" * 1000, content_encoding="gzip"))
    with pytest.raises(http_client.Unreachable, match="compressed answer"):
        await http_client.request("GET", server.url)


async def test_a_body_over_the_limit_is_cut_and_the_connection_dropped(serve) -> None:
    async def flood(_asked, writer) -> None:
        writer.write(STATUS + b"content-length: 104857600\r\n\r\n")
        for _ in range(1600):
            writer.write(b"x" * 65536)
            await writer.drain()

    server = await serve(flood)
    with pytest.raises(http_client.Unreachable, match="answer larger than 64 KiB"):
        await http_client.request("GET", server.url)
    await server.closed.wait()


async def test_a_body_of_exactly_the_limit_is_read(serve, answer) -> None:
    server = await serve(answer(200, b"x" * http_client.LIMIT))
    assert len((await http_client.request("GET", server.url)).body) == http_client.LIMIT


async def test_a_caller_may_have_another_limit(serve, answer) -> None:
    body = b"x" * (2 * http_client.LIMIT)
    server = await serve(answer(200, body))
    assert (await http_client.request("GET", server.url, limit=len(body))).body == body
    with pytest.raises(http_client.Unreachable, match="answer larger than 127 KiB"):
        await http_client.request("GET", server.url, limit=len(body) - 1)


async def test_headers_without_end_are_cut(serve) -> None:
    async def flood(_asked, writer) -> None:
        writer.write(STATUS)
        while True:
            writer.write(b"x-filler: " + b"x" * 1000 + b"\r\n")
            await writer.drain()

    server = await serve(flood)
    with pytest.raises(http_client.Unreachable, match="broken HTTP answer"):
        await http_client.request("GET", server.url)


@pytest.mark.parametrize("around", [b"x-filler: " + b"x" * 1000 + b"\r\n", b"x" * 1000], ids=["fields", "value"])
async def test_trailers_without_end_are_cut(serve, around: bytes) -> None:
    """However they come: as fields, or as one whose value has no end."""

    async def flood(_asked, writer) -> None:
        writer.write(STATUS + b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-first: 1\r\nx-second: ")
        for _ in range(10_000):
            writer.write(around)
            await writer.drain()
        writer.write(b"\r\n\r\n")

    server = await serve(flood)
    with pytest.raises(http_client.Unreachable, match="answer larger than 64 KiB"):
        await http_client.request("GET", server.url)
    await server.closed.wait()


async def test_a_trailer_is_no_header(serve) -> None:
    async def say(_asked, writer) -> None:
        writer.write(STATUS + b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nmcp-session-id: late\r\n\r\n")

    reply = await http_client.request("GET", (await serve(say)).url)
    assert (reply.body, dict(reply.headers)) == (b"ok", {"transfer-encoding": "chunked"})


async def test_an_endless_stream_ends_when_the_reader_has_enough(serve) -> None:
    async def stream(_asked, writer) -> None:
        writer.write(STATUS + b"content-type: text/event-stream\r\n\r\n")
        while True:
            writer.write(b"data: tick\n\n")
            await writer.drain()
            await asyncio.sleep(0)

    server = await serve(stream)
    reply = await http_client.request("GET", server.url, is_complete=lambda reply: b"tick" in reply.body)
    assert reply.body.startswith(b"data: tick\n\n")
    await server.closed.wait()


async def test_the_reader_may_have_enough_after_the_headers(serve) -> None:
    async def silent(_asked, writer) -> None:
        writer.write(STATUS + b"content-length: 5\r\n\r\n")
        await asyncio.Event().wait()

    server = await serve(silent)
    assert (await http_client.request("GET", server.url, is_complete=lambda _: True)).status == 200


@pytest.mark.parametrize("drip", [True, False], ids=["one byte at a time", "nothing at all"])
async def test_the_deadline_is_for_the_whole_exchange_not_for_each_read(serve, drip: bool) -> None:
    async def slow(_asked, writer) -> None:
        writer.write(STATUS + b"content-length: 1000000\r\n\r\n")
        while drip:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)
        await asyncio.Event().wait()

    server = await serve(slow)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await http_client.request("GET", server.url)


async def test_a_half_open_connection_meets_the_deadline() -> None:
    """A backlog that nobody accepts from: the kernel completes the handshake, then silence."""
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await http_client.request("GET", f"http://127.0.0.1:{listener.getsockname()[1]}/")


async def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(http_client.Unreachable, match="connection refused"):
        await http_client.request("GET", f"http://127.0.0.1:{port}/")


async def test_a_reset_in_the_middle(serve) -> None:
    async def reset(_asked, writer) -> None:
        writer.write(STATUS + b"content-length: 100\r\n\r\nhalf")
        await writer.drain()
        linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    server = await serve(reset)
    with pytest.raises(http_client.Unreachable, match=r"connection reset|broken HTTP answer"):
        await http_client.request("GET", server.url)


@pytest.mark.parametrize(
    "garbage",
    [b"", b"SSH-2.0-OpenSSH_9.2\r\n\r\n", STATUS + b"content-length: 10\r\n\r\nshort", STATUS + b"no colon\r\n\r\n"],
    ids=["closes at once", "another protocol", "shorter than it says", "bad header"],
)
async def test_what_is_not_http_is_a_reason(serve, garbage: bytes) -> None:
    async def say(_asked, writer) -> None:
        writer.write(garbage)

    server = await serve(say)
    with pytest.raises(http_client.Unreachable, match="broken HTTP answer"):
        await http_client.request("GET", server.url)


@pytest.mark.parametrize(
    ("number", "reason"),
    [(socket.EAI_NONAME, "name not found"), (socket.EAI_AGAIN, "name resolution fails")],
)
async def test_a_name_that_is_not_there_and_a_resolver_that_fails(monkeypatch, number: int, reason: str) -> None:
    def fail(*_args, **_options):
        raise socket.gaierror(number, "whatever")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(http_client.Unreachable, match=reason):
        await http_client.request("GET", "http://research:8080/mcp")


@pytest.mark.parametrize("url", ["ftp://host/", "http:///mcp", "/mcp", "http://user@host/", "http://host:99999/"])
async def test_what_is_no_url_of_ours_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"not an http\(s\) URL|[Pp]ort"):
        await http_client.request("GET", url)


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        ("", "Authorization", "Bearer s3cret\n"),
        ("", "authorization", "s3cret\r\nx: y"),
        ("", "s3cret: x\r\ny", "z"),
        ("?token=s3cret 1", "a", "b"),
    ],
)
async def test_what_would_break_the_request_is_not_sent_and_not_shown(
    serve, answer, path: str, name: str, value: str
) -> None:
    server = await serve(answer(200))
    with pytest.raises(ValueError, match="not an HTTP request") as refused:
        await http_client.request("GET", server.url + path, headers={name: value})
    assert "s3cret" not in str(refused.value)
    assert server.asked == []


@pytest.mark.parametrize("url", ["http://bob:s3cret@host/", "ftp://host/s3cret?s3cret", "http://host:s3cret/"])
async def test_a_url_that_is_refused_is_not_shown(url: str) -> None:
    with pytest.raises(ValueError, match=r"not an http\(s\) URL") as refused:
        await http_client.request("GET", url)
    assert "s3cret" not in str(refused.value)


async def test_header_bytes_come_back_as_they_came(serve, answer) -> None:
    server = await serve(answer(200, odd="\xff"))
    odd = (await http_client.request("GET", server.url)).headers["odd"]
    await http_client.request("GET", server.url, headers={"odd": odd})
    assert server.asked[1].headers["odd"] == "\xff"


Scripted = Callable[..., Awaitable[str]]


@pytest.fixture
async def connections() -> list[list[bytes]]:
    """For each connection the requests that came on it."""
    return []


@pytest.fixture
async def scripted(connections: list[list[bytes]]) -> AsyncIterator[Scripted]:
    """`await scripted(answer, ...)`: the URL of a server that gives these bytes on each connection, then closes it."""
    running = []

    async def start(*answers: bytes) -> str:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked: list[bytes] = []
            connections.append(asked)
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                for answer in answers:
                    asked.append(await reader.readuntil(b"\r\n\r\n"))
                    writer.write(answer)
            writer.close()

        running.append(await asyncio.start_server(connected, "127.0.0.1", 0))
        return f"http://127.0.0.1:{running[-1].sockets[0].getsockname()[1]}/"

    yield start
    for server in running:
        server.close()
        server.close_clients()
        await server.wait_closed()


OK = STATUS + b"content-length: 2\r\n\r\nok"


async def test_requests_share_a_connection(scripted: Scripted, connections: list[list[bytes]]) -> None:
    async with http_client.Client(await scripted(OK, OK)) as client:
        replies = [await client.request("GET"), await client.request("GET", last=True)]
    assert [reply.body for reply in replies] == [b"ok", b"ok"]
    assert [b"connection: close" in asked for asked in connections[0]] == [False, True]


async def test_a_kept_connection_that_was_closed_meanwhile_is_opened_again(
    scripted: Scripted, connections: list[list[bytes]]
) -> None:
    async with http_client.Client(await scripted(OK)) as client:
        for _ in range(5):
            assert (await client.request("GET")).body == b"ok"
    assert len(connections) == 5


async def test_a_server_that_says_nothing_is_asked_no_more_than_twice(
    scripted: Scripted, connections: list[list[bytes]]
) -> None:
    url = await scripted(OK, b"")
    async with http_client.Client(url) as client:
        assert (await client.request("GET")).body == b"ok"
        assert (await client.request("GET")).body == b"ok"
    with pytest.raises(http_client.Unreachable, match="broken HTTP answer"):
        await http_client.request("GET", await scripted(b""))
    assert len(connections) == 3


@pytest.mark.parametrize(
    "first",
    [
        OK + STATUS + b"content-length: 4\r\n\r\nevil",
        OK + b"evil",
        OK + b"\0",
        OK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"),
    ],
    ids=["a second answer", "half of one", "garbage", "said to be the last"],
)
async def test_what_is_left_over_is_never_the_next_answer(
    scripted: Scripted, connections: list[list[bytes]], first: bytes
) -> None:
    async with http_client.Client(await scripted(first, OK)) as client:
        assert (await client.request("GET")).body == b"ok"
        assert (await client.request("GET")).body == b"ok"
    assert len(connections) == 2


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 100 Continue\r\nx: y\r\n\r\n" + OK, b"ok"),
        (STATUS + b"\r\nto the end", b"to the end"),
        (STATUS + b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.0 200 OK\r\n\r\nold", b"old"),
    ],
    ids=["a provisional answer first", "until it closes", "chunks", "no content", "HTTP/1.0"],
)
async def test_answers_of_every_shape(scripted: Scripted, answer: bytes, body: bytes) -> None:
    assert (await http_client.request("GET", await scripted(answer))).body == body


@pytest.mark.parametrize(
    "answer",
    [
        STATUS + b"content-length: 2\r\ncontent-length: 3\r\n\r\nok",
        STATUS + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        STATUS + b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    ],
    ids=["two lengths", "length and chunks", "chunks without an end", "another protocol from here on"],
)
async def test_answers_that_can_be_read_two_ways_are_refused(scripted: Scripted, answer: bytes) -> None:
    with pytest.raises(http_client.Unreachable, match="broken HTTP answer"):
        await http_client.request("GET", await scripted(answer))
