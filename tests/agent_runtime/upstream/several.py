"""Serve all agents of a project in one process: each costs more than all that the tests ask of it.

Each is prepared and served as `pallas --agent` does it; a warm parent forks `main`, in the folder of agents.yaml.
"""

import asyncio
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import yaml

from pallas_agent_runtime import log_levels, prepare, serve
from pallas_contract import names
from pallas_service.http import sockets


def main(_arguments: Sequence[str]) -> int:
    asyncio.run(serve_all())
    return 0


async def serve_all() -> None:
    fleet = yaml.safe_load(Path(names.AGENTS_FILE).read_text())
    log_levels.configure(fleet["name"], "several", "json")
    path = Path(names.AGENTS_FILE)
    agents = [
        prepare.prepare(path, name, dict(os.environ), Path(names.SECRETS_DIR), allow_plain_secrets=True)
        for name in fleet["agents"]
    ]
    with ExitStack() as stack:
        stack.enter_context(serve.home(agents[0].config.data))  # no agent calls another: theirs are the same
        places = [agent.settings for agent in agents]
        bound = [stack.enter_context(sockets.bound(place.host, place.port, place.listen_on)) for place in places]
        await asyncio.gather(*map(serve._serve, agents, bound))
