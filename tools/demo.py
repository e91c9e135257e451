"""`make demo`: start examples/02-pallas as processes, ask harper, show who did what. `--once` ends by itself.

Exit code 0 when everything was as it should be, 1 when something was not.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pallas_agent_runtime.local.child import dies_with, lines
from pallas_contract import names
from pallas_contract.documents import server_json
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch import addresses
from pallas_contract.probe import http_client
from pallas_contract.validate import load

CONFIG = Path(__file__).parent.parent / "examples" / "02-pallas" / names.AGENTS_FILE
QUESTION = "Why does every agent get a container of its own?"
PATIENCE = 240.0
"""Seconds for the whole fleet to be up: 4 s on two idle cores, several times that on busy ones."""
GOODBYE = 15.0
"""Seconds for `pallas` to stop; it needs 10 at most."""
COLLEAGUES = ("research/research__research", "tech_research/tech_research__tech_research", "argos/search_web")
"""Calls that harper's progress must show, its own and those further down."""


class Failed(Exception):
    """The demonstration cannot go on; the text says why."""


class Pallas:
    """The running `pallas`: what it says of its members is shown, what they say themselves only when it fails."""

    def __init__(self, process: asyncio.subprocess.Process, console: Console) -> None:
        self.process, self._console = process, console
        self.tail: deque[str] = deque(maxlen=30)

    async def listen(self) -> None:
        assert self.process.stdout is not None
        async for line in lines(self.process.stdout):
            self.tail.append(line)
            name, mark, text = line.partition(" : ")
            if mark and name.replace("_", "").strip().isalnum():
                self._console.print(Text(f"  {line}", "dim" if text.startswith("ready") else ""))


@asynccontextmanager
async def pallas(console: Console, config: Path) -> AsyncIterator[Pallas]:
    """Run `pallas` on the example; it has ended when this context has."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pallas_agent_runtime"),
        env={**os.environ, names.ENV_AGENTS_CONFIG: str(config)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        process_group=0,  # the terminal's Ctrl-C is ours to pass on
        preexec_fn=dies_with(os.getpid(), signal.SIGTERM),
    )
    running = Pallas(process, console)
    listening = asyncio.create_task(running.listen())
    try:
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), GOODBYE)
        except TimeoutError:
            process.kill()
        await listening


async def catalogue(registry: str) -> list[dict[str, Any]]:
    """The registry's entries; none while it does not answer."""
    try:
        reply = await http_client.request("GET", f"{registry}/.well-known/mcp/server.json")
        return json.loads(reply.body)["servers"]
    except (http_client.Unreachable, ValueError, KeyError):
        return []


def state(entry: dict[str, Any]) -> str:
    return entry["_meta"][server_json.HEALTH_META]["status"]


