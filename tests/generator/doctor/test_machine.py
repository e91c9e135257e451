"""The real machine: its ports and names."""

from __future__ import annotations

import socket

from pallas_gen.doctor.machine import Machine


def test_a_port_that_somebody_listens_on_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert Machine().refusal("127.0.0.1", port) == "address already in use"
    assert Machine().refusal("192.0.2.1", port) == "cannot assign requested address"


def test_names_that_nobody_knows_have_their_reason() -> None:
    reasons = Machine().unresolved(["localhost", "x" * 70 + ".example"])  # no label is that long
    assert reasons.keys() == {"x" * 70 + ".example"}
    assert all(reasons.values())
