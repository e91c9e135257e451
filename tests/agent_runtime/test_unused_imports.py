"""What is imported late is what the table was made for, and everything that it names is there."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from pallas_agent_runtime.unused_imports import ALL, DISTRIBUTIONS
from pallas_gateway import unused_imports as gateway
from pallas_registry import unused_imports as registry
from tests.agent_runtime.conftest import environment
from tests.installed import ROOT

LOADED = """
import importlib, sys
from pallas_agent_runtime import unused_imports
unused_imports.defer()
import pallas_agent_runtime.serve, pallas_agent_runtime.engine
pallas_agent_runtime.engine.preload("")
late = [late for of in unused_imports.ALL for late in of.modules]
waiting = [one.module for one in late if type(sys.modules.get(one.module)).__name__ == "_LateModule"]
assert "_hashlib" not in sys.modules, "OpenSSL's digests wait with hashlib"
handed_on = {
    f"{name}.{thing}"
    for name, module in list(sys.modules.items())
    if type(module).__name__ != "_LateModule"  # to look into it has it loaded
    for thing, value in list(vars(module).items())
    if type(value).__name__ == "_StandIn" and (hasattr(module, "__path__") or thing in vars(module).get("__all__", ()))
}
assert handed_on == {"secrets.compare_digest", "uvicorn.main", "uvicorn.run"}, handed_on
assert "openai" not in sys.modules
pallas_agent_runtime.engine.preload("openai")
assert len([name for name in sys.modules if name.startswith("openai.types.")]) < 100
of_openai = [one for one in late if one.module.startswith("openai.")]
waiting += [one.module for one in of_openai if type(sys.modules[one.module]).__name__ == "_LateModule"]
from fast_agent.mcp.provider_management import get_openai_connector_ids
assert "connector_gmail" in get_openai_connector_ids()
import openai.types.responses.tool
assert openai.types.responses.tool.Tool is openai.types.responses.response.Tool
from mcp.client import client
from mcp.server.mcpserver.server import MCPServer
assert isinstance(MCPServer("as a project makes one"), client.MCPServer)
from mcp.server import MCPServer as Same
assert Same is MCPServer
for one in late:
    module = importlib.import_module(one.module)
    for name in one.names:
        assert callable(getattr(module, name)) or name == "EMOJI", name
        assert type(getattr(module, name)).__name__ != "_StandIn", name
    for name, other in one.elsewhere.items():
        assert getattr(module, name) is getattr(importlib.import_module(other), name)
        dir(module)  # has it loaded
        assert getattr(module, name) is getattr(importlib.import_module(other), name)
print(*waiting)
"""

LATER_STILL = {"fast_agent.marketplace.git_sources", "httpx._main"}
"""Imported by modules that are late themselves."""


TABLES = {"agent": [*DISTRIBUTIONS, *gateway.DISTRIBUTIONS], "registry": registry.DISTRIBUTIONS}


@pytest.mark.parametrize("image", TABLES)
def test_the_versions_are_those_of_the_images(image: str) -> None:
    lock = (ROOT / "requirements" / f"{image}.lock").read_text()
    pinned = {name.replace("-", "_"): version for name, version in re.findall(r"^(\S+)==([^\s;\\]+)", lock, re.M)}
    for table in TABLES[image]:
        assert table.version == pinned[table.name], table.name


@pytest.mark.slow
def test_each_name_is_there_and_each_module_waits_until_it_is_used() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOADED], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {late.module for of in ALL for late in of.modules} - LATER_STILL
