"""Every query of the generated dashboard finds something in a Prometheus that has scraped a registry."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from pallas_contract.fleet.model import Agent, Fleet
from pallas_contract.fleet.resolved import resolve
from pallas_gen.targets import observability
from tests.ports import free_port
from tests.registry.processes import registry, until

pytestmark = [
    pytest.mark.prometheus,
    pytest.mark.waits,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus: tools/prometheus"),
]


@asynccontextmanager
async def prometheus(folder: Path, port: int) -> AsyncIterator[httpx.AsyncClient]:
    """A Prometheus that scrapes every second what `folder`/prometheus.yaml says."""
    process = await asyncio.create_subprocess_exec(
        "prometheus",
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:

            async def ready() -> int:
                return (await client.get("/-/ready")).status_code

            await until(ready, lambda status: status == 200)
            yield client
    finally:
        process.kill()
        await process.wait()


async def test_no_panel_is_empty(folder: Path, agent, tmp_path: Path) -> None:
    harper, port = await agent("harper"), free_port()
    agents = {"harper": Agent(module="a.b", port=8201)}
    demo = resolve(Fleet(name="demo", host="127.0.0.1", registry_port=port, agents=agents))
    scrape = observability.scrape(demo) | {"global": {"scrape_interval": "1s"}}
    home = tmp_path / "prometheus"
    home.mkdir()
    (home / "prometheus.yaml").write_text(yaml.safe_dump(scrape))
    (home / "alerts.yaml").write_text(yaml.safe_dump(observability.alerts(demo)))
    (folder / "agents.yaml").write_text(
        "name: demo\nagents: {harper: {module: a.b, port: 8201}}\nregistry: {probe_interval: 0.5}\n"
    )
    addresses = json.dumps({"harper": f"127.0.0.1:{harper.port}"})
    async with (
        registry(folder, PALLAS_BIND=f"127.0.0.1:{port}", PALLAS_ADDRESSES=addresses),
        prometheus(home, free_port()) as client,
    ):
        queries = [
            panel["targets"][0]["expr"].replace("$__rate_interval", "10s")
            for panel in observability.dashboard(demo)["panels"]
        ]

        async def empty() -> list[str]:
            # the counter of changes is born by the first: only the second one shows as an increase
            harper.health = {"status": "degraded" if harper.health["status"] == "ok" else "ok", "message": "toggled"}
            await asyncio.sleep(0.5)  # two dozen queries that nobody has to answer twice within a scrape
            found = [(await client.get("/api/v1/query", params={"query": each})).json() for each in queries]
            return [query for query, reply in zip(queries, found, strict=True) if not reply["data"]["result"]]

        await until(empty, lambda queries: not queries)

        async def found() -> set[tuple[str, str]]:
            targets = (await client.get("/api/v1/targets")).json()["data"]["activeTargets"]
            return {(target["labels"]["job"], target["labels"].get("agent", "")) for target in targets}

        wanted = {(observability.JOB, ""), (observability.AGENTS_JOB, "harper")}
        assert await until(found, lambda targets: len(targets) == 2) == wanted
