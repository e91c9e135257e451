"""What the gateway does not use costs it neither start-up time nor memory."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.start_report import start_report

PACKAGES = {
    "aiohttp": {"aiohappyeyeballs", "aiosignal", "attr", "frozenlist", "idna", "multidict", "propcache", "yarl"},
    "mcp": {"mcp_types", "opentelemetry", "sse_starlette"},
    "prometheus_client": set(),
    "pydantic": {"annotated_types", "pydantic_core", "typing_extensions", "typing_inspection"},
    "starlette": {"anyio", "sniffio"},
    "structlog": set(),
    "uvicorn": {"httptools"},
    "uvloop": set(),
    "yaml": set(),
}
"""Packages that it imports with static tokens, and what these bring along.

Each costs every gateway memory and time at its start.
"""
MOST_BUILT = 60
"""Models of pydantic, of some 570, that are built when it listens."""
FLEET = """\
name: doors
access: {tokens: {ui: {file: ui.txt}, gateway: {file: gateway.txt}}}
gateway:
  agents: [scout]
  tenants: {acme: {callers: [ui]}}
  grants: [{caller: ui, agent: scout, tools: [send_message]}]
  audit: {key: {file: audit.txt}}
agents: {scout: {card: a.md, port: 8101}}
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what it has imported and built when it begins to listen."""
    folder = tmp_path_factory.mktemp("project")
    for name, text in {
        "agents.yaml": FLEET,
        "ui.txt": "ui-0123456789abcdef",
        "gateway.txt": "gw-0123456789abc",
        "audit.txt": "audit-0123456789abcdef",
    }.items():
        (folder / name).write_text(text)
    imports = "from pallas_gateway import __main__ as gateway\nfrom pallas_service import deferred_models"
    return start_report(imports, hook="deferred_models.as_usual", main="gateway.main()", folder=folder)


@pytest.mark.slow
def test_it_imports_these_packages_and_none_of_an_agents(report: dict[str, Any]) -> None:
    packages = {module.partition(".")[0] for module in report["modules"]} - sys.stdlib_module_names
    third = {name for name in packages if not name.startswith(("_", "pallas_", "cython_runtime", "sitecustomize"))}
    assert third <= PACKAGES.keys() | set().union(*PACKAGES.values())
    others = {"opentelemetry.sdk", "mcp.client", "mcp.server.mcpserver", "jsonschema"}
    others |= {"multiprocessing", "sqlite3", "uvicorn.main"}
    assert others & set(report["modules"]) == set()


@pytest.mark.slow
def test_models_of_packages_are_built_by_those_who_use_them(report: dict[str, Any]) -> None:
    assert report["defined"] > 400
    assert report["built"] < MOST_BUILT


@pytest.mark.slow
def test_what_packages_compile_is_looked_up(report: dict[str, Any]) -> None:
    assert report["texts"]


def test_a_check_of_the_settings_imports_nothing_that_serves() -> None:
    """`pallas --check`, and `--watch` with each edit, start a process for the gateway's."""
    code = "import sys, pallas_gateway.settings; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    packages = {module.partition(".")[0] for module in done.stdout.split()}
    assert packages & {"aiohttp", "mcp", "mcp_types", "prometheus_client", "starlette", "structlog", "uvicorn"} == set()
