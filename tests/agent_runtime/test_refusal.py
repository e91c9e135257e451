"""An agent in a container that refuses its input, as the registry's probe hears it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import httpx
import pytest

from pallas_agent_runtime import refusal
from pallas_contract.documents.reason import Reason
from pallas_contract.probe.probe import Result, Target, probe
from pallas_contract.problems import Problem, Where
from tests.ports import free_port

PROBLEMS = [
    Problem(Where("agents.yaml", 9, 3), "second"),
    Problem(Where("agents.yaml", 5, 11), "`agents.x` cannot be imported", "install it"),
    Problem(Where("agents.yaml", 1, 1), "a remark", level="warning"),
]
MESSAGE = "agents.yaml:5:11: `agents.x` cannot be imported"


@pytest.fixture
def client() -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(refusal.app(MESSAGE)), base_url="http://agent")


async def test_it_is_alive_and_not_ready(client: httpx.AsyncClient) -> None:
    async with client:
        assert (await client.get("/livez")).status_code == 200
        for path in ("/readyz", "/healthz", "/mcp", "/"):
            reply = await client.get(path)
            assert reply.status_code == 503
            assert reply.json() == {"status": "error", "message": MESSAGE}


@pytest.mark.parametrize(
    ("body", "request_id"),
    [(b'{"id": 7}', 7), (b'{"id": "x"}', "x"), (b"{", None), (b"[]", None), (b"9" * 70_000, None)],
)
async def test_each_request_gets_the_error(client: httpx.AsyncClient, body: bytes, request_id: object) -> None:
    async with client:
        reply = await client.post("/mcp", content=body)
    assert reply.status_code == 200
    assert reply.json() == {
        "jsonrpc": "2.0",
        "id": request_id,
        "error": {"code": -32000, "message": MESSAGE, "data": {"reason": "InputRefused"}},
    }


@pytest.fixture
def environ() -> dict[str, str]:
    return {"PALLAS_PLACEMENT": "container", "PALLAS_BIND": f"127.0.0.1:{free_port()}"}


@pytest.fixture
def refusing(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an agent that refuses its input until the test is over."""
    over = threading.Event()

    async def until_over(_seconds: float) -> None:
        while not over.is_set():
            await sleep(0.01)

    sleep = refusal.asyncio.sleep
    monkeypatch.setattr(refusal, "_pause", until_over)
    thread = threading.Thread(target=refusal.explain, args=(PROBLEMS, environ))
    thread.start()
    yield f"http://{environ['PALLAS_BIND']}/mcp"
    over.set()
    thread.join()


async def test_the_registry_hears_the_reason(refusing: str) -> None:
    while (result := await probe(Target(refusing, deep=True, ours=True))).reason.code == "ConnectionRefused":
        pass
    assert result == Result("error", Reason("InputRefused", MESSAGE), latency=result.latency, status=result.status)
    assert not result.reachable


@pytest.mark.parametrize(
    "change",
    [{"PALLAS_PLACEMENT": "local"}, {"PALLAS_PLACEMENT": ""}, {"PALLAS_BIND": ""}, {"PALLAS_BIND": "x:y"}],
)
def test_elsewhere_nobody_asks(environ: dict[str, str], change: dict[str, str], monkeypatch) -> None:
    monkeypatch.setattr(refusal, "app", None)
    refusal.explain(PROBLEMS, environ | change)


def test_remarks_are_no_refusal(environ: dict[str, str], monkeypatch) -> None:
    monkeypatch.setattr(refusal, "app", None)
    refusal.explain(PROBLEMS[2:], environ)
