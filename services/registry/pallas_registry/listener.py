"""The socket, opened before everything else: a port in use is said at once."""

from __future__ import annotations

import socket


class CannotListen(Exception):
    """The address cannot be listened on; the text says which and why."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        CannotListen: the port is taken, the address is not ours, or we may not.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(2048)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise CannotListen(f"cannot listen on {host}:{port}: {(error.strerror or str(error)).lower()}") from None
    return listener
