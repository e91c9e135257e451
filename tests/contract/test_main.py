"""`python -m pallas_contract`, run as the init container and the health check of a container run it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

import pallas_contract

DISCOVERED = {"supportedVersions": ["2026-07-28"]}
CONTRACT = Path(pallas_contract.__file__).parents[1]
DOWN = "http://127.0.0.1:1/mcp"
PATIENT = """
import runpy
from pallas_contract import names
names.PROBE_TIMEOUT = 60.0
runpy.run_module("pallas_contract", run_name="__main__", alter_sys=True)
"""
"""The module as `-m` runs it, but for the 3 s in which a server of this process may not get its turn."""
LOADED = """
import sys
sys.path.append(sys.argv.pop(1))
from pallas_contract import names
names.PROBE_TIMEOUT = 60.0
from pallas_contract.__main__ import main
main()
print(*sorted(sys.modules))
"""
"""Without `site`, as the environment of the tests imports at its start what an image does not."""
NOBODY = "nobody listens on 1; the program must listen on PALLAS_BIND"


async def run(*arguments: str) -> tuple[int | None, str]:
    """Return exit code and output of the command."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", PATIENT, *arguments, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


@pytest.mark.parametrize(
    ("states", "code", "output"),
    [
        (("up",), 0, "ok\n"),
        (("down",), 1, f"{NOBODY}\n"),
        (("up", "down"), 1, f"UP: ok\nDOWN: {NOBODY}\n"),
        (("down", "up"), 1, f"DOWN: {NOBODY}\nUP: ok\n"),
        (("up", "up"), 0, "UP: ok\nUP: ok\n"),
    ],
    ids=["up", "down", "up down", "down up", "up up"],
)
async def test_every_dependency_has_to_be_up(serve, mcp, states: tuple[str, ...], code: int, output: str) -> None:
    server = await serve(mcp({"server/discover": DISCOVERED}))
    urls = {"up": server.url, "down": DOWN}
    expected = output.replace("UP", server.url).replace("DOWN", DOWN)
    assert await run(*(urls[state] for state in states)) == (code, expected)


@pytest.mark.parametrize(
    ("status", "code", "output"),
    [
        (200, 0, "ok\n"),
        (401, 0, "ok\n"),
        (302, 1, "HTTP 302, and redirects are not followed\n"),
        (404, 1, "HTTP 404\n"),
        (503, 1, "HTTP 503\n"),
    ],
)
async def test_a_page_is_asked_for_with_get(serve, answer, status: int, code: int, output: str) -> None:
    server = await serve(answer(status))
    assert await run(server.url.replace("/mcp", "/readyz")) == (code, output)
    assert {(asked.method, asked.path) for asked in server.asked} == {("GET", "/readyz")}
    assert len(server.asked) == (2 if code and status != 503 else 1), "the whole probe says what is wrong"


async def test_without_a_url_the_arguments_are_wrong() -> None:
    assert await run() == (2, "")


async def test_deep_asks_for_health(serve, mcp) -> None:
    sick = {"content": [{"type": "text", "text": '{"status": "error", "message": "no model"}'}]}
    server = await serve(mcp({"server/discover": DISCOVERED, "tools/call": sick}))
    assert await run(server.url) == (0, "ok\n")
    assert await run("--deep", server.url) == (1, "no model\n")


async def test_waiting_ends_when_the_last_one_is_up(serve, answer, mcp) -> None:
    """The first request is refused: a pod that waits goes on to ask, and starts then."""
    starting, started = answer(503), mcp({"server/discover": DISCOVERED})

    async def handler(asked, writer) -> None:
        await (starting if len(server.asked) == 1 else started)(asked, writer)

    server = await serve(handler)
    assert await run("--wait", "60", server.url) == (0, "ok\n")
    assert len(server.asked) == 2


async def test_a_health_check_waits_for_a_program_that_starts(serve, answer) -> None:
    starting, started = answer(503), answer(200)

    async def handler(asked, writer) -> None:
        await (starting if len(server.asked) < 3 else started)(asked, writer)

    server = await serve(handler)
    assert await run("--wait", "60", server.url.replace("/mcp", "/readyz")) == (0, "ok\n")
    assert len(server.asked) == 3
    assert await run("--wait", "1", DOWN) == (1, f"{NOBODY}\n")


@pytest.mark.parametrize("waiting", [(), ("--wait", "1")], ids=["at once", "waiting"])
@pytest.mark.parametrize("up", [False, True])
async def test_a_check_costs_no_more_than_it_must(serve, mcp, up: bool, waiting: tuple[str, ...]) -> None:
    """Each container runs one again and again: asyncio alone would make it three times as dear."""
    url = (await serve(mcp({"server/discover": DISCOVERED}))).url if up else DOWN
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-S", "-c", LOADED, str(CONTRACT), *waiting, url, stdout=asyncio.subprocess.PIPE
    )
    said, modules = (await process.communicate())[0].decode().splitlines()
    loaded = set(modules.split())
    assert said == ("ok" if up else NOBODY)
    assert loaded.isdisjoint(
        {"argparse", "asyncio", "collections", "dataclasses", "enum", "functools", "json", "typing"}
    )
    assert loaded.isdisjoint({"pathlib", "pydantic", "re", "socket", "ssl"})
    assert {name for name in loaded if name.startswith("pallas")} == {
        "pallas_contract",
        "pallas_contract.__main__",
        "pallas_contract.names",
        "pallas_contract.probe",
        "pallas_contract.probe.quick",
    }
