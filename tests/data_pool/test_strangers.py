"""The programs of examples/03-data-pool where something else answers: one line, and no traceback."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import ClassVar

import pytest
from elsewhere import data_cleaner
from hosts import gateway

from tests.served import answering


class Stranger(BaseHTTPRequestHandler):
    """Some program that answers everything alike."""

    answers: ClassVar[dict[str, tuple[int, bytes, int]]] = {
        "text": (421, b"Invalid Host header", 19),
        "a list": (200, b"[]", 2),
        "another error": (404, b'{"error": "not found"}', 22),
        "half of an answer": (200, b'{"result"', 90),
        "half of an error": (404, b'{"error"', 90),
    }
    """Status, body and the length that is announced."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status, body, length = self.answers[self.path.split("/")[1].replace("-", " ")]
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def stranger() -> Iterator[str]:
    """The URL of such a program."""
    with answering(Stranger) as url:
        yield url


@pytest.mark.parametrize("answer", Stranger.answers)
def test_what_is_no_gateway_is_named(stranger: str, answer: str) -> None:
    with pytest.raises(gateway.Failed, match="no gateway"):
        gateway.execute(f"{stranger}/{answer.replace(' ', '-')}", "task", tasks=[])


@pytest.mark.parametrize("address", ["nonsense", "http://127.0.0.1:port", "http://127.0.0.1:1"])
def test_an_address_at_which_nobody_can_be_is_named(address: str) -> None:
    with pytest.raises(gateway.Failed, match="no gateway at"):
        gateway.execute(address, "task", tasks=[])


@pytest.mark.parametrize("answer", [name for name, (status, *_) in Stranger.answers.items() if status != 200])
def test_the_data_cleaner_goes_on_without_a_registry(
    stranger: str, answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    registration = data_cleaner.Registration(
        f"{stranger}/{answer.replace(' ', '-')}", "token", "http://127.0.0.1:1/mcp", 1
    )
    registration.beat()
    registration.leave()
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" at ")[0] for line in lines] == ["data_cleaner: no registry"] * 2


def test_a_candle_of_too_few_numbers_is_left_out() -> None:
    sound = [40.0, 43.0, 39.0, 42.0, 1.0]
    assert data_cleaner.clean_data([[40.0, 43.0, 39.0], [], sound, sound[:4]]) == {"ohlcv": [sound, sound[:4]]}
