"""Our own agents before the judge that `pallas-testing conformance` is: both seeds, in both eras."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pallas_testing.conformance import official, run
from pallas_testing.conformance.evidence import Turn
from pallas_testing.conformance.run import Question, Report
from pallas_testing.conformance.session import ERAS, MODERN
from tests.e2e import suite

pytestmark = pytest.mark.slow

TIMELESS = lambda: 0.0  # noqa: E731 - how fast a machine is today is not theirs to answer for
TURN = Turn("delegate what is pallas?", "It said: what is pallas?")


async def judged(fleet: Any, agent: str, model: Any) -> Report:
    count = lambda: len(model.requests)  # noqa: E731
    return await run.check(Question(fleet.url(agent), eras=ERAS, turn=TURN, model_requests=count), clock=TIMELESS)


async def test_an_agent_that_delegates_keeps_every_sentence(fleet: Any, model: Any) -> None:
    report = await judged(fleet, "harper", model)
    assert [finding for finding in report.findings if finding.verdict != "held"] == []


async def test_one_that_remembers_nothing_lacks_only_the_history(fleet: Any, model: Any) -> None:
    question = Question(fleet.url("tech_research"), eras=ERAS, turn=Turn("hello", "hello"))
    report = await run.check(question, clock=TIMELESS)
    assert report.of("broken") == []
    assert {finding.id for finding in report.of("not asked")} == {
        "history.prompt",
        "history.content",
        "health.no-model",
    }


async def test_it_finds_out_that_it_is_an_agent(fleet: Any) -> None:
    url = fleet.url("harper", "")
    asked = [Question(url), Question(url, kind="registry")]
    report, registry = await asyncio.gather(*(run.check(question, clock=TIMELESS) for question in asked))
    assert (report.kind, report.conformant) == ("agent", True)
    assert [finding for finding in registry.findings if finding.verdict != "held"] == []  # its own entry is one, too


@pytest.mark.conformance
def test_the_official_suite_beside_it_finds_nothing_either(fleet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(official, "SCENARIOS", {MODERN: ["tools-list"]})  # of the others only the names differ
    findings = official.run(fleet.url("harper"), suite.command("conformance"), [MODERN])
    assert [finding for finding in findings if finding.verdict != "held"] == []
    assert {finding.id.split(".")[1] for finding in findings} == {"tools-list", official.LOCAL}
