"""The HTTP side: the seed's path as HTTP wants it served, probes, metrics, and its own description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from pallas_contract.documents.reason import Reason
from pallas_contract.probe.probe import Result
from pallas_registry.catalogue.catalogue import PATH
from pallas_registry.discovery.sighting import Endpoint, Sighting
from pallas_registry.http.app import Backend, create_app
from pallas_registry.http.events import Streams
from pallas_registry.http.metrics import Metrics
from pallas_registry.mcp import jsonrpc
from pallas_registry.prebuilt.documents import Document, Prebuilt, matches, refusal
from pallas_registry.probing.recheck import Busy
from pallas_registry.state.agents import AgentStates, MemberStates
from pallas_registry.state.history import Change, History
from pallas_registry.state.status import Condition
from tests.served import served

A = Endpoint("http://harper:8080/mcp", "10.0.0.1")


class Unthought(Exception):
    """No part of the registry knows it."""


class World:
    """What the application shows, to be set by a test."""

    def __init__(self, time) -> None:
        self.document = Document(b'{"servers":[]}')
        self.waiting = ""
        self.config_ok = True
        self.changes: list[Change] = []
        self.agent_states = AgentStates(
            clock=time.clock, now=time.now, on_change=self.changes.append, on_update=lambda: None
        )
        self.service_states = AgentStates(
            clock=time.clock, now=time.now, on_change=self.changes.append, on_update=lambda: None, kind="service"
        )
        states = MemberStates(self.agent_states, self.service_states)
        self.metrics = Metrics(states, config_ok=lambda: self.config_ok)
        self.history = History()
        self.streams = Streams(self.history, run="run", limit=2)
        self.busy = False

    def find(self, _method: str, path: str, _query: bytes) -> Document | None:
        return {PATH: self.document, "/v0.1/nothing": refusal(404, "Not found")}.get(path)

    async def recheck(self, agent: str) -> Condition:
        if agent != "harper":
            raise KeyError(agent)
        if self.busy:
            raise Busy(3)
        return Condition("error", Reason("ConnectionRefused", "connection refused"))

    async def mcp(self, headers: Mapping[str, str], body: bytes) -> jsonrpc.Response:
        return jsonrpc.Response(202, None)

    @property
    def backend(self) -> Backend:
        return Backend(
            self.find,
            self.metrics,
            lambda: self.waiting,
            lambda query: b"<p>page" + query,
            self.streams,
            self.recheck,
            self.mcp,
            hosts=list,
            uptime=lambda: {"agents": {}},
        )


@pytest.fixture
def world(time) -> World:
    return World(time)


@pytest.fixture
async def client(world: World):
    app = create_app(world.backend)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://registry") as client:
        yield client


async def test_the_catalogue(client, world: World) -> None:
    reply = await client.get(PATH)
    assert (reply.status_code, reply.content) == (200, world.document.body)
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["access-control-allow-origin"] == "*"
    assert reply.headers["etag"] == world.document.etag


async def test_unchanged_is_304_until_it_changes(client, world: World) -> None:
    tag = (await client.get(PATH)).headers["etag"]
    same = await client.get(PATH, headers={"if-none-match": f'"other", W/{tag}'})
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
    assert "content-length" not in same.headers
    world.document = Document(b'{"servers":[1]}')
    assert (await client.get(PATH, headers={"if-none-match": tag})).status_code == 200


async def test_head_says_what_get_would(client, world: World) -> None:
    head, get = await client.head(PATH), await client.get(PATH)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers == get.headers


async def test_head_sends_no_body_whatever_the_server_makes_of_it(world: World) -> None:
    sent = []

    async def send(message) -> None:
        sent.append(message)

    app = Prebuilt(None, world.find)
    await app({"type": "http", "path": PATH, "method": "HEAD", "headers": []}, None, send)
    assert [message.get("body") for message in sent] == [None, b""]


async def test_a_browsers_preflight(client) -> None:
    reply = await client.options(PATH, headers={"origin": "http://x", "access-control-request-method": "GET"})
    assert (reply.status_code, reply.content) == (204, b"")
    assert reply.headers["access-control-allow-origin"] == "*"
    assert "GET" in reply.headers["access-control-allow-methods"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_it_is_only_read(client, method: str) -> None:
    reply = await client.request(method, PATH)
    assert (reply.status_code, reply.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([], False),
        (['"a"'], True),
        (['W/"a"'], True),
        (['"b", "a"'], True),
        (['"b"'], False),
        (["*"], True),
        ([""], False),
    ],
)
def test_if_none_match(fields: list[str], expected: bool) -> None:
    assert matches('"a"', fields) is expected


def test_the_same_bytes_have_the_same_tag_in_every_process() -> None:
    assert Document(b"{}").etag == '"44136fa355b3678a1146ad16f7e8649e"'


async def test_livez_always_and_readyz_when_there_is_something_to_say(client, world: World) -> None:
    world.waiting = "1 of 2 agents not probed yet"
    assert (await client.get("/livez")).status_code == 200
    reply = await client.get("/readyz")
    assert reply.status_code == 503
    assert reply.json() == {"status": "starting", "message": "1 of 2 agents not probed yet"}
    world.waiting = ""
    assert (await client.get("/readyz")).json() == {"status": "ok"}


async def series(client) -> dict[str, float]:
    lines = (await client.get("/metrics")).text.splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


@pytest.mark.parametrize(("state", "value"), [("ok", 1.0), ("degraded", 0.5), ("unauthenticated", 0.5), ("error", 0.0)])
async def test_health_as_a_number(client, world: World, state: str, value: float) -> None:
    world.agent_states.expect(["tech_research"])
    world.agent_states.set_sighting("tech_research", Sighting((A,)))
    world.agent_states.add_result("tech_research", A, Result(state, Reason("NoAnswer", "no answer in 3 s")))
    for change in world.changes:
        world.metrics.count(change)
    found = await series(client)
    assert found['pallas_agent_health{agent="tech_research"}'] == value
    assert found['pallas_agent_replicas{agent="tech_research"}'] == 1
    assert found['pallas_agent_reason{agent="tech_research",code="NoAnswer"}'] == 1
    assert [name for name in found if name.startswith("pallas_agent_reason")] == [
        'pallas_agent_reason{agent="tech_research",code="NoAnswer"}'
    ]
    assert found[f'pallas_registry_agents{{status="{state}"}}'] == 1
    assert found[f'pallas_agent_state_changes_total{{agent="tech_research",new="{state}",old="unknown"}}'] == 1


async def test_the_registry_measures_itself(client, world: World, time) -> None:
    world.agent_states.expect(["harper"])
    world.agent_states.set_sighting("harper", Sighting((A,)))
    world.agent_states.add_result("harper", A, Result("ok"))
    world.metrics.observe(0.02)
    world.config_ok = False
    await time.advance(7)
    found = await series(client)
    assert found['pallas_registry_last_probe_age_seconds{agent="harper"}'] == 7
    assert found["pallas_registry_probe_duration_seconds_count"] == 1
    assert found["pallas_registry_config_ok"] == 0
    assert found['pallas_build_info{version="0.1.0"}'] == 1


async def test_the_series_of_a_removed_agent_are_gone(client, world: World) -> None:
    world.agent_states.expect(["harper", "research"])
    world.agent_states.set_sighting("harper", Sighting((A,)))
    world.agent_states.add_result("harper", A, Result("ok"))
    world.metrics.count(world.changes[0])
    world.agent_states.expect(["research"])
    assert not [name for name in await series(client) if "harper" in name]


async def test_metrics_speak_openmetrics_when_asked(client) -> None:
    reply = await client.get("/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
    assert reply.headers["content-type"].startswith("application/openmetrics-text")
    assert reply.text.endswith("# EOF\n")
    assert (await client.get("/metrics")).headers["content-type"].startswith("text/plain")


async def test_the_description_names_every_path(client) -> None:
    schema = (await client.get("/openapi.json")).json()
    assert set(schema["paths"]) == {
        PATH,
        "/.well-known/ai-catalog.json",
        "/server-cards/{slug}",
        "/prometheus/targets",
        "/services",
        "/v0.1/servers",
        "/v0.1/servers/{serverName}/versions",
        "/v0.1/servers/{serverName}/versions/{version}",
        "/livez",
        "/readyz",
        "/metrics",
        "/uptime",
        "/events",
        "/agents/{agent}/recheck",
    }
    assert schema["info"]["title"] == "pallas registry"


async def test_the_description_is_ready_made(client) -> None:
    first = await client.get("/openapi.json")
    assert first.headers["access-control-allow-origin"] == "*"
    again = await client.get("/openapi.json", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/openapi.json", "/uptime", "/"])
async def test_head_is_answered_where_get_is(client, path: str) -> None:
    head, get = await client.head(path), await client.get(path)
    assert (head.status_code, head.headers) == (get.status_code, get.headers)


@pytest.mark.parametrize(
    ("path", "allow"),
    [
        *((path, "GET, HEAD") for path in ("/livez", "/readyz", "/metrics", "/")),
        ("/mcp", "POST"),
        ("/agents/harper/recheck", "POST"),
        ("/openapi.json", "GET, HEAD, OPTIONS"),
        (PATH, "GET, HEAD, OPTIONS"),
    ],
)
async def test_allow_says_what_is_allowed(client, path: str, allow: str) -> None:
    for method in ("GET", "HEAD", "OPTIONS", "POST", "PATCH", "TRACE"):
        reply = await client.request(method, path)
        assert (reply.status_code == 405) is (method not in allow), method
        assert reply.headers.get("allow") == (allow if reply.status_code == 405 else None)


async def test_events_are_only_followed(client) -> None:
    reply = await client.head("/events")
    assert (reply.status_code, reply.headers["allow"]) == (405, "GET")


async def test_no_page_loads_anything_from_elsewhere(client) -> None:
    """FastAPI's own pages for the description load scripts from a content network."""
    assert (await client.get("/docs")).status_code == (await client.get("/redoc")).status_code == 404


