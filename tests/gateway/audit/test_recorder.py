"""Calls in the audit: a record before each is passed on, one for its end, and nothing that was said."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from pallas_contract.documents import audit_check, audit_record
from pallas_contract.fleet.access_model import Gateway, Tenant
from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.resolved import resolve
from pallas_gateway.audit import recorder
from pallas_gateway.audit import trail as trail_module
from pallas_gateway.audit.recorder import Audit
from pallas_gateway.audit.trail import Trail
from pallas_gateway.data_plane.record import Call
from pallas_gateway.policy.policy import Policy
from pallas_gateway.tenants import Tenants
from pallas_service.sqlite_file import CannotStore
from tests.gateway.door import MODERN, UI, Agent, Door, opened, text

KEY = b"0123456789abcdef"
CANARY = "canary-of-arguments"
FLEET = resolve(Fleet.model_validate({"name": "doors", "agents": {"scout": {"card": "a.md", "port": 8101}}}))
TENANTS = {"acme": Tenant(callers=["ui"], requests="2/minute")}


def records(folder: Path) -> list[dict[str, Any]]:
    """Return what was recorded, as far as it follows."""
    (path,) = folder.iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    assert audit_check.check([(path.name, lines)], KEY, whole=True).problems == []
    return [json.loads(line) for line in lines]


@asynccontextmanager
async def audited(folder: Path, **options: Any) -> AsyncIterator[tuple[Door, Agent, Audit]]:
    audit = Audit(Trail(folder, KEY, size=1 << 20), KEY, "policy-1")
    audit.start()
    agent = Agent()
    try:
        async with agent.app() as app, opened({"scout": app}, audit=audit, **options) as door:
            audit.observe(door.metrics.registry)
            door.web.timeout = 60
            yield door, agent, audit
    finally:
        await audit.stop()


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no record be written; other files of this process are let be."""
    write = os.write

    def full(file: int, data: bytes) -> int:
        if data.startswith(b'{"seq"'):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(trail_module.os, "write", full)
        yield


@contextmanager
def failing(function: str, number: int) -> Iterator[None]:
    """Let a function of `os` that the files of the audit need fail with error `number`."""

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(trail_module.os, function, fail)
        yield


def call(tool: str = "echo", **arguments: object) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


async def test_a_call_has_a_record_before_it_is_passed_on_and_one_at_its_end(tmp_path: Path) -> None:
    async with audited(tmp_path, tokens={"ui": UI}, tenants=Tenants(TENANTS)) as (door, _, audit):
        async with door.client("scout", MODERN, UI) as client:
            assert CANARY in text(await client.call_tool("echo", {"text": CANARY}))
        await door.noted.until(len(door.noted.begun))
        assert (await door.web.get("/healthz")).json()["audit"] == {"head": audit.head}
        metrics = (await door.web.get("/metrics")).text
        assert "pallas_gateway_audit_records 3.0" in metrics
        assert "pallas_gateway_audit_up 1.0" in metrics
    started, decision, outcome, stopped = records(tmp_path)
    assert (started["event"], started["policy"], stopped["event"]) == ("started", "policy-1", "stopped")
    about = {
        "caller": "ui",
        "tenant": "acme",
        "agent": "scout",
        "method": "tools/call",
        "name": "echo",
        "arguments": audit_record.arguments_digest(KEY, {"text": CANARY}),
    }
    assert about.items() <= decision.items()
    assert about.items() <= outcome.items()
    assert (decision["event"], decision["decision"], decision["policy"]) == ("decision", "allow", "policy-1")
    assert (outcome["event"], outcome["of"], outcome["reason"], outcome["status"]) == ("outcome", 2, "answered", 200)
    assert outcome["seconds"] >= 0
    (path,) = tmp_path.iterdir()
    assert CANARY not in path.read_text()
    assert UI not in path.read_text()


async def test_what_is_refused_is_one_record_with_its_reason(tmp_path: Path) -> None:
    async with audited(tmp_path, tokens={"ui": UI}, tenants=Tenants(TENANTS)) as (door, _, _):
        headers = {"authorization": f"Bearer {UI}"}
        for agent in ("scout", "scout", "scout", "nobody"):
            await door.web.post(f"/agents/{agent}/mcp", json=call(), headers=headers)
        await door.noted.until(4)
    refused = [record for record in records(tmp_path) if record.get("decision") == "refuse"]
    assert [(record["agent"], record["reason"], record["status"]) for record in refused] == [
        ("scout", "rate", 200),
        ("nobody", "unknown_agent", 404),
    ]
    assert [record["caller"] for record in refused] == ["ui", "ui"]


