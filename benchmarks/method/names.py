"""`python -m benchmarks.method.names`: a DNS server on 127.0.0.1:53 that knows the fake agents, and `registry`.

For a network namespace of its own. The name of agent 7 is `a00007`; each has one IPv4 address and no other.
"""

from __future__ import annotations

import asyncio
import re
import socket
from typing import cast

import uvloop

from benchmarks.method.fleet import address, name

_AGENT = re.compile(rb"a\d{5}")
_A = 1


class Names(asyncio.DatagramProtocol):
    """Answers as RFC 1035 wants it, section 4.1: header, the question again, and one record at most."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, sender: tuple[str, int]) -> None:
        length = data[12]
        label, question = data[13 : 13 + length], data[12 : 12 + 1 + length + 1 + 4]
        found = _AGENT.fullmatch(label) or label == b"registry"
        kind = int.from_bytes(question[-4:-2])
        record = b""
        if found and kind == _A:
            ip = address(int(label[1:])) if label != b"registry" else "127.0.0.1"
            record = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04" + socket.inet_aton(ip)
        flags = b"\x85\x80" if found else b"\x85\x83"  # authoritative; NXDOMAIN for everybody else
        head = data[:2] + flags + b"\x00\x01" + (b"\x00\x01" if record else b"\x00\x00") + b"\x00\x00\x00\x00"
        self._transport.sendto(head + question + record, sender)


async def main() -> None:
    await asyncio.get_running_loop().create_datagram_endpoint(Names, ("127.0.0.1", 53))
    await asyncio.Event().wait()


if __name__ == "__main__":
    assert _AGENT.fullmatch(name(0).encode())
    uvloop.run(main())
