"""fast-agent's events as the seed's progress lines."""

from __future__ import annotations

from typing import Any

import pytest
from fast_agent import RequestParams

from pallas_agent_runtime.calls.progress import Progress

Line = tuple[float, float | None, str]


@pytest.fixture
def lines() -> list[Line]:
    return []


@pytest.fixture
def progress(lines: list[Line]) -> Progress:
    async def report(value: float, total: float | None, message: str) -> None:
        lines.append((value, total, message))

    return Progress(report, {"main": "harper"}, frozenset({"research"}))


async def test_tools_of_servers_and_of_sub_agents(progress: Progress, lines: list[Line]) -> None:
    first = await progress.on_tool_start("search_web", "argos", {"q": "secret"}, "id-1")
    second = await progress.on_tool_start("research", "research", None)
    await progress.on_tool_progress(second, 0.5, None, "research step 1 (llm)")
    await progress.on_tool_progress(second, 0.6, None, None)
    await progress.on_tool_progress(second, 9, 9, "wiki/look: completed")
    await progress.on_tool_complete(first, False, None, "boom")
    await progress.on_tool_complete(second, True, [], None)
    assert lines == [
        (1, None, "argos/search_web: started"),
        (2, None, "research/research__research: started"),
        (3, None, "research step 1 (llm)"),
        (4, 4, "wiki/look: completed"),
        (5, 5, "argos/search_web: failed"),
        (6, 6, "research/research__research: completed"),
    ]


async def test_the_loops_steps_carry_the_agents_name_in_the_fleet(progress: Progress, lines: list[Line]) -> None:
    loop = await progress.on_tool_start("agent_loop", "main", None)
    await progress.on_tool_progress(loop, 1, None, "step 1 (llm)")
    await progress.on_tool_progress(loop, 2, None, "step 2 (tool research__research)")
    await progress.on_tool_complete(loop, True, None, None)
    child = await progress.on_tool_start("agent_loop", "child", None)
    await progress.on_tool_progress(child, 1, None, "step 1 (llm)")
    assert [message for *_, message in lines] == ["harper step 1 (llm)", "harper step 2 (tool)", "child step 1 (llm)"]


async def test_a_denied_tool_has_failed(progress: Progress, lines: list[Line]) -> None:
    await progress.on_tool_permission_denied("rm", "kernos", None)
    assert lines == [(1, 1, "kernos/rm: failed")]


async def test_a_lost_notification_stops_nothing() -> None:
    async def broken(*_: Any) -> None:
        raise ConnectionError

    progress = Progress(broken, {}, frozenset())
    call = await progress.on_tool_start("t", "s", None)
    await progress.on_tool_complete(call, True, None, None)


def test_fast_agent_takes_it_for_a_handler(progress: Progress) -> None:
    assert RequestParams(tool_execution_handler=progress).tool_execution_handler is progress
