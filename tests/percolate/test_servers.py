"""The memory of examples/04-percolate as the programs that a fleet starts, on either database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from percolate.mcp.tools.agent import ANSWER
from percolate.settings import Settings

from tests.installed import ROOT
from tests.ports import free_port

from .conftest import DATABASES, NewDatabase

pytestmark = pytest.mark.sqlite

EXAMPLE = ROOT / "examples" / "04-percolate"
LIMIT = 120.0
ALICE = {"tenant_id": "test-tenant", "user_id": "alice", "description": "You read.", "output_schema": ANSWER}


def environment(database: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(EXAMPLE), "PERCOLATE_DATABASE": database}


@contextmanager
def server(database: str) -> Iterator[str]:
    """Yield the URL of a memory that serves the documents of the example."""
    port = free_port()
    more = {"PALLAS_BIND": f"127.0.0.1:{port}", "PALLAS_ALLOWED_HOSTS": f"127.0.0.1:{port}"}
    command = [sys.executable, "-m", "percolate.mcp.server"]
    process = subprocess.Popen(command, cwd=EXAMPLE, env=environment(database) | more)
    try:
        end = time.monotonic() + LIMIT
        with httpx2.Client(trust_env=False, verify=False, timeout=60) as web:  # one reads certificates for 10 ms
            while True:
                assert process.poll() is None
                try:
                    web.get(f"http://127.0.0.1:{port}/")
                    break
                except httpx2.TransportError:
                    assert time.monotonic() < end
                    time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(LIMIT)


async def call(url: str, tool: str, **arguments: Any) -> Any:
    async with Client(url) as client:
        reply = await client.call_tool(tool, arguments)
    assert not reply.is_error, reply.content
    return json.loads(reply.content[0].text)


async def test_two_servers_serve_one_memory_and_know_what_the_other_was_told(new_database: NewDatabase) -> None:
    database = new_database("postgresql")
    with ExitStack() as stack:
        one, other = (stack.enter_context(server(database)) for _ in range(2))
        search = {"query": "When do damaged goods have to be reported?", "tenant_id": "test-tenant", "limit": 1}
        found = [await call(url, "search_knowledge_base", **search) for url in (one, other)]
        assert found[0] == found[1]
        assert found[0]["results"][0]["metadata"] == {"type": "pdf", "knowledge_base": "documents", "page": 2}
        assert (await call(one, "create_agent", **ALICE, agent_name="reader"))["version"] == 1
        assert (await call(other, "create_agent", **ALICE, agent_name="reader"))["version"] == 2
        (agent,) = (await call(one, "list_agents", tenant_id="test-tenant"))["agents"]
        assert agent["version"] == "2.0.0"


@pytest.mark.parametrize("kind", DATABASES)
def test_the_command_takes_in_beside_a_server_what_is_new(new_database: NewDatabase, kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "documents" / "acme" / "general"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("Otters.")
    (folder / "b.md").write_bytes(b"\xff")
    database = new_database(kind)

    def run(*words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "percolate.ingest", *words],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(database),
        )
        return done.returncode, done.stdout, done.stderr

    wrong = "acme/general/b.md is not UTF-8, at byte 1: convert it\n"
    assert run() == (1, "1 documents read, 1 problems\n", wrong)
    (folder / "b.md").unlink()
    assert run("--again") == (0, "0 documents read, 0 problems\n", "")


def test_no_password_is_shown_with_the_settings(tmp_path: Path) -> None:
    address = "postgresql://percolate:hunter2@db/percolate"
    settings = Settings.read({"PERCOLATE_DATABASE": address, "EMBEDDINGS_API_KEY": "sk-key"})
    assert (settings.database, settings.embeddings_key) == (address, "sk-key")
    assert "hunter2" not in repr(settings)
    assert "sk-key" not in repr(settings)
    assert Settings.read({"PALLAS_STATE": str(tmp_path)}).database == str(tmp_path / "memory.db")
