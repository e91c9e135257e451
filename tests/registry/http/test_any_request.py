"""Whatever is asked, the answer is one that `/openapi.json`, or the official API, announces, and never a 500."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings

from pallas_contract.probe.probe import Result
from pallas_registry import settings as environment
from pallas_registry.dependencies import Dependencies
from pallas_registry.discovery.sighting import Endpoint, OnSighting, Sighting
from pallas_registry.fleet_file import FleetWatcher
from pallas_registry.http.app import create_app
from pallas_registry.service import Service
from tests.examples import FUZZING, examples
from tests.registry.catalogue.test_official import API

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)
"""Functions of `schemathesis.checks`."""


class Fleet:
    """Agents that are all well."""

    undeclared: tuple[str, ...] = ()

    async def sweep(self, agents: Sequence[str], tell: OnSighting) -> None:
        for agent in agents:
            tell(agent, Sighting((Endpoint(f"http://{agent}/mcp", "10.0.0.1"),)))

    async def check(self, _endpoint: Endpoint, _before: Result | None) -> Result:
        return Result("ok")


@pytest.fixture
def app(folder: Path) -> FastAPI:
    follower, fleet = FleetWatcher(folder / "agents.yaml"), Fleet()
    world = Dependencies(discovery=fleet, check=fleet.check)
    service = Service(environment.read({}), follower.first(), follower, world)
    shown = replace(service.backend(run="run"), waiting=lambda: "")
    service.monitor.history.close()  # or an event stream would never end
    return create_app(shown)


@pytest.fixture
def schemathesis() -> ModuleType:
    import schemathesis as module  # noqa: PLC0415 - half a second of import, for every worker that only reads this module

    return module


@pytest.mark.fuzz
def test_any_request(app: FastAPI, schemathesis: ModuleType) -> None:
    announced = schemathesis.openapi.from_asgi("/openapi.json", app)
    assert len(ask_all(schemathesis, announced, CHECKS)) == 14


@pytest.mark.fuzz
def test_any_request_of_the_official_api(app: FastAPI, schemathesis: ModuleType) -> None:
    """What reads; it does not announce the 400 that it has nonetheless."""
    read = {path: {"get": ways["get"]} for path, ways in API["paths"].items() if "get" in ways}
    official = schemathesis.openapi.from_dict({**API, "paths": read})
    official.app = app
    assert ask_all(schemathesis, official, [check for check in CHECKS if "status" not in check]) == {
        f"GET /v0.1/servers{rest}" for rest in ("", "/{serverName}/versions", "/{serverName}/versions/{version}")
    }


def ask_all(schemathesis: ModuleType, api: Any, checks: Sequence[str]) -> set[str]:
    """Through hypothesis directly: schemathesis' own pytest plugin does not know this pytest."""
    mode = schemathesis.GenerationMode
    functions = [getattr(schemathesis.checks, check) for check in checks]
    asked = set()
    for found in api.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=examples(60),
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            derandomize=not FUZZING,
        )
        @given(
            case=operation.as_strategy(generation_mode=mode.POSITIVE)
            | operation.as_strategy(generation_mode=mode.NEGATIVE)
        )
        def ask(case) -> None:
            case.call_and_validate(checks=functions)

        ask()
        asked.add(operation.label)
    return asked
