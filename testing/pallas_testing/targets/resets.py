"""Ends the TCP connections of a container to an address, by the kernel's own interface (sock_diag(7), SOCK_DESTROY).

It runs inside the container with all capabilities, handed to its Python as text; its argument is the address. Without
it a connection that was opened before a fault would go on as if nothing had happened.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator

_INET_DIAG = 4
_BY_FAMILY = 20
_DESTROY = 21
_REQUEST = 1
_ACK = 4
_DUMP = 0x300
_ERROR = 2
_DONE = 3
_ESTABLISHED = 1 << 1
_ANY = 0xFFFF
_HEADER = struct.Struct("=IHHII")
_FILTER = struct.Struct("=BBBxI")
_ID = struct.Struct("!HH16s16s")
_COOKIE = struct.Struct("=III")


def main(address: str) -> None:
    """End the connections.

    Raises:
        OSError: the kernel does not.
    """
    for connection in list(_connections(address)):
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _INET_DIAG) as netlink:
            netlink.send(_message(_DESTROY, _REQUEST | _ACK, _ANY, connection))
            (error,) = struct.unpack_from("=i", netlink.recv(4096), _HEADER.size)
        if error:
            raise OSError(-error, "cannot end a connection")


def _connections(address: str) -> Iterator[bytes]:
    """Yield the ids of those that are open to `address`."""
    wanted = socket.inet_aton(address)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _INET_DIAG) as netlink:
        netlink.send(_message(_BY_FAMILY, _REQUEST | _DUMP, _ESTABLISHED, bytes(_ID.size + _COOKIE.size)))
        while True:
            data = netlink.recv(1 << 16)
            while data:
                length, kind, *_ = _HEADER.unpack_from(data)
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    raise OSError(-struct.unpack_from("=i", data, _HEADER.size)[0], "cannot list connections")
                connection = data[_HEADER.size + 4 : _HEADER.size + 4 + _ID.size + _COOKIE.size]
                if _ID.unpack_from(connection)[3][:4] == wanted:
                    yield connection
                data = data[(length + 3) & ~3 :]


def _message(kind: int, flags: int, states: int, connection: bytes) -> bytes:
    body = _FILTER.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, states) + connection
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body


if __name__ == "__main__":
    main(sys.argv[1])