def refused(entries: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what each agent says that refused its input: it is not started again, so waiting is in vain."""
    for entry in entries:
        found = entry["_meta"][server_json.HEALTH_META]
        if found.get("reason") == "InputRefused":
            yield f"{entry['server']['name']} is not started: {found['message']}"


async def until_ok(running: Pallas, fleet: ResolvedFleet, registry: str) -> list[dict[str, Any]]:
    """Wait until the registry lists every agent as ok.

    Raises:
        Failed: `pallas` ended, an agent refused its input, or the time was over.
    """
    started = time.monotonic()
    while time.monotonic() - started < PATIENCE:
        entries = await catalogue(registry)
        if len(entries) == len(fleet.agents) and all(state(entry) == "ok" for entry in entries):
            return entries
        if refusals := list(refused(entries)):
            raise Failed("\n".join(refusals))
        if running.process.returncode is not None:
            raise Failed("\n".join(["pallas ended:", *running.tail]))
        await asyncio.sleep(0.25)
    raise Failed("\n".join([f"not everything was ok after {PATIENCE:g} s; the last lines:", *running.tail]))


async def ask(console: Console, url: str, progress: list[str]) -> str:
    """Call harper's tool and show its progress line by line; returns the answer."""

    from mcp import Client  # noqa: PLC0415 - half a second, in which the fleet may start

    async def show(value: float, total: float | None, message: str | None) -> None:
        progress.append(message or "")
        console.print(Text(f"  {message}", "green" if total else "dim"))

    async with Client(url) as client:
        result = await client.call_tool("harper", {"message": QUESTION}, progress_callback=show)
    return "\n".join(getattr(block, "text", "") for block in result.content)


def wrong(answer: str, progress: list[str]) -> Iterator[str]:
    """What a working fleet would not have shown."""
    for call in COLLEAGUES:
        for event in ("started", "completed"):
            if f"{call}: {event}" not in progress:
                yield f"no progress line `{call}: {event}`"
    for colleague in ("Research", "Tech Research", "Engineering"):
        if f"{colleague}, asking from" not in answer:
            yield f"{colleague} has no part in the answer"


def announcement(fleet: ResolvedFleet) -> Iterator[str]:
    """Yield what is about to start, on which ports, and how long that takes."""
    yield f"[bold]pallas[/] starts {len(fleet.agents)} agents and {len(fleet.services)} stand-in services"
    ports = {names.REGISTRY: fleet.registry_port} | {name: agent.port for name, agent in fleet.agents.items()}
    ports |= {name: service.port for name, service in fleet.services.items()}
    yield f"on {', '.join(f'{port} ({name})' for name, port in sorted(ports.items(), key=lambda pair: pair[1]))}"
    yield f"A few seconds on two idle cores; it gives up after {PATIENCE:g} s."


def registry_table(entries: list[dict[str, Any]]) -> Table:
    table = Table("name", "state", "url", box=box.SIMPLE_HEAD)
    for entry in entries:
        server = entry["server"]
        table.add_row(server["name"], Text(state(entry), "green"), server["remotes"][0]["url"])
    return table


async def demonstrate(console: Console, config: Path, *, once: bool) -> int:
    """The whole show. Returns the exit code."""
    fleet, _, _ = load.load(config)
    registry = f"http://{addresses.LOOPBACK}:{fleet.registry_port}"
    began = time.monotonic()
    for line in announcement(fleet):
        console.print(line, highlight=False)
    async with pallas(console, config) as running:
        entries = await until_ok(running, fleet, registry)
        console.print(f"\n[bold]all ok[/] after {time.monotonic() - began:.1f} s. Asking harper: {QUESTION}")
        began, progress = time.monotonic(), list[str]()
        answer = await ask(console, addresses.mcp_url(fleet, "harper", "local"), progress)
        console.print(Panel(Text(answer), title=f"harper, after {time.monotonic() - began:.1f} s", title_align="left"))
        console.print(f"[bold]registry[/] {registry}/.well-known/mcp/server.json")
        console.print(registry_table(entries))
        problems = list(wrong(answer, progress))
        for problem in problems:
            console.print(Text(f"wrong: {problem}", "bold red"))
        if not once:
            console.print("It runs until Ctrl-C. Ask it yourself, with any MCP client.")
            await running.process.wait()
            problems.append("pallas ended")
        return 1 if problems else 0


async def until_interrupted(console: Console, config: Path, *, once: bool) -> int:
    """`demonstrate`, ended early and in order by Ctrl-C: the expected end, except with `once`."""
    show = asyncio.create_task(demonstrate(console, config, once=once))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, show.cancel)
    try:
        return await show
    except asyncio.CancelledError:
        return 1 if once else 0
    except Failed as failure:
        console.print(Text(str(failure), "red"), soft_wrap=True)
        return 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="stop as soon as everything was shown")
    parser.add_argument(
        "--config", type=Path, default=CONFIG, help="a copy of the example's agents.yaml, with other ports"
    )
    arguments = parser.parse_args()
    width = None if sys.stdout.isatty() else 110
    return asyncio.run(until_interrupted(Console(highlight=False, width=width), arguments.config, once=arguments.once))


if __name__ == "__main__":
    sys.exit(main())
