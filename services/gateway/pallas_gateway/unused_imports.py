"""What the gateway has no use for, of packages of which it imports modules.

`import mcp.shared` runs `mcp/__init__.py`, which imports the SDK's client and its high-level server: some 15 MiB that a
gateway never uses. With another version look at the uses anew: tests/agent_runtime/test_unused_imports.py compares the
versions with the lock.
"""

from __future__ import annotations

from pallas_service.late_imports import UVICORN, Distribution, Late

DISTRIBUTIONS = (Distribution("mcp", "2.3.0", (Late("mcp"), Late("mcp.server"))), UVICORN)
"""Packages whose `__init__` is run once somebody asks for something of them, and what services leave of uvicorn."""
OPTIONAL = ("greenlet", "python_multipart", "rich", "uvicorn.main")
"""Modules that packages use where they are there, and of which the gateway uses nothing: tracebacks in colour for
structlog, forms for starlette, a signal handler for sse_starlette. With what they import some 5 MiB."""
