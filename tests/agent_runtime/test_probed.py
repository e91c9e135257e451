"""A thousand probes of a real agent, in each era: no session is left behind, and its memory stays as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pallas_contract.probe import http_client, probe
from pallas_contract.probe.probe import LEGACY, MODERN, Target

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("patient")]

PROBES, WARM = 1000, 240
FLAT = 2048
"""Bytes that a probe may leave in the agent, over all of them: a session that stays is 34 kB, and one that an SDK ended
without forgetting it was 4.6 kB."""
AT_ONCE = 8


@pytest.fixture(scope="module")
def agent(toolkit: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One agent that thinks nothing, in the scope that has sessions."""
    port = toolkit.free_port()
    folder = toolkit.write_files(
        tmp_path_factory.mktemp("probed"),
        {
            "agents.yaml": {
                "name": "probed",
                "registry_port": toolkit.free_port(),
                "agents": {"scout": {"card": "agents/scout.md", "port": port}},
            },
            "agents/scout.md": "---\ntype: agent\nname: scout\nmodel: passthrough\n---\nYou are Scout.\n",
        },
    )
    with toolkit.running_commands(folder, "scout") as agents:
        yield agents


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_thousand_probes_leave_nothing_behind(agent: Any, era: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions: list[str] = []
    request = http_client.Client.request

    async def noted(self: http_client.Client, *args: Any, **options: Any) -> http_client.HttpResponse:
        reply = await request(self, *args, **options)
        sessions.extend(filter(None, [reply.headers.get("mcp-session-id")]))
        return reply

    monkeypatch.setattr(http_client.Client, "request", noted)
    url = agent.url("scout")

    async def probes(count: int) -> None:
        for _ in range(count):
            found = await probe.probe(Target(url, deep=True), era=era)
            assert (found.state, found.era, found.name) == ("ok", era, "scout")

    await asyncio.gather(*(probes(WARM // AT_ONCE) for _ in range(AT_ONCE)))  # what is made once is made
    before, sessions[:] = resident(agent), []
    await asyncio.gather(*(probes(PROBES // AT_ONCE) for _ in range(AT_ONCE)))
    grown = resident(agent) - before
    print(f"{era}: {grown / PROBES:.0f} bytes per probe, {len(set(sessions))} sessions opened")
    assert grown < PROBES * FLAT
    assert bool(sessions) == (era == LEGACY)
    monkeypatch.undo()
    for session in set(sessions):
        assert await known(url, session) == 404


async def known(url: str, session: str) -> int:
    """The status of a question in this session: 404 when the agent has forgotten it (2025-11-25, Transports)."""
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-session-id": session,
        "mcp-protocol-version": LEGACY,
    }
    reply = await http_client.request("POST", url, headers=headers, body=b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    return reply.status


def resident(agent: Any) -> int:
    lines = Path(f"/proc/{agent.running['scout'].pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))
