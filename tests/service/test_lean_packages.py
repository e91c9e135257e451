"""Packages that are imported lean, in a process of its own: these are the ones that tests import whole."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
from pallas_service import lean_packages
lean_packages.install("absent_package", *lean_packages.SDK)
lean_packages.install(*lean_packages.SDK)
from mcp.server.lowlevel.server import Server
from pallas_service.access import gate, verifier
assert "mcp.client" not in sys.modules, "imported with a module"
assert "jwt" not in sys.modules, "a token in a file is no JWT"
import mcp
import mcp.server
assert mcp.server.Server is Server
assert mcp.server.MCPServer.__name__ == "MCPServer"
from mcp import Client
assert Client.__module__ == "mcp.client.client"
print("whole")
"""


def test_a_lean_package_is_whole_for_who_asks_for_more() -> None:
    ran = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120, check=False)
    assert (ran.stdout, ran.stderr) == ("whole\n", "")


def test_a_package_that_was_hidden_is_there_afterwards() -> None:
    code = """
import sys
from pallas_service import lean_packages
with lean_packages.without("json"):
    try:
        import json
    except ImportError:
        print("hidden")
import json
with lean_packages.without("json"):
    import json
print(json.dumps(1))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (ran.stdout, ran.stderr) == ("hidden\n1\n", "")
