"""The health check of a container: one question to the own machine, with next to nothing imported.

A check is a process of its own. What `probe` imports (asyncio, TLS, a parser of HTTP, dataclasses) takes four times the
processor time of all the rest; so this asks first, and leaves to `probe` whatever is not plainly well or plainly not
there. What it answers is what `probe` would.
"""

from __future__ import annotations

import _socket  # what `socket` is made of: its enums and selectors would be a quarter of a check
import time

from pallas_contract import __version__, names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REFUSED = "connection refused"

_HERE = "http://127.0.0.1:"
_LIMIT = 64 * 1024
"""Most bytes of an answer that are read, as in `http_connection`."""
_ASIDE = 1.0
"""Seconds for a goodbye, as in `session`."""
_DOWN = b"HTTP/1.1 503 "
"""How a page of health says that its program is not ready yet."""
_PAUSE = 0.1
"""Seconds between two questions while waiting: one that is refused takes 20 µs of processor time."""
_MODERN = "2026-07-28"
_LEGACY = "2025-11-25"
"""The eras of `session`."""
_BODY = (
    '{"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {'
    f'"io.modelcontextprotocol/protocolVersion": "{_MODERN}", "io.modelcontextprotocol/clientCapabilities": {{}}, '
    f'"io.modelcontextprotocol/clientInfo": {{"name": "pallas-probe", "version": "{__version__}"}}}}}}}}'
)
_DISCOVER = {
    "content-length": str(len(_BODY)),
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": _MODERN,
    "mcp-method": "server/discover",
}


def ask(url: str, *, timeout: float = names.PROBE_TIMEOUT) -> str | None:
    """Return why the URL does not answer as it should, "" when it does; None where this cannot tell.

    `timeout` in seconds, for all of it. Only a URL of IPv4's loopback is asked, in plain HTTP.
    """
    port, path = _parts(url)
    if not port:
        return None
    mcp = url.endswith(names.MCP_PATH)
    try:
        if mcp:
            answer = _exchange(port, f"POST /{path}", _DISCOVER, body=_BODY, timeout=timeout)
        else:
            answer = _exchange(port, f"GET /{path}", {}, timeout=timeout)
    except ConnectionRefusedError:
        return explained("127.0.0.1", port, REFUSED)
    except TimeoutError:
        return f"no answer in {timeout:g} s"
    except OSError:
        return None
    if not mcp and answer.startswith(_DOWN) and _parsed(answer)[1] is not None:
        return "HTTP 503"
    return "" if _is_well(answer, port, path, mcp=mcp) else None


def _parts(url: str) -> tuple[int, str]:
    """Return port and path of a URL of this machine, 0 for any other URL."""
    digits, slash, path = url.removeprefix(_HERE).partition("/")
    plain = url.startswith(_HERE) and slash and url.isascii() and digits.isdecimal()
    if not plain or not url.isprintable() or " " in url or "#" in url or not 0 < int(digits) < 1 << 16:
        return 0, ""
    return int(digits), path


def wait(url: str, seconds: float) -> str | None:
    """Return what `ask` does, asked again until it is something else than a reason or `seconds` have passed.

    So one process waits for a program that starts, in the place of one for each question.
    """
    deadline = time.monotonic() + seconds
    while (reason := ask(url)) and time.monotonic() + _PAUSE < deadline:
        time.sleep(_PAUSE)
    return reason


def explained(host: str | None, port: int, reason: str) -> str:
    """Return `reason` with what it means of the own container: its program listens elsewhere, or not yet."""
    if reason != REFUSED or host not in names.LOCAL_HOSTS:
        return reason
    return f"nobody listens on {port}; the program must listen on {names.ENV_BIND}"


def _exchange(port: int, start: str, fields: dict[str, str], *, timeout: float, body: str = "") -> bytes:
    """Return the answer to a request: all of it to one with a body, where its length is told, else its head or more.

    Raises:
        OSError: there is none; TimeoutError: not in time.
    """
    base = {"host": f"127.0.0.1:{port}", "accept-encoding": "identity", "connection": "close"}
    lines = [f"{start} HTTP/1.1", *(f"{name}: {value}" for name, value in (base | fields).items()), "", body]
    deadline = time.monotonic() + timeout
    received = b""
    connection = _socket.socket()
    try:
        connection.settimeout(timeout)
        connection.connect(("127.0.0.1", port))
        connection.sendall("\r\n".join(lines).encode())
        while len(received) <= _LIMIT and not _is_complete(received, whole=bool(body)):
            if (remaining := deadline - time.monotonic()) <= 0:
                raise TimeoutError
            connection.settimeout(remaining)
            piece = connection.recv(_LIMIT)
            if not piece:
                break
            received += piece
    finally:
        connection.close()
    return received


def _is_complete(received: bytes, *, whole: bool) -> bool:
    _, fields, body = _parsed(received)
    if fields is None:
        return False
    length = fields.get("content-length", "")
    # With a session it is enough to know its name; and whoever tells no length is left to `probe`.
    is_length = length.isdecimal() and len(length) <= len(str(_LIMIT))
    return not whole or "mcp-session-id" in fields or not is_length or len(body) >= int(length)


def _parsed(answer: bytes) -> tuple[str, dict[str, str] | None, bytes]:
    """Return start, fields by lower-case name and body; None for fields as long as the head is not whole."""
    head, end, body = answer.partition(b"\r\n\r\n")
    start, *lines = head.decode("latin-1").split("\r\n")
    fields = (line.partition(":") for line in lines)
    return start, {name.lower(): value.strip() for name, _, value in fields} if end else None, body


def _is_well(answer: bytes, port: int, path: str, *, mcp: bool) -> bool:
    """Return whether an answer is one that `probe` is content with, and plain enough to be read here."""
    start, fields, body = _parsed(answer)
    if fields is None:
        return False
    session = fields.get("mcp-session-id", "")
    if mcp and session:
        # Some servers open one for any first request, even one they refuse. `probe` asks again, and closes its own.
        goodbye = {"mcp-session-id": session, "mcp-protocol-version": _LEGACY}
        try:
            _exchange(port, f"DELETE /{path}", goodbye, timeout=_ASIDE)
        except OSError:
            return False
        return False
    if not fields.keys().isdisjoint({"content-encoding", "transfer-encoding"}):
        return False
    if start.startswith(("HTTP/1.1 401 ", "HTTP/1.1 403 ")):
        return True  # reachable, whoever may ask
    return start.startswith("HTTP/1.1 200 ") and (not mcp or _is_discovered(fields, body))


class _Plain:
    """How JSON becomes objects: as `json.loads` has it."""

    strict, object_hook, object_pairs_hook, parse_float, parse_int, parse_constant = True, None, None, float, int, float


def _is_discovered(fields: dict[str, str], body: bytes) -> bool:
    import _json  # noqa: PLC0415 - while a container starts there is nothing to read; json would import `re`

    reading: Any = _Plain
    if fields.get("content-length") != str(len(body)) or fields.get("content-type") != "application/json":
        return False
    try:
        message, end = _json.make_scanner(reading)(text := body.decode().strip(" \t\r\n"), 0)
        versions = message["result"]["supportedVersions"]
        return end == len(text) and message["id"] == 1 and isinstance(versions, list) and _MODERN in versions
    except (ValueError, RecursionError, LookupError, TypeError, StopIteration):  # StopIteration: nothing to begin with
        return False