async def test_lists_and_pings_are_no_decisions(tmp_path: Path) -> None:
    async with audited(tmp_path) as (door, _, _), door.client("scout", MODERN) as client:
        await client.list_tools()
    assert [record["event"] for record in records(tmp_path)] == ["started", "stopped"]


async def test_nothing_is_passed_on_that_cannot_be_recorded(tmp_path: Path) -> None:
    async with audited(tmp_path) as (door, agent, audit):
        with full_disk():
            reply = await door.web.post("/agents/scout/mcp", json=call())
            assert reply.status_code == 200
            assert reply.json()["error"]["data"] == {"reason": "unrecorded"}
            assert agent.heads == []
            health = (await door.web.get("/healthz")).json()
            assert health["status"] == "degraded"
            assert health["message"] == "the audit cannot be written: no space left on device"
            await door.noted.until(1)
        assert audit.problem
        async with door.client("scout", MODERN) as client:
            assert text(await client.call_tool("echo", {})) == "scout: "
        assert audit.problem == ""
    events = [record["event"] for record in records(tmp_path)]
    assert events == ["started", "lost", "decision", "outcome", "stopped"]
    assert records(tmp_path)[1]["records"] == 1  # the refusal itself


async def test_an_agent_that_is_away_is_an_outcome(tmp_path: Path) -> None:
    audit = Audit(Trail(tmp_path, KEY, size=1 << 20), KEY, "policy-1")
    async with opened({"scout": "http://127.0.0.1:9/mcp"}, audit=audit) as door:
        await door.web.post("/agents/scout/mcp", json=call())
        await door.noted.until(1)
    await audit.stop()
    assert [(record["event"], record.get("reason")) for record in records(tmp_path)][:2] == [
        ("decision", None),
        ("outcome", "unreachable"),
    ]


async def test_own_tools_and_functions_are_recorded_too(tmp_path: Path) -> None:
    tenants = Tenants({"acme": Tenant(callers=["ui"])})
    async with audited(tmp_path, tokens={"ui": UI}, tenants=tenants, fleet=FLEET) as (door, agent, _):
        headers = {"authorization": f"Bearer {UI}"}
        asked = {"agent_uri": "scout", "tenant_id": "acme", "prompt": CANARY}
        await door.web.post("/mcp", json=call("ask_agent", **asked), headers=headers)
        function = {"agent_id": "scout", "function": "echo", "input": {"text": CANARY}, "meta": {"task_id": "t1"}}
        await door.web.post("/mcp", json={"method": "agent.execute", "params": function}, headers=headers)
        with full_disk():
            heads = len(agent.heads)
            reply = await door.web.post("/mcp", json=call("ask_agent", **asked), headers=headers)
            assert reply.json()["error"]["data"]["reason"] == "unrecorded"
            reply = await door.web.post("/mcp", json={"method": "agent.execute", "params": function}, headers=headers)
            assert reply.json()["error"]["data"]["reason"] == "unrecorded"
            assert len(agent.heads) == heads
    decided = [record for record in records(tmp_path) if record.get("decision") == "allow"]
    digest = audit_record.arguments_digest
    assert [(record["method"], record["name"], record["arguments"]) for record in decided] == [
        ("tools/call", "ask_agent", digest(KEY, asked)),
        ("agent.execute", "echo", digest(KEY, {"text": CANARY})),
    ]
    assert decided[0]["trace_id"] == "ab" * 16
    (path,) = tmp_path.iterdir()
    assert CANARY not in path.read_text()


async def test_what_the_gateway_may_not_call_for_somebody_is_an_outcome(tmp_path: Path) -> None:
    grants = [{"caller": "ui", "agent": "scout", "tools": ["echo"]}]
    written = Gateway.model_validate({"agents": ["scout"], "tenants": TENANTS, "grants": grants})
    options: dict[str, Any] = {"tenants": Tenants(TENANTS), "fleet": FLEET, "policy": Policy(written, ["scout"])}
    async with audited(tmp_path, tokens={"ui": UI}, **options) as (door, agent, _):
        headers = {"authorization": f"Bearer {UI}"}
        function = {"agent_id": "scout", "function": "wipe", "input": {}, "meta": {"task_id": "t1"}}
        await door.web.post("/mcp", json={"method": "agent.execute", "params": function}, headers=headers)
        assert agent.heads == []
        await door.web.post("/agents/scout/mcp", json=call("wipe"), headers=headers)
        await door.noted.until(2)
    _, decision, outcome, refused, _ = records(tmp_path)
    assert (decision["method"], decision["decision"]) == ("agent.execute", "allow")
    assert (outcome["event"], outcome["of"], outcome["reason"]) == ("outcome", decision["seq"], "not_granted")
    assert (refused["event"], refused["decision"], refused["reason"]) == ("decision", "refuse", "not_granted")


