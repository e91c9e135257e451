"""A DNS server on loopback that answers as told, and the way to make one program ask it instead of the machine's.

glibc asks port 53 of the servers in /etc/resolv.conf and takes no other port. All of 127.0.0.0/8 is loopback, so the
server and the agents, whose port inside a fleet is fixed too, have addresses of their own there; and the program gets a
mount namespace in which resolv.conf is another file. Both take root.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset


@dataclass
class Names(asyncio.DatagramProtocol):
    """The server: `records` maps a host name to its IPv4 addresses; a name without any does not exist."""

    records: dict[str, list[str]] = field(default_factory=dict)
    silent: bool = False
    transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, peer: tuple[str, int]) -> None:
        if self.silent:
            return
        asked = dns.message.from_wire(data)
        reply = dns.message.make_response(asked)
        reply.flags |= dns.flags.RA
        question = asked.question[0]
        found = self.records.get(question.name.to_text(omit_final_dot=True))
        if found is None:
            reply.set_rcode(dns.rcode.NXDOMAIN)
        elif question.rdtype == dns.rdatatype.A:
            reply.answer.append(dns.rrset.from_text(question.name, 0, "IN", "A", *found))
        assert self.transport
        self.transport.sendto(reply.to_wire(), peer)


async def serve(address: str) -> Names:
    """A running server on port 53 of a loopback address."""
    _, names = await asyncio.get_running_loop().create_datagram_endpoint(Names, local_addr=(address, 53))
    return names


def asking(address: str, folder: Path) -> tuple[str, ...]:
    """What to put in front of a command, so that all its look-ups go to the server at `address`."""
    config = folder / "resolv.conf"
    config.write_text(f"nameserver {address}\nsearch .\n")
    script = f'mount --bind {config} /etc/resolv.conf && exec "$@"'
    return ("unshare", "--mount", "--", "sh", "-c", script, "sh")
