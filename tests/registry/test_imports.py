"""What the registry does not use costs it neither start-up time nor memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.ports import free_port

PROGRAM = """
import http.client, json, os, sys, threading, traceback
from pallas_registry import __main__ as registry

def look():
    try:
        connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
        connection.request("GET", "/livez")
        assert connection.getresponse().status == 200
        sys.stdout.write(json.dumps(sorted(sys.modules)) + "\\n")
        sys.stdout.flush()
        os._exit(0)
    except BaseException:  # else the registry would serve on, and nobody look at it
        traceback.print_exc()
        os._exit(1)

usual = registry._serve
def serve(*args, **more):
    threading.Thread(target=look).start()  # the socket is there: the request waits until it is served
    return usual(*args, **more)

registry._serve = serve
sys.exit(registry.main())
"""
UNUSED = {"click", "greenlet", "jinja2", "mcp", "pygments", "rich", "sqlite3", "typer", "uvicorn.main"}
"""Packages and modules that are installed here, or in its image, and that it has no use for until somebody asks."""


def test_it_imports_nothing_that_watching_does_not_need(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "agents.yaml").write_text(
        f"name: demo\nregistry_port: {port}\nagents: {{a: {{card: a.md, port: 1}}}}\n"
    )
    command = [sys.executable, "-P", "-c", PROGRAM, str(port)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    modules = json.loads(done.stdout.splitlines()[-1])
    assert UNUSED & set(modules) == set()
    assert "uvicorn.protocols.http.httptools_impl" in modules