async def test_the_last_record_is_logged_and_survives_a_power_cut(tmp_path: Path) -> None:
    audit = Audit(Trail(tmp_path, KEY, size=1 << 20), KEY, "policy-1")
    audit.start()
    head = audit.head
    await audit.sync()
    with capture_logs() as lines:
        await audit.stop()
    (line,) = [line for line in lines if line["event"] == "audit"]
    assert line["head"] == audit.head != head


async def test_a_new_chain_says_why_it_begins(tmp_path: Path) -> None:
    for key in (KEY, b"another key 0123"):
        audit = Audit(Trail(tmp_path, key, size=1 << 20), key, "policy-1")
        audit.start()
        await audit.stop()
    first, second = sorted(tmp_path.iterdir())
    assert "broken" not in json.loads(first.read_bytes().splitlines()[0])
    started = json.loads(second.read_bytes().splitlines()[0])
    assert started["broken"] == f"the last record of {first.name} was changed, or written with another key"


async def test_arguments_that_no_digest_can_be_made_of_are_refused(tmp_path: Path) -> None:
    async with audited(tmp_path) as (door, agent, _):
        body = json.dumps(call(deep="@")).replace('"@"', "[" * 40_000 + "]" * 40_000)
        reply = await door.web.post("/agents/scout/mcp", content=body)
        assert reply.json()["error"]["data"]["reason"] == "malformed"
        assert agent.heads == []


@pytest.mark.parametrize(("function", "number"), [("dup", errno.EMFILE), ("fdatasync", errno.EIO)])
async def test_what_may_be_lost_is_a_problem_until_a_later_record_is_on_disk(
    tmp_path: Path, function: str, number: int
) -> None:
    audit = Audit(Trail(tmp_path, KEY, size=1 << 20), KEY, "policy-1")
    audit.start()
    problem = f"the audit cannot be written: {os.strerror(number).lower()}"
    with failing(function, number):
        await audit.sync()
        assert audit.problem == problem
        audit.allowed(Call("scout", "", "tools/call", "echo"))
        assert audit.problem == problem  # written it is, but not on disk
        assert await audit.confirmation("c1", "asked", {}) is False
        assert audit.problem == problem
    await audit.sync()
    assert audit.problem == problem  # the kernel says nothing of what it could not write before
    assert await audit.confirmation("c2", "asked", {}) is True
    assert audit.problem == ""
    await audit.stop()


async def test_one_after_the_other_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trail = Trail(tmp_path, KEY, size=1 << 20)
    audit = Audit(trail, KEY, "policy-1")
    waits = 0

    async def fails() -> None:
        nonlocal waits
        waits += 1
        assert waits == 1  # of two at once the kernel would tell one alone
        await asyncio.sleep(0)
        waits -= 1
        raise CannotStore("the disk: input/output error")

    monkeypatch.setattr(trail, "sync", fails)
    assert await asyncio.gather(*(audit.confirmation(id_, "asked", {}) for id_ in ("c1", "c2"))) == [False, False]
    await audit.stop()


async def test_nothing_ends_the_rounds_that_reach_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trail = Trail(tmp_path, KEY, size=1 << 20)
    audit = Audit(trail, KEY, "policy-1")
    audit.start()
    sync = trail.sync
    rounds = 0
    on_disk = asyncio.Event()

    async def broken_once() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            raise RuntimeError("can't start new thread")
        await sync()
        on_disk.set()

    monkeypatch.setattr(trail, "sync", broken_once)
    monkeypatch.setattr(recorder, "SYNC_SECONDS", 0)
    with capture_logs() as lines:
        watch = asyncio.create_task(audit.watch())
        waiting = asyncio.create_task(on_disk.wait())
        await asyncio.wait({watch, waiting}, return_when=asyncio.FIRST_COMPLETED)
        assert waiting.done()
        watch.cancel()
        await asyncio.wait({watch})
    assert [line["event"] for line in lines] == ["the audit could not be synced, the next round follows"]
    await audit.stop()
