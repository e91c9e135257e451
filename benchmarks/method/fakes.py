"""`python -m benchmarks.method.fakes PORT ADDRESS...`: agents that cost next to nothing, all in one process.

There is one at each address. They speak the current era and say that they are well; those at an address after
`--frozen` take connections and say nothing. `0.0.0.0` is every address of a network namespace that has only loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from typing import cast

import uvloop

_ID = re.compile(rb'"id": ?(\d+)')
_LENGTH = re.compile(rb"content-length: ?(\d+)", re.IGNORECASE)
_RESULTS = {
    b"server/discover": b'{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}',
    b"tools/call": b'{"content":[{"type":"text","text":"{\\"status\\":\\"ok\\"}"}]}',
    b"tools/list": b'{"tools":[{"name":"send_message","inputSchema":{"type":"object"}},{"name":"get_health"}]}',
}


class Agent(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self._data = cast("asyncio.Transport", transport), b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, end, body = self._data.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not end or len(body) < int(length[1] if length else 0):
            return
        self._data = b""
        self._transport.write(answer(body))
        if b"connection: close" in head.lower():
            self._transport.close()


class Frozen(asyncio.Protocol):
    """A connection that nobody reads."""


def answer(body: bytes) -> bytes:
    number = _ID.search(body)
    result = next((result for method, result in _RESULTS.items() if b'"%b"' % method in body), b"{}")
    said = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (number[1] if number else b"null", result)
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(said), said)


async def serve(port: int, addresses: list[str], frozen: list[str]) -> None:
    loop = asyncio.get_running_loop()
    for kind, where in ((Agent, addresses), (Frozen, frozen)):
        for address in where:
            await loop.create_server(kind, address, port, backlog=4096)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("addresses", nargs="*")
    parser.add_argument("--frozen", nargs="*", default=[])
    chosen = parser.parse_args()
    uvloop.run(serve(chosen.port, chosen.addresses, chosen.frozen))


if __name__ == "__main__":
    main()