async def test_an_unknown_path_is_404(client) -> None:
    reply = await client.get("/nothing")
    assert (reply.status_code, reply.json()) == (404, {"error": "Not Found"})


async def test_a_refusal_has_no_tag_and_is_never_304(client) -> None:
    reply = await client.get("/v0.1/nothing", headers={"if-none-match": "*"})
    assert (reply.status_code, reply.json()) == (404, {"error": "Not found"})
    assert "etag" not in reply.headers
    assert reply.headers["access-control-allow-origin"] == "*"


async def test_the_page_is_under_the_strictest_policy(client) -> None:
    reply = await client.get("/")
    assert (reply.text, reply.headers["content-type"]) == ("<p>page", "text/html; charset=utf-8")
    assert (await client.get("/?q=a%20b")).text == "<p>pageq=a%20b"
    policy = reply.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert (await client.head("/")).content == b""


async def test_a_recheck_answers_with_what_was_found(client) -> None:
    reply = await client.post("/agents/harper/recheck")
    assert reply.json() == {
        "agent": "harper",
        "status": "error",
        "message": "connection refused",
        "reason": "ConnectionRefused",
    }


async def test_a_recheck_by_a_form_leads_back_to_the_agent(client) -> None:
    reply = await client.post("/agents/harper/recheck", headers={"accept": "text/html,*/*"})
    assert (reply.status_code, reply.headers["location"]) == (303, "../../?focus=harper#focus")


