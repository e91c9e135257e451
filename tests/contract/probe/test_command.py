"""Any URL, asked once or until it answers."""

from __future__ import annotations

import pytest

from pallas_contract.probe import command

DOWN = "http://127.0.0.1:1/mcp"


async def test_a_port_is_asked_whether_somebody_listens(serve, answer) -> None:
    server = await serve(answer(503))
    assert await command.check(server.url.replace("http://", "tcp://")) == ""
    assert await command.check("tcp://127.0.0.1:1") == "connection refused"
    assert (await command.check("tcp://127.0.0.1:port")).startswith("Port could not be cast")


class Time:
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.mark.parametrize(("seconds", "pauses"), [(0.0, 0), (1.0, 0), (1.5, 1), (5.0, 4), (300.0, 299)])
async def test_waiting_is_bounded_and_pauses_between_attempts(monkeypatch, seconds: float, pauses: int) -> None:
    time, attempts = Time(), []

    async def check(url: str, *, deep: bool) -> str:
        attempts.append((url, deep))
        assert len(attempts) <= 300, "no pause, no end"
        return "connection refused"

    monkeypatch.setattr(command, "check", check)
    reason = await command.wait(DOWN, seconds, deep=True, clock=lambda: time.now, sleep=time.sleep)
    assert reason == "connection refused"
    assert attempts == [(DOWN, True)] * (pauses + 1)
    assert time.pauses == [command.PAUSE] * pauses
