"""The load of the proof in its short form: the measures are made, and what must be 0 is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread

import pytest

from pallas_testing.answers.answer import AgentFailed, Answer
from pallas_testing.answers.calls import Call
from proof import load

GOOD = "Research, asking from a. Tech Research, asking from b. Engineering, asking from c."


class Asked:
    """Harper as a fleet gives it: each question gets the next of these answers."""

    def __init__(self, *answers: str | Exception) -> None:
        self._answers = iter(answers)

    def agent(self, _: str) -> Asked:
        return self

    async def send(self, _: str) -> Answer:
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return Answer(answer, (), Call("harper", "harper__harper", 0.0))


def failed(text: str) -> AgentFailed:
    return AgentFailed(Answer(text, (), Call("harper", "harper__harper", 0.0)))


def test_turns_that_fail_say_why() -> None:
    group = ExceptionGroup("in a task", [ExceptionGroup("in another", [ConnectionError("port 12 | closed")])])
    fleet = Asked(GOOD, failed("no\n  model 7"), group, "Research, asking from a.", TimeoutError())
    tally, failures = asyncio.run(load._turns(fleet, 5))  # type: ignore[arg-type]
    assert len(tally.seconds) == 1
    assert [(failure.turn, failure.reason) for failure in failures] == [
        (1, "harper says: no model #"),
        (2, "ConnectionError: port # / closed"),
        (3, "the answer lacks Tech Research, Engineering"),
        (4, "TimeoutError:"),
    ]


def test_failures_are_kept_with_the_logs(tmp_path: Path) -> None:
    load._write(tmp_path / "turns", [load.Failure(3, 1.0, 2.0, "late")], {"harper": "a line\n"})
    assert json.loads((tmp_path / "turns" / "failures.json").read_text())[0]["reason"] == "late"
    assert (tmp_path / "turns" / "harper.log").read_text() == "a line\n"


class Catalogue:
    """A registry that answers with 200, 503, not at all, and then with 200 for ever."""

    def __init__(self) -> None:
        self.url = ""
        self.asked = 0
        self.enough = Event()
        self._statuses = iter((200, 503, 0))
        self._lock = Lock()

    def status(self) -> int:
        """Return the next one; 0 closes the connection."""
        with self._lock:
            self.asked += 1
            if self.asked == 40:
                self.enough.set()
            return next(self._statuses, 200)


@pytest.fixture
def catalogue() -> Iterator[Catalogue]:
    registry = Catalogue()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status = registry.status()
            if not status:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.url = f"http://127.0.0.1:{server.server_port}"
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield registry
        server.shutdown()
        thread.join()


def test_an_answer_that_is_no_200_and_one_that_breaks_off_are_counted(catalogue: Catalogue) -> None:
    with load.asked(catalogue.url, 1000.0) as tally:
        tally.meanwhile = "kill"
        assert catalogue.enough.wait(60)
    assert tally.reasons == {"503 during kill": 1, "IncompleteReadError during kill": 1}
    assert len(tally.seconds) == catalogue.asked - 1


def test_a_connection_that_the_fault_itself_ends_is_told_apart(catalogue: Catalogue) -> None:
    with load.asked(catalogue.url, 1000.0) as tally:
        tally.ends = True
        assert catalogue.enough.wait(60)
    assert (tally.reasons, tally.ended) == ({"503": 1}, 1)


@pytest.mark.slow
def test_clients_and_hundreds_of_agents() -> None:
    measures = {measure.what.partition(",")[0]: measure for measure in load.clients(1.0, agents=5)}
    assert measures["answers that are no 200"].held
    assert measures["requests per second"].values[0] > 0
    measures = {measure.what.partition(" ")[0]: measure for measure in load.hundreds(1.0, agents=5)}
    assert measures["rounds"].held
    assert measures["states"].text == '{"ok": 5}'


def test_what_ends_the_clients_is_raised_at_the_end(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unreadable(_: asyncio.StreamReader) -> bytes:
        catalogue.enough.set()
        raise ValueError("no status")

    monkeypatch.setattr(load, "_answer", unreadable)
    with (
        pytest.raises(ExceptionGroup, match="unhandled errors") as failed,
        load.asked(catalogue.url, 1000.0),
    ):
        assert catalogue.enough.wait(60)
    assert {str(error) for error in load.leaves(failed.value)} == {"no status"}


def test_an_answer_that_never_comes_counts_as_no_200(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "DEADLINE", 0.01)

    async def ask() -> load.Tally:
        tally = load.Tally()

        async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()  # until the client gives up
            writer.close()

        async with await asyncio.start_server(hold, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with asyncio.timeout(60):
                await load._client(url, lambda: tally.others >= 2, load.Pace(0.0, 0), tally)
        return tally

    tally = asyncio.run(ask())
    assert (tally.seconds, tally.others) == ([], 2)


def test_where_nothing_is_answered_nothing_has_held() -> None:
    assert not load.others("17", "answers", load.Tally()).held
    tally = load.Tally([0.1])
    assert load.others("17", "answers", tally).held
    tally.other("503")
    told = load.others("17", "answers", tally)
    assert (told.held, told.what) == (False, "answers, of 1 (1 x 503)")
