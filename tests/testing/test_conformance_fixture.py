"""The fixture `conformance`, in tests that are coroutines and in those that are not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from pallas_testing.conformance_fixture import conformance  # noqa: F401 - the fixture
from tests.testing.conformance.breakable import REPLY, TURN, Agent, verdicts

Check = Callable[..., Any]


@contextmanager
def serving(agent: Agent) -> Iterator[str]:
    """The agent on a free port; its URL."""
    server = uvicorn.Server(uvicorn.Config(agent.app, log_config=None, ws="none", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


class Model:
    """A scripted model as far as it is asked here."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    @property
    def requests(self) -> list[None]:
        return [None] * self._agent.asked


def test_an_agent_that_keeps_the_contract(conformance: Check) -> None:  # noqa: F811 - pytest's way
    agent = Agent()
    with serving(agent) as url:
        report = conformance(url, message=TURN.message, reply=REPLY, model=Model(agent))
    assert verdicts(report, "not asked") == set()


async def test_one_that_does_not_in_a_coroutine(conformance: Check) -> None:  # noqa: F811 - pytest's way
    agent = Agent(frozenset({"health asks the model", "prose"}))
    with serving(agent) as url, pytest.raises(AssertionError) as failure:
        conformance(url, message=TURN.message, model=Model(agent))
    lines = str(failure.value).splitlines()
    assert lines[0].startswith(f"agent {url}/mcp does not keep the contract: ")
    assert [line.split()[1] for line in lines if line.startswith("BROKEN")] == ["health.no-model", "turn.format"] * 2


def test_nobody_there_is_a_failure_too(conformance: Check) -> None:  # noqa: F811 - pytest's way
    with pytest.raises(AssertionError, match="neither a registry nor an agent answers here"):
        conformance("http://127.0.0.1:9")
