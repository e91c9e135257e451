"""Mixed calls of many tenants at once: each answer is its caller's, by a record of the agents' own."""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pallas_contract.fleet.access_model import Gateway, Tenant
from pallas_gateway.app import App, Pages
from pallas_gateway.data_plane import upstream
from pallas_gateway.data_plane.checks import Checks
from pallas_gateway.data_plane.plane import Bounds, DataPlane
from pallas_gateway.health import Reachability
from pallas_gateway.metrics import Metrics
from pallas_gateway.policy.policy import Policy
from pallas_gateway.policy.route import Route
from pallas_gateway.tenants import Tenants
from pallas_gateway.watching.board import Board
from pallas_service.access.gate import Gate
from pallas_service.access.static_tokens import StaticTokens
from pallas_service.access.verifier import Verifier
from tests.examples import examples
from tests.served import served

CALLS = examples(10_000, fuzz=10_000)
AT_ONCE = 100
AGENTS = ("scout", "oracle", "desk")
CALLERS = [f"caller-{number}" for number in range(20)]
TOKENS = {caller: f"{caller}-0123456789abcdef" for caller in CALLERS}
GRANTED = {caller: AGENTS[number % 3] for number, caller in enumerate(CALLERS)}
"""One agent of each caller; the others are not there for it."""
GATEWAY = Gateway.model_validate(
    {
        "agents": list(AGENTS),
        "tenants": {
            f"tenant-{number}": {"callers": CALLERS[2 * number : 2 * number + 2], "requests": "100000/minute"}
            for number in range(10)
        },
        "grants": [{"caller": caller, "agent": agent, "tools": ["echo"]} for caller, agent in GRANTED.items()],
    }
)


class Recorder:
    """The agents, which know nothing of tenants: each notes the digest of the caller with what it was sent."""

    def __init__(self) -> None:
        self.seen: defaultdict[str, set[str]] = defaultdict(set)
        self.calls = 0

    def app(self, agent: str) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            body = b""
            while True:
                message = await receive()
                body += message.get("body", b"")
                if not message.get("more_body"):
                    break
            headers = {name: value.decode() for name, value in scope["headers"]}
            asked = json.loads(body)
            said = asked["params"]["arguments"]["mark"]
            digest = headers[b"pallas-caller"]
            self.seen[digest].add(said)
            self.calls += 1
            await asyncio.sleep(0)  # so that others come in between
            text = json.dumps({"agent": agent, "digest": digest, "mark": said})
            result = {"jsonrpc": "2.0", "id": asked["id"], "result": {"content": [{"type": "text", "text": text}]}}
            head: Message = {"type": "http.response.start", "status": 200}
            await send({**head, "headers": [(b"content-type", b"application/json")]})
            await send({"type": "http.response.body", "body": json.dumps(result).encode()})

        return answer


async def ask(app: ASGIApp, path: str, token: str, message: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a message, without a socket."""
    headers = [
        (b"host", b"127.0.0.1:80"),
        (b"authorization", f"Bearer {token}".encode()),
        (b"pallas-caller", b"0" * 64),  # a claim, which ends here
        (b"x-tenant", b"tenant-0"),
    ]
    sent = [{"type": "http.request", "body": json.dumps(message).encode(), "more_body": False}]
    body = bytearray()

    async def receive() -> Message:
        return sent.pop() if sent else await asyncio.Event().wait()  # type: ignore[return-value]

    async def send(message: Message) -> None:
        body.extend(message.get("body", b""))

    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b"", "client": None}
    await app(scope, receive, send)
    answer: dict[str, Any] = json.loads(body)
    return answer


@pytest.mark.fuzz
@pytest.mark.timeout(600)
async def test_no_answer_of_mixed_calls_is_another_tenants() -> None:
    recorder = Recorder()
    tenants = Tenants({name: tenant.model_copy(update={"concurrent": AT_ONCE}) for name, tenant in _tenants().items()})
    metrics, board = Metrics(AGENTS), Board()
    wrong: list[Any] = []
    refused = 0
    async with (
        served(recorder.app("scout")) as first,
        served(recorder.app("oracle")) as second,
        served(recorder.app("desk")) as third,
        upstream.session() as client,
    ):
        routes = {
            agent: Route(f"{web.base_url}/mcp") for agent, web in zip(AGENTS, (first, second, third), strict=True)
        }
        checks = Checks(Policy(GATEWAY), board=board)
        plane = DataPlane(routes, client, Bounds(1 << 20), tenants=tenants, checks=checks, watchers=[metrics, board])
        pages = Pages(metrics, Reachability(), {})
        app = App(plane, pages, ["127.0.0.1:*"], Gate(Verifier(StaticTokens(TOKENS)), "http://127.0.0.1"))
        draw = random.Random(22)
        numbers = iter(range(CALLS))

        async def one_by_one() -> None:
            nonlocal refused
            for number in numbers:
                caller, other = draw.sample(CALLERS, 2)
                agent = draw.choice(AGENTS) if draw.random() < 0.3 else GRANTED[caller]
                # ids repeat on purpose, and `_meta` claims to be somebody else
                meta = {"io.pallas-kit/tenant": other, "io.pallas-kit/user": other, "caller": other}
                params = {"name": "echo", "arguments": {"mark": f"{caller}/{number}"}, "_meta": meta}
                message = {"jsonrpc": "2.0", "id": number % 7, "method": "tools/call", "params": params}
                answer = await ask(app, f"/agents/{agent}/mcp", TOKENS[caller], message)
                if agent != GRANTED[caller]:
                    refused += answer.get("error", {}).get("data") == {"reason": "unknown_agent"}
                    wrong.extend([answer] if "error" not in answer else [])
                    continue
                said = json.loads(answer["result"]["content"][0]["text"])
                if (answer["id"], said["agent"], said["mark"]) != (number % 7, agent, f"{caller}/{number}"):
                    wrong.append((caller, answer))

        await asyncio.gather(*(one_by_one() for _ in range(AT_ONCE)))
    assert wrong == []
    # what the agents noted by themselves: one digest for each caller, and nobody else's words under it
    owners = {digest: {mark.partition("/")[0] for mark in marks} for digest, marks in recorder.seen.items()}
    assert sorted(owners.values(), key=str) == sorted(({caller} for caller in CALLERS), key=str)
    assert (recorder.calls + refused, refused > 0) == (CALLS, True)


def _tenants() -> dict[str, Tenant]:
    return dict(GATEWAY.tenants)
