"""What one more conversation costs an agent that uses a downstream server: connections to it, and memory."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from benchmarks.method import agents, servers
from benchmarks.method.agents import Server
from benchmarks.method.report import Figure, at_most
from benchmarks.method.side_by_side import Effort, spread

BATCH = 100
ESTABLISHED = "01"


def measure(effort: Effort) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with agents.echo(folder) as downstream:
            place = agents.project(folder, "connection")
            config = yaml.safe_load((place / "fastagent.config.yaml").read_text())
            config["mcp"] = {"servers": {"echo": {"transport": "http", "url": downstream.mcp}}}
            (place / "fastagent.config.yaml").write_text(yaml.safe_dump(config))
            card = (place / "hello.md").read_text()
            (place / "hello.md").write_text(card.replace("type: agent", "type: agent\nservers: [echo]"))
            with agents.serving(place) as agent:
                yield from _counted(agent, downstream, effort)


def _counted(agent: Server, downstream: Server, effort: Effort) -> Iterator[Figure]:
    """Batches of new conversations of one turn each; the first one warms up.

    On a busy machine they take longer than an idle connection is kept, so whether there is one is seen after a turn.
    """
    servers.until(lambda: _kept(agent, downstream))
    _converse(agent, 0)
    connections, memory = [_connections(downstream)], [servers.resident(agent.pid)]
    for number in range(1, effort.rounds + 1):
        _converse(agent, number)
        connections.append(_connections(downstream))
        memory.append(servers.resident(agent.pid))
    more = spread(after - before for before, after in itertools.pairwise(connections))
    yield Figure(f"new downstream connections per {BATCH} conversations", more, at_most(0))
    grown = spread((after - before) / BATCH / 1000 for before, after in itertools.pairwise(memory))
    yield Figure("memory per new conversation", grown, at_most(10), "kB")


def _converse(agent: Server, batch: int) -> None:
    for number in range(BATCH):
        _say_hi(agent, f"{batch}-{number}")


def _say_hi(agent: Server, conversation: str) -> None:
    arguments = {**agents.HI, "session_id": conversation}
    said = agents.ask(agent.mcp, "tools/call", {"name": "send_message", "arguments": arguments}, "send_message")
    if agents.SAID_HI.encode() not in said:
        raise RuntimeError(f"the agent answered {said[:300]!r}")


def _kept(agent: Server, downstream: Server) -> bool:
    """Have one turn, and return whether it left a connection to the server that it used."""
    _say_hi(agent, "first")
    return _connections(downstream) > 0


def _connections(server: Server) -> int:
    """Connections that are open to the port of `server`, from anywhere on this machine."""
    port = f":{int(server.base.rpartition(':')[2]):04X}"
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return sum(row[2].endswith(port) and row[3] == ESTABLISHED for row in rows)
