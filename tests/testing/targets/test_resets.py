"""Connections that are open, as the kernel lists them; that it ends them is proven in containers (test_compose.py)."""

from __future__ import annotations

import socket

from pallas_testing.targets import resets


def test_it_lists_the_connections_to_an_address_and_no_others() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        ports = client.getsockname()[1], server.getsockname()[1]
        listed = [resets._ID.unpack_from(connection)[:2] for connection in resets._connections("127.0.0.1")]
        assert ports in listed
        assert list(resets._connections("203.0.113.1")) == []
        resets.main("203.0.113.1")
        client.sendall(b"still there")
