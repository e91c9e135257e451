"""Two real agents that ask for tokens, one calling the other, and the SDK's own client in both eras."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest

from pallas_contract.probe import probe
from pallas_contract.probe.command import check

pytestmark = pytest.mark.slow

SCOPE = "agents:call"
UI, HARPER = "ui-token-0123456789abcdef", "harper-token-0123456789abcdef"


@pytest.fixture(scope="module")
def model(toolkit: Any) -> Iterator[Any]:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        texts = [toolkit.said(message) for message in body["messages"] if message["role"] != "system"]
        if body["messages"][-1]["role"] == "tool":
            return {"content": f"It said: {texts[-1]}"}
        if texts[-1].startswith("delegate "):
            return toolkit.tool_call("research__research", message=texts[-1].removeprefix("delegate "))
        return {"content": " | ".join(text for text in texts if text)}

    yield from toolkit.serve_model(toolkit.Model(answer, models=["m"]))


@pytest.fixture(scope="module")
def fleet(model: Any, issuer: Any, toolkit: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    files = {
        "agents.yaml": {
            "name": "x",
            "registry_port": toolkit.free_port(),
            "public_url": "http://{name}.agents.test",
            "access": {
                "tokens": {"ui": {"file": "secrets/ui"}},
                "jwt": {"issuer": issuer.url, "jwks_url": f"{issuer.url}/jwks", "scopes": [SCOPE]},
            },
            "agents": {
                "harper": {"card": "harper.yaml", "port": toolkit.free_port(), "depends_on": ["research"]},
                "research": {
                    "card": "research.yaml",
                    "port": toolkit.free_port(),
                    "access": {"tokens": {"harper": {"file": "secrets/harper"}}},
                },
            },
        },
        "harper.yaml": {"type": "agent", "name": "harper", "instruction": "x", "servers": ["research"]},
        "research.yaml": {"type": "agent", "name": "research", "instruction": "x"},
        "fastagent.config.yaml": {"default_model": "openai.m", "llm_retries": 0},
        "secrets/ui": f"{UI}\n",
        "secrets/harper": HARPER,
        ".env": f"OPENAI_API_KEY=sk-x\nOPENAI_BASE_URL={model.url}\n",
    }
    folder = toolkit.write_files(tmp_path_factory.mktemp("protected"), files)
    with toolkit.running(folder, "research", "harper", one_by_one=True) as started:
        yield started


async def ask(fleet: Any, era: str, token: str, message: str, **arguments: Any) -> str:
    async with fleet.client("harper", era, token) as made:
        result = await made.call_tool("send_message", {"message": message, **arguments})
    (block,) = result.content
    assert not result.is_error, block.text
    return str(block.text)


def refusal(url: str, token: str | None, method: str = "POST") -> httpx2.Response:
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    with httpx2.Client(timeout=60) as http:
        return http.request(method, url, headers=headers, json=body)


# --- who may enter ---


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_nobody_enters_without_a_token_and_is_told_where_to_get_one(fleet: Any, issuer: Any, method: str) -> None:
    url = fleet.url("harper")
    reply = refusal(url, None, method)
    assert reply.status_code == 401
    challenge = reply.headers["www-authenticate"]
    metadata = "http://harper.agents.test/.well-known/oauth-protected-resource/mcp"
    assert challenge.startswith("Bearer ")
    assert "error" not in challenge  # RFC 6750, 3.1: nothing was shown that could be wrong
    assert f'resource_metadata="{metadata}"' in challenge
    assert f'scope="{SCOPE}"' in challenge
    for path in ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"):
        status, body = fleet.get("harper", path)
        assert status == 200
        assert json.loads(body) == {
            "resource": audience("harper"),
            "authorization_servers": [issuer.url],
            "scopes_supported": [SCOPE],
            "bearer_methods_supported": ["header"],
        }


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz", "/metrics", "/.well-known/mcp/server.json"])
def test_the_plain_pages_stay_open(fleet: Any, path: str) -> None:
    assert fleet.get("harper", path)[0] == 200


async def test_a_static_token_enters(fleet: Any, era: str) -> None:
    assert await ask(fleet, era, UI, "hello") == "hello"


async def test_a_jwt_enters(fleet: Any, issuer: Any, era: str) -> None:
    assert await ask(fleet, era, issuer.token(audience("harper"), scope=SCOPE), "hello") == "hello"


def audience(name: str) -> str:
    return f"http://{name}.agents.test/mcp"


def forged(token: str) -> str:
    """The same claims under another name; the signature stays."""
    head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    return f"{head}.{encoded({**claims, 'sub': 'root'})}.{signature}"


def encoded(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def unsigned(token: str) -> str:
    return f"{encoded({'alg': 'none', 'typ': 'JWT'})}.{token.split('.')[1]}."


def with_shared_secret(token: str) -> str:
    """Signed with what everybody knows: the classic confusion of algorithms."""
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    return jwt.encode(claims, "k" * 64, algorithm="HS256", headers={"kid": jwt.get_unverified_header(token)["kid"]})


def now(seconds: int) -> int:
    return int(time.time()) + seconds


REFUSED: dict[str, Callable[[Any, str], str]] = {
    "unknown static token": lambda issuer, mine: "x" * 24,
    "a caller of another agent only": lambda issuer, mine: HARPER,
    "for another agent": lambda issuer, mine: issuer.token(audience("research"), scope=SCOPE),
    "for nobody": lambda issuer, mine: issuer.token(None, scope=SCOPE),
    "expired": lambda issuer, mine: issuer.token(mine, scope=SCOPE, exp=now(-3600)),
    "not valid yet": lambda issuer, mine: issuer.token(mine, scope=SCOPE, nbf=now(3600)),
    "without an end": lambda issuer, mine: issuer.token(mine, scope=SCOPE, exp=None),
    "of another issuer": lambda issuer, mine: issuer.token(mine, scope=SCOPE, iss="https://elsewhere.example"),
    "without a subject": lambda issuer, mine: issuer.token(mine, scope=SCOPE, sub=None),
    "changed": lambda issuer, mine: forged(issuer.token(mine, scope=SCOPE)),
    "unsigned": lambda issuer, mine: unsigned(issuer.token(mine, scope=SCOPE)),
    "signed with a shared secret": lambda issuer, mine: with_shared_secret(issuer.token(mine, scope=SCOPE)),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_other_tokens_do_not_enter(fleet: Any, issuer: Any, make: Callable[[Any, str], str]) -> None:
    reply = refusal(fleet.url("harper"), make(issuer, audience("harper")))
    assert reply.status_code == 401
    assert 'error="invalid_token"' in reply.headers["www-authenticate"]


def test_a_token_without_the_scope_is_told_which(fleet: Any, issuer: Any) -> None:
    reply = refusal(fleet.url("harper"), issuer.token(audience("harper"), scope="agents:list"))
    assert reply.status_code == 403
    challenge = reply.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert f'scope="{SCOPE}"' in challenge


# --- inside the fleet ---


async def test_an_agent_presents_its_own_token_to_another(fleet: Any, era: str) -> None:
    assert await ask(fleet, era, UI, "delegate what is pallas?") == "It said: what is pallas?"
    assert json.loads(fleet.get("harper", "/healthz")[1])["status"] == "ok"


@pytest.mark.usefixtures("patient")
async def test_a_protected_healthy_agent_is_healthy_to_who_watches_it(fleet: Any) -> None:
    """The registry reads the open page; a container's healthcheck wants to know that somebody is there."""
    url = fleet.url("harper")
    watched = await probe.probe(probe.Target(url, deep=True, tools=True, ours=True))
    assert (watched.state, watched.reason.message, watched.name, watched.version) == ("ok", "", "harper", "1.0.0")
    stranger = await probe.probe(probe.Target(url, deep=True))
    assert (stranger.state, stranger.reason.message) == ("unauthenticated", "reachable, needs credentials (HTTP 401)")
    assert await check(url) == ""


