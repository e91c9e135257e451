"""The registry's documents as the verbs have them; whatever else answers is none."""

from __future__ import annotations

import json

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from pallas_cli.running import catalogue
from pallas_cli.running.catalogue import Member, NoRegistry, Owner
from pallas_contract.probe import http_client
from tests.cli.conftest import Stand
from tests.served import serving


def test_agents_come_first_with_state_reason_and_url(stand: Stand) -> None:
    stand.states["clerk"] = {"status": "error", "reason": "Exited", "message": "exited with code 1"}
    assert catalogue.read(f"{stand.url}/").members == [
        Member("desk", "agent", "ok", url=f"{stand.url}/mcp"),
        Member("clerk", "agent", "error", "exited with code 1", "Exited", f"{stand.url}/mcp"),
        Member("model", "service", "not probed"),
    ]


def test_whose_it_is_where_it_says_so(stand: Stand) -> None:
    assert catalogue.read(stand.url).owner is None
    stand.fleet = {"name": "demo", "placement": "local", "project": "0123"}
    assert catalogue.read(stand.url).owner == Owner("demo", "local", "0123")
    stand.fleet = {"name": "demo", "placement": "container"}
    assert catalogue.read(stand.url).owner == Owner("demo", "container")


def test_a_large_fleet_is_read_whole(stand: Stand) -> None:
    stand.states = {f"agent-{number}": {"status": "ok", "message": "x" * 100} for number in range(1000)}
    assert len(json.dumps(stand.servers())) > 3 * http_client.LIMIT
    assert len(catalogue.read(stand.url).members) == 1001


def test_the_address_inside_the_fleet_is_none_for_clients_outside(stand: Stand) -> None:
    stand.published = False
    assert catalogue.read(stand.url).members[0] == Member("desk", "agent", "ok", url="")


@pytest.mark.parametrize("answer", [PlainTextResponse("hi"), JSONResponse({"servers": [3]}), JSONResponse([])])
def test_what_is_no_registry_is_called_so(answer: PlainTextResponse) -> None:
    routes = [Route("/{rest:path}", lambda _: answer)]
    with serving(Starlette(routes=routes)) as url, pytest.raises(NoRegistry, match="is no registry of pallas-kit"):
        catalogue.read(url)


def test_nobody_there_is_no_registry() -> None:
    with pytest.raises(NoRegistry, match=r"no registry answers at http://127\.0\.0\.1:9: connection refused"):
        catalogue.read("http://127.0.0.1:9")
