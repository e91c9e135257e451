"""One question over MCP: which tool is asked, and how what goes wrong is put into words."""

from __future__ import annotations

import asyncio

import pytest

from pallas_cli.talk import client
from pallas_cli.talk.client import Question
from pallas_cli.trouble import Trouble
from tests.cli.conftest import Stand


@pytest.mark.parametrize(
    ("tools", "tool"),
    [(["desk", "get_health", "send_message"], "send_message"), (["get_health", "a", "b"], "a")],
)
def test_the_tool_of_the_contract_is_asked_else_the_first(tools: list[str], tool: str) -> None:
    assert client.choose(tools) == tool


def test_a_server_without_a_tool_cannot_be_asked() -> None:
    with pytest.raises(Trouble, match="no tool to be asked with"):
        client.choose(["get_health"])


def test_the_first_error_of_a_group_is_told() -> None:
    group = BaseExceptionGroup("tasks", [BaseExceptionGroup("more", [ValueError("No Way")]), KeyError()])
    assert client.reason(group) == "no way"
    assert client.reason(KeyError()) == "KeyError"
    assert client.reason(ExceptionGroup("", [Trouble("As it stands")])) == "As it stands"


async def test_a_deadline_is_for_the_whole_call(stand: Stand) -> None:
    with pytest.raises(Trouble, match=r"no answer in 0\.001 s"):
        await client.ask(f"{stand.url}/mcp", Question("hi"), timeout=0.001)


async def test_another_status_is_told_by_its_number(stand: Stand) -> None:
    with pytest.raises(Trouble, match="404"):
        await asyncio.wait_for(client.ask(f"{stand.url}/nowhere", Question("hi"), timeout=60), 60)


async def test_a_proxy_is_not_asked_for_this_machine(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert (await client.ask(f"{stand.url}/mcp", Question("hi"), timeout=60)).text == "heard hi"
