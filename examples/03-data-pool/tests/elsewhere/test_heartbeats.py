"""An agent that is in no agents.yaml: it registers itself, is called, falls silent or says good-bye; as processes."""

import asyncio
import subprocess
import sys
from contextlib import contextmanager

import httpx
from mcp import Client

PATIENCE = 240
"""Seconds for what takes a few on a machine that has nothing else to do."""


@contextmanager
def data_cleaner(fleet):
    """Yield the program that runs, with a heartbeat a second, and the file of what it prints."""
    command = [sys.executable, "-m", "elsewhere.data_cleaner", "--port", "0", "--interval", "1"]
    log = fleet.folder / "data_cleaner.log"
    with (
        log.open("w") as output,
        subprocess.Popen([*command, "--registry", fleet.url("registry")], cwd=fleet.folder, stdout=output) as program,
    ):
        try:
            yield program, log
        finally:
            program.kill()


def url_of(fleet, name):
    """Return where an agent of the registry's catalogue is."""
    servers = [entry["server"] for entry in fleet.registry.document()["servers"]]
    (url,) = [server["remotes"][0]["url"] for server in servers if server["name"].endswith(f"/{name}")]
    return url


async def clean(url, ohlcv):
    """Return what the function of the data_cleaner makes of candles."""
    async with Client(url) as client:
        return (await client.call_tool("clean_data", {"ohlcv": ohlcv})).structured_content


def execute(fleet, **params):
    """Return the answer of the gateway to an `agent.execute` in the envelope of seed 003."""
    message = {"method": "agent.execute", "params": {**params, "meta": {"task_id": "task_001"}}}
    reply = httpx.post(f"{fleet.url('gateway')}/mcp", json=message, timeout=PATIENCE, trust_env=False)
    return reply.raise_for_status().json()


def test_an_agent_that_registers_itself_is_found_called_and_missed(fleet):
    with data_cleaner(fleet) as (program, _):
        fleet.wait_for({"data_cleaner": "ok"}, within=PATIENCE)
        sound, upside_down = [40.0, 43.0, 39.0, 42.0, 1.0], [40.0, 39.0, 43.0, 42.0, 1.0]
        answer = asyncio.run(clean(url_of(fleet, "data-cleaner"), [sound, upside_down]))
        assert answer == {"ohlcv": [sound]}
        called = {"agent_id": "data_cleaner", "function": "clean_data", "input": {"ohlcv": [upside_down, sound]}}
        assert execute(fleet, **called)["result"] == {"ohlcv": [sound]}
        program.kill()  # no word of good-bye
        fleet.wait_for(lambda: "no heartbeat since" in fleet.registry.state("data_cleaner").message, within=PATIENCE)
        assert fleet.registry.state("data_cleaner").status in ("degraded", "error")
        assert execute(fleet, **called)["error"]["code"] == -32001


def test_a_heartbeat_to_a_registry_that_was_started_anew_makes_it_register_again(fleet):
    with data_cleaner(fleet) as (program, log):
        fleet.wait_for({"data_cleaner": "ok"}, within=PATIENCE)
        fleet.faults.restart("registry")  # which keeps no file of registrations here
        fleet.wait_for(lambda: log.read_text().count("data_cleaner: registered") == 2, within=PATIENCE)
        fleet.wait_for({"data_cleaner": "ok"}, within=PATIENCE)
        program.terminate()
        assert program.wait(PATIENCE) == 0


def test_an_agent_that_says_good_bye_is_gone(fleet):
    with data_cleaner(fleet) as (program, _):
        fleet.wait_for({"data_cleaner": "ok"}, within=PATIENCE)
        program.terminate()
        assert program.wait(PATIENCE) == 0
        fleet.wait_for(lambda: fleet.registry.state("data_cleaner").status == "unlisted", within=PATIENCE)