# --- conversations ---


async def test_a_conversation_belongs_to_the_caller_not_to_the_token(fleet: Any, issuer: Any, era: str) -> None:
    mine, handle = audience("harper"), f"talk-{era}"

    async def as_(subject: str, message: str) -> str:
        token = issuer.token(mine, subject, scope=SCOPE, jti=str(time.monotonic_ns()))
        return await ask(fleet, era, token, message, session_id=handle)

    assert await as_("alice", "one") == "one"
    assert await as_("alice", "two") == "one | one | two"
    assert await as_("bob", "three") == "three"
    assert await ask(fleet, era, UI, "four", session_id=handle) == "four"
    async with fleet.client("harper", era, issuer.token(mine, "bob", scope=SCOPE)) as made:
        history = await made.get_prompt("harper_history", {"session_id": handle})
    assert [message.content.text for message in history.messages] == ["three", "three"]


async def test_a_session_belongs_to_the_caller_that_opened_it(fleet: Any, issuer: Any) -> None:
    url, mine = fleet.url("harper"), audience("harper")
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    headers = {"accept": "application/json, text/event-stream"}

    def send(
        http: httpx2.Client, subject: str, method: str, params: dict[str, Any], verb: str = "POST"
    ) -> httpx2.Response:
        token = issuer.token(mine, subject, scope=SCOPE)
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return http.request(verb, url, json=body, headers={**headers, "authorization": f"Bearer {token}"})

    with httpx2.Client(timeout=60) as http:
        opened = send(http, "alice", "initialize", about)
        headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        assert [send(http, "bob", "tools/list", {}, verb).status_code for verb in ("POST", "GET", "DELETE")] == [
            404
        ] * 3
        assert send(http, "alice", "tools/list", {}).status_code == 200


