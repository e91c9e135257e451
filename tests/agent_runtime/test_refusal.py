"""An agent in a container that refuses its input, as the registry's probe hears it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from pallas_agent_runtime import cli, refusal
from pallas_contract.codes import Code
from pallas_contract.documents.reason import Reason
from pallas_contract.probe.probe import Result, Target, probe
from pallas_contract.problems import Problem, Where
from tests.ports import free_port

PROBLEMS = [
    Problem(Where("agents.yaml", 9, 3), "second", code=Code.WRONG_VALUE),
    Problem(Where("agents.yaml", 5, 11), "`agents.x` cannot be imported", "install it", code=Code.CODE_FAILS),
    Problem(Where("agents.yaml", 1, 1), "a remark", level="warning", code=Code.LOW_PORT),
]
MESSAGE = "agents.yaml:5:11: `agents.x` cannot be imported [PAL223]"


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
    thread = threading.Thread(target=refusal.explain, args=(PROBLEMS, environ), kwargs={"secretive": False})
    thread.start()
    yield f"http://{environ['PALLAS_BIND']}/mcp"
    over.set()
    thread.join()


@pytest.mark.usefixtures("patient")
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
    refusal.explain(PROBLEMS, environ | change, secretive=False)


def test_remarks_are_no_refusal(environ: dict[str, str], monkeypatch) -> None:
    monkeypatch.setattr(refusal, "app", None)
    refusal.explain(PROBLEMS[2:], environ, secretive=True)


class Listening(Exception):
    """The end of a test: the agent is about to listen."""


@pytest.mark.parametrize(
    ("fleet", "message"),
    [
        ("agents: {x: {port: 8001}}", MESSAGE),
        ("agents: {x: {port: 8001}}, access: {tokens: {ann: {file: ann.txt}}}", refusal.UNTOLD),
        ("agents: {x: {port: 8001, access: {tokens: {ann: {file: ann.txt}}}}}", refusal.UNTOLD),
        (
            "agents: {x: {port: 8001, access: {anonymous: true}}}, access: {tokens: {ann: {file: ann.txt}}}",
            MESSAGE,
        ),
        ("agents: {y: {port: 8001}}", refusal.UNTOLD),
        ("agents: {x: {prot: 8001}}", refusal.UNTOLD),
        ("agents: {", refusal.UNTOLD),
    ],
)
def test_an_agent_that_asks_for_a_token_tells_nobody_what_is_wrong(
    fleet: str, message: str, tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def app(message: str) -> None:
        raise Listening(message)

    (tmp_path / "agents.yaml").write_text(f"{{name: demo, {fleet}}}")
    monkeypatch.setattr(refusal, "app", app)
    with pytest.raises(Listening) as told:
        refusal.explain(PROBLEMS, environ, secretive=refusal.protected(tmp_path / "agents.yaml", "x"))
    assert str(told.value) == message


@pytest.mark.usefixtures("as_it_was")
@pytest.mark.parametrize("access", [{}, {"tokens": {"ann": {"file": "ann.txt"}}}])
def test_the_command_says_whether_the_agent_asks_for_a_token(
    access: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "agents.yaml"  # JSON is YAML; there is no module `x` beside it
    path.write_text(json.dumps({"name": "demo", "agents": {"x": {"port": 8001, "module": "x"}}, "access": access}))
    explained: list[bool] = []
    monkeypatch.setattr(refusal, "explain", lambda *_, secretive: explained.append(secretive))
    assert cli.main(["--agent", "x", "--config", str(path)]) == 2
    assert explained == [bool(access)]
