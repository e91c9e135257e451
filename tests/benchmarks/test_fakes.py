"""The made-up agents and names that benchmarks measure with are what the registry takes for real ones."""

from __future__ import annotations

import pytest

from benchmarks.method import fleet
from benchmarks.method.names import Names
from pallas_contract.probe.probe import Target, probe


@pytest.mark.slow
@pytest.mark.usefixtures("patient")
async def test_fakes_are_agents_and_the_frozen_ones_say_nothing() -> None:
    well, frozen = fleet.address(0), fleet.address(300)
    with fleet.fakes([well], [frozen]) as (port, _):
        found = await probe(Target(f"http://{well}:{port}/mcp", deep=True, tools=True))
        assert (found.state, found.era, found.reason.message) == ("ok", "2026-07-28", "")
        assert set(found.tools or ()) == {"send_message", "get_health"}
        silent = await probe(Target(f"http://{frozen}:{port}/mcp"), timeout=0.3)
        assert (silent.state, silent.reason.message) == ("error", "no answer in 0.3 s")


@pytest.mark.parametrize(
    ("asked", "kind", "expected"),
    [
        (b"a00251", b"\x00\x01", bytes([127, 1, 2, 2])),
        (b"registry", b"\x00\x01", bytes([127, 0, 0, 1])),
        (b"a00251", b"\x00\x1c", b""),
        (b"nobody", b"\x00\x01", None),
    ],
    ids=["an agent", "the registry", "no IPv6", "nobody"],
)
def test_names(asked: bytes, kind: bytes, expected: bytes | None) -> None:
    sent: list[bytes] = []

    class Transport:
        def sendto(self, data: bytes, _sender: tuple[str, int]) -> None:
            sent.append(data)

    question = bytes([len(asked)]) + asked + b"\x00" + kind + b"\x00\x01"
    names = Names()
    names.connection_made(Transport())
    names.datagram_received(b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + question, ("127.0.0.1", 1))
    (said,) = sent
    assert said[:2] == b"\x12\x34"
    assert said[3] & 15 == (3 if expected is None else 0)
    assert said[6:8] == (b"\x00\x01" if expected else b"\x00\x00")
    assert said[12 : 12 + len(question)] == question
    assert said[12 + len(question) :][12:] == (expected or b"")
