"""What the registry does not use costs it neither start-up time nor memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from pallas_registry.unused_imports import ALL
from tests.ports import free_port

PROGRAM = """
import dataclasses, http.client, importlib, json, os, sys, threading, traceback
from pallas_registry import __main__ as registry, unused_imports
from pallas_service import late_imports

if "whole" in sys.argv:
    late_imports.install = lambda distributions: None

def get(path):
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    assert response.status == 200
    return response.read().decode()

def look():
    try:
        sys.stdout.write(json.dumps(report()) + "\\n")
        sys.stdout.flush()
        os._exit(0)
    except BaseException:  # else the registry would serve on, and nobody look at it
        traceback.print_exc()
        os._exit(1)

def report():
    get("/livez")
    modules = sorted(sys.modules)
    tables = [late for of in unused_imports.ALL for late in of.modules]
    waiting = [late.module for late in tables if type(sys.modules.get(late.module)).__name__ == "_LateModule"]
    described = get("/openapi.json")
    for late in tables:
        for name in late.names:
            assert callable(getattr(importlib.import_module(late.module), name)), name
        for name, other in late.elsewhere.items():
            assert getattr(sys.modules[late.module], name) is getattr(sys.modules[other], name), name
    return {"modules": modules, "waiting": waiting, "described": described, "texts": texts}

usual = registry._serve
def serve(*args, **more):
    global texts
    texts = "exec" in vars(dataclasses)
    threading.Thread(target=look).start()  # the socket is there: the request waits until it is served
    return usual(*args, **more)

registry._serve = serve
sys.exit(registry.main())
"""
UNUSED = {"_hashlib", "click", "greenlet", "jinja2", "mcp", "pygments", "rich", "sqlite3", "typer", "uvicorn.main"}
"""Packages and modules that are installed here, or in its image, and that it has no use for until somebody asks."""


def report(folder: Path, *arguments: str) -> dict[str, Any]:
    """Return what it has imported when it answers, what waits then, and its description of the API."""
    port = free_port()
    (folder / "agents.yaml").write_text(f"name: demo\nregistry_port: {port}\nagents: {{a: {{card: a.md, port: 1}}}}\n")
    command = [sys.executable, "-P", "-c", PROGRAM, str(port), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_it_imports_nothing_that_watching_does_not_need(tmp_path: Path) -> None:
    late = report(tmp_path)
    assert UNUSED & set(late["modules"]) == set()
    assert late["texts"], "what packages compile is looked up"
    assert "uvicorn.protocols.http.httptools_impl" in late["modules"]
    assert set(late["waiting"]) == {module.module for of in ALL for module in of.modules}
    whole = report(tmp_path, "whole")
    assert whole["waiting"] == []
    assert json.loads(whole["described"]) == json.loads(late["described"]), "what is imported late describes the same"