# --- secrets ---


def test_no_token_is_in_a_log_a_page_or_a_file(fleet: Any, issuer: Any) -> None:
    """Last: it looks at what all the others left behind."""
    token = issuer.token(audience("harper"), "carol", scope="none")
    assert refusal(fleet.url("harper"), token).status_code == 403
    logs = "".join(fleet.log(name).read_text() for name in ("harper", "research"))
    pages = "".join(fleet.get(name, path)[1] for name in ("harper", "research") for path in ("/metrics", "/healthz"))
    for secret in (UI, HARPER, token, token.split(".")[2], issuer.token("x").split(".")[0]):
        assert secret not in logs + pages
    assert '"event":"token_refused"' in logs


def test_an_issuer_that_is_away_is_in_the_health_of_the_agent_and_ends_nothing(toolkit: Any, tmp_path: Path) -> None:
    away = f"http://127.0.0.1:{toolkit.free_port()}"
    files = {
        "agents.yaml": {
            "name": "x",
            "registry_port": toolkit.free_port(),
            "access": {"jwt": {"issuer": away, "jwks_url": f"{away}/jwks", "audience": "desk"}},
            "agents": {"desk": {"card": "desk.yaml", "port": toolkit.free_port()}},
        },
        "desk.yaml": {"type": "agent", "name": "desk", "instruction": "x"},
        "fastagent.config.yaml": {"default_model": "passthrough"},
    }
    with toolkit.running(toolkit.write_files(tmp_path, files), "desk") as started:

        def message() -> str | None:
            said: str | None = json.loads(started.get("desk", "/healthz")[1]).get("message")
            return said

        assert toolkit.until(message) == "Access: keys of the issuer: connection refused"
        assert refusal(started.url("desk"), jwt.encode({}, "x" * 32)).status_code == 401
        assert started.running["desk"].poll() is None
