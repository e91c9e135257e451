"""What the gateway keeps: only what agents.yaml asks for, in the folder of its state."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pallas_contract.fleet.access_model import Tenant
from pallas_gateway import settings
from pallas_gateway.keeping import Keeping
from pallas_gateway.metrics import Metrics
from pallas_gateway.policy.policy import Policy
from pallas_service.http.shutdown import background
from pallas_service.sqlite_file import CannotStore
from tests.gateway.door import OWN, PHONE, UI
from tests.ports import free_port

FLEET = """\
name: doors
access: {{tokens: {{ui: {{file: ui.txt}}, phone: {{file: phone.txt}}, gateway: {{file: gateway.txt}}}}}}
gateway: {{agents: [scout]{more}}}
agents: {{scout: {{card: a.md, port: 8101}}}}
"""
AUDIT = ", audit: {key: {file: audit.txt}}"
IN_MEMORY = ", tenants: {desk: {callers: [ui]}}, tasks: {durable: false}"
DURABLE = ", tenants: {desk: {callers: [ui]}}, tasks: {durable: true}"
CONFIRM = ", confirm: [{agent: scout, tools: [send_message], by: [ui]}]"


def keeping(folder: Path, more: str) -> Keeping:
    files = {"ui.txt": UI, "phone.txt": PHONE, "gateway.txt": OWN, "audit.txt": "audit-0123456789abcdef"}
    for name, content in {**files, "agents.yaml": FLEET.format(more=more)}.items():
        (folder / name).write_text(content)
    read = settings.read(folder / "agents.yaml", {}, folder / "secrets")
    return Keeping(read, Policy(read.gateway, read.fleet.agents))


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        ("", []),
        (IN_MEMORY, []),
        (DURABLE, ["gateway.db"]),
        (DURABLE + CONFIRM, ["gateway.db"]),
        (AUDIT, ["audit"]),
        (CONFIRM, ["gateway.db"]),
        (AUDIT + CONFIRM, ["audit", "gateway.db"]),
    ],
)
async def test_it_keeps_what_is_asked_for_and_nothing_else(tmp_path: Path, more: str, kept: list[str]) -> None:
    state = keeping(tmp_path, more)
    jobs = state.start(Metrics([]))
    names = [path.name for path in sorted((tmp_path / ".pallas/gateway").glob("*")) if path.suffix in ("", ".db")]
    assert names == kept
    assert (state.audit is not None, state.gatekeeper is not None) == (AUDIT in more, CONFIRM in more)
    assert (state.journal is not None) == (DURABLE in more)
    assert (state.problem, len(jobs)) == ("", int("audit" in kept))
    for job in jobs:
        job.close()
    await state.stop()


def test_a_place_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / ".pallas").write_text("")
    with pytest.raises(CannotStore, match="not a directory"):
        keeping(tmp_path, CONFIRM)


async def test_stores_that_are_away_hold_up_no_start_and_are_said(tmp_path: Path) -> None:
    """Nothing listens at these ports: rows fail closed, limits are each replica's, and both are said."""
    for name, scheme in (("postgres.url", "postgresql"), ("valkey.url", "valkey")):
        (tmp_path / name).write_text(f"{scheme}://127.0.0.1:{free_port()}/0")
    shared = ", replicas: 3, store: {url: {file: postgres.url}}, counters: {url: {file: valkey.url}}"
    state = keeping(tmp_path, f"{AUDIT}{CONFIRM}{shared}{DURABLE}")
    metrics = Metrics([])
    jobs = state.start(metrics)
    assert "Retention.watch" in {getattr(job, "__qualname__", "") for job in jobs}
    async with background(*jobs):
        assert state.counters
        async with state.counters.used("desk", Tenant()):  # let through
            pass
        assert state.journal
        with pytest.raises(CannotStore):
            await state.journal.find("1")
        async with asyncio.timeout(60):
            while "each replica counts" not in state.problem or "the store cannot be used" not in state.problem:
                await asyncio.sleep(0.02)
        assert "127.0.0.1" not in state.problem
        shown = metrics.render().decode()
        assert 'pallas_gateway_shared_state_up{state="store"} 0.0' in shown
        assert 'pallas_gateway_shared_state_up{state="counters"} 0.0' in shown
    await state.stop()
    assert not (tmp_path / ".pallas").exists()
