"""The real machine: its programs, ports and names."""

from __future__ import annotations

import socket
import sys

from pallas_gen.doctor import machine
from pallas_gen.doctor.machine import Done, Machine


def test_a_program_is_run_or_is_not_here(monkeypatch) -> None:
    run = Machine().run
    program = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    assert run([sys.executable, "-c", program]) == Done(3, "out\n", "err\n")
    assert run(["pallas-no-such-program"]) is None
    monkeypatch.setattr(machine, "_PATIENCE", 0.01)
    assert run([sys.executable, "-c", "import time; time.sleep(60)"]) == Done(1, errors="no answer in 0.01 s")


def test_a_port_that_somebody_listens_on_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert Machine().refusal("127.0.0.1", port) == "address already in use"
    assert Machine().refusal("192.0.2.1", port) == "cannot assign requested address"


def test_names_that_nobody_knows_have_their_reason() -> None:
    reasons = Machine().unresolved(["localhost", "x" * 70 + ".example"])  # no label is that long
    assert reasons.keys() == {"x" * 70 + ".example"}
    assert all(reasons.values())