@pytest.mark.parametrize(
    ("agent", "busy", "site", "status"),
    [("nobody", False, "none", 404), ("harper", True, "none", 429), ("harper", False, "cross-site", 403)],
)
async def test_a_recheck_refused(client, world: World, agent: str, busy: bool, site: str, status: int) -> None:
    world.busy = busy
    reply = await client.post(f"/agents/{agent}/recheck", headers={"sec-fetch-site": site})
    assert (reply.status_code, list(reply.json())) == (status, ["error"])
    assert reply.headers.get("retry-after") == ("3" if busy else None)


async def test_one_stream_too_many_is_told_to_come_back(client, world: World) -> None:
    """The client's address has one of two, and would leave none to others."""
    stream = world.streams.follow("", "127.0.0.1")
    await anext(stream)
    reply = await client.get("/events")
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
    await stream.aclose()


async def test_a_recheck_is_nobodys_mcp_endpoint(client) -> None:
    """An agent may register with the URL of its own recheck."""
    reply = await client.post("/agents/harper/recheck", headers={"accept": "application/json, text/event-stream"})
    assert reply.status_code == 403


async def test_an_aborted_upload_is_one_line(world: World) -> None:
    async def receive() -> dict[str, Any]:
        return parts.pop(0)

    async def send(_message: Any) -> None:
        """Nobody is there."""

    parts = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": [], "query_string": b""}
    with capture_logs() as lines:
        await create_app(world.backend)(scope, receive, send)
    assert lines == [{"event": "upload aborted", "log_level": "info", "bytes": 1}]


EDGES = {
    "find": ("GET", PATH),
    "mcp": ("POST", "/mcp"),
    "metrics": ("GET", "/metrics"),
    "page": ("GET", "/"),
    "recheck": ("POST", "/agents/harper/recheck"),
    "uptime": ("GET", "/uptime"),
    "waiting": ("GET", "/readyz"),
}


@pytest.mark.parametrize("part", EDGES)
async def test_whatever_a_request_makes_us_raise_is_a_500_and_one_line(
    world: World, part: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: Any) -> Any:
        if part != "find" or args[1] == PATH:
            raise Unthought("secret")

    broken = replace(world.backend, **{part: fail if part != "metrics" else SimpleNamespace(scrape=fail)})
    method, path = EDGES[part]
    async with served(create_app(broken)) as client:
        reply = await client.request(method, path, content=b"{}" if path == "/mcp" else None)
        assert (await client.get("/livez")).status_code == 200
    assert (reply.status_code, "secret" in reply.text) == (500, False)
    assert [record.exc_info[0] for record in caplog.records if record.levelname == "ERROR"] == [Unthought]


@pytest.mark.parametrize("path", ["/mcp/", "/livez/", "/events/"])
async def test_nothing_is_redirected_to_where_the_host_header_says(client, path: str) -> None:
    reply = await client.post(path, headers={"host": "elsewhere.example"})
    assert (reply.status_code, "location" in reply.headers) == (404, False)


async def test_events_end_when_the_registry_stops(client, world: World) -> None:
    world.history.close()
    reply = await client.get("/events")
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.text == "id: run-0\nretry: 2000\n\n"
    assert world.streams.open == 0
