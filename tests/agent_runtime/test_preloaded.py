"""What agents are forked from has all that an agent imports, and nothing that a fork would not have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

READY = """
import gc, os, sys
from pydantic import BaseModel, TypeAdapter
from pallas_service import deferred_models
deferred_models.defer()
from pallas_agent_runtime import unused_imports
unused_imports.defer()
from pallas_agent_runtime import preloaded
from pallas_agent_runtime.importing import gc_tuning
from mcp_types.jsonrpc import jsonrpc_message_adapter

def waiting(base=BaseModel):
    own = set() if base.__pydantic_complete__ else {base}
    return own.union(*map(waiting, base.__subclasses__()))

def adapters():
    return {id(item) for item in gc.get_objects() if isinstance(item, TypeAdapter) and not item.pydantic_complete}

preloaded.warm()
before = set(sys.modules)
waited, late = waiting(), adapters()
assert len(waited) > 400, "only what is used is built"
assert len(late) > 5
assert jsonrpc_message_adapter.pydantic_complete, "each call uses it"
print(len(os.listdir("/proc/self/task")), len([fd for fd in os.listdir("/proc/self/fd") if int(fd) > 2]) - 1)

sys.addaudithook(lambda event, arguments: event == "subprocess.Popen" and print("starts", arguments[1]))

def ready():
    built = [*sorted(model.__name__ for model in waited - waiting()), *(late - adapters())]
    print(*sorted(set(sys.modules) - before), *built, flush=True)
    os._exit(0)

gc_tuning.as_usual = ready
preloaded.main(["--agent", "hello"], lambda: print("complete", os.environ["OF_DOTENV"]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only there agents are forked")
def test_an_agent_imports_and_builds_nothing_more_without_threads_or_files(toolkit: Any, tmp_path: Path) -> None:
    fleet = {"name": "demo", "agents": {"hello": {"card": "hello.md", "port": toolkit.free_port()}}}
    card = "---\ntype: agent\nname: hello\n---\nYou are polite.\n"
    toolkit.write_files(
        tmp_path,
        {
            "agents.yaml": fleet,
            "hello.md": card,
            "fastagent.config.yaml": {"default_model": "passthrough"},
            ".env": "OF_DOTENV=here\n",
        },
    )
    env = {**os.environ, "PALLAS_AGENTS_CONFIG": str(tmp_path / "agents.yaml"), "PALLAS_LOG_FORMAT": "text"}
    env["PALLAS_RUN"] = "test/hello"  # as each that is forked has: nothing is started to watch over it
    done = subprocess.run(
        [sys.executable, "-P", "-c", READY], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    alone, complete, *more, later = done.stdout.splitlines() or [done.stderr]
    assert alone == "1 0"
    assert complete == "complete here", "the environment is complete when it is asked for"
    assert later.split() == []
    assert not [line for line in more if line.startswith("starts")], "nor does it start a process"
