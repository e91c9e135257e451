"""The fixture `conformance`, in tests that are coroutines and in those that are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pallas_testing.conformance_fixture import conformance  # noqa: F401 - the fixture
from tests.served import serving
from tests.testing.conformance.breakable import REPLY, TURN, Agent, verdicts

Check = Callable[..., Any]


class Model:
    """A scripted model as far as it is asked here."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    @property
    def requests(self) -> list[None]:
        return [None] * self._agent.asked


def test_an_agent_that_keeps_the_contract(conformance: Check) -> None:  # noqa: F811 - pytest's way
    agent = Agent()
    with serving(agent.app, lifespan="off") as url:
        report = conformance(url, message=TURN.message, reply=REPLY, model=Model(agent))
    assert verdicts(report, "not asked") == set()


async def test_one_that_does_not_in_a_coroutine(conformance: Check) -> None:  # noqa: F811 - pytest's way
    agent = Agent(frozenset({"health asks the model", "prose"}))
    with serving(agent.app, lifespan="off") as url, pytest.raises(AssertionError) as failure:
        conformance(url, message=TURN.message, model=Model(agent))
    lines = str(failure.value).splitlines()
    assert lines[0].startswith(f"agent {url}/mcp does not keep the contract: ")
    assert [line.split()[1] for line in lines if line.startswith("BROKEN")] == ["health.no-model", "turn.format"] * 2


def test_nobody_there_is_a_failure_too(conformance: Check) -> None:  # noqa: F811 - pytest's way
    with pytest.raises(AssertionError, match="neither a registry nor an agent answers here"):
        conformance("http://127.0.0.1:9")
