"""An agent as a program that is imported once for many processes: `pallas` forks its agents from one that has it.

It imports what an agent imports when it is served, so that a fork has it already, and builds those models of pydantic
that an agent uses: the others wait for whoever wants them, where models wait (`pallas_service.deferred_models`).
"""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Callable, Container, Sequence
from pathlib import Path

import uvicorn.lifespan.off  # noqa: F401 - by name, when the server starts
from mcp_types import jsonrpc
from pydantic import BaseModel

from pallas_agent_runtime import cli, engine, log_levels, prepare, serve  # noqa: F401 - `cli` has them imported late
from pallas_agent_runtime.health import providers  # noqa: F401 - imported with the first check
from pallas_contract import names
from pallas_contract.fleet import fastagent
from pallas_contract.problems import Refused
from pallas_contract.validate.code import models

_USED = (
    "fast_agent.config",
    "fast_agent.context",
    "fast_agent.core.executor.executor",
    "fast_agent.core.logging.events",
    "fast_agent.llm.model_database",
    "fast_agent.llm.model_factory",
    "fast_agent.llm.request_params",
    "fast_agent.llm.usage_tracking",
    "fast_agent.mcp.prompt_message_extended",
    "fast_agent.tools.environment_config",
    "fastmcp.settings",
    "mcp.server.models",
    "mcp.server.transport_security",
    "mcp_types.jsonrpc",
    "pallas_contract.fleet.access_model",
    "pallas_contract.fleet.base",
    "pallas_contract.fleet.images",
    "pallas_contract.fleet.model",
    "pallas_contract.fleet.resolved",
)
"""Modules whose models every agent uses until it is ready, or with its first call."""
_MESSAGES = (
    "CallToolRequest CallToolRequestParams CallToolResult ClientCapabilities DiscoverRequest DiscoverResult "
    "GetPromptRequestParams Implementation InitializeRequest InitializeRequestParams InitializeResult "
    "InitializedNotification InputResponseRequestParams ListToolsRequest ListToolsResult Notification PaginatedRequest "
    "PaginatedRequestParams Prompt PromptArgument PromptsCapability ReadResourceRequestParams Request RequestParams "
    "ServerCapabilities TextContent Tool ToolAnnotations ToolsCapability"
)
"""The same of the MCP SDK, which has each message in several versions: too many to build them all."""


def _build(base: type[BaseModel], messages: Container[str]) -> None:
    """Build the models that every agent uses: each fork would do it for itself, at their first use."""
    for model in base.__subclasses__():
        _build(model, messages)
        if model.__module__ in _USED or (model.__module__.startswith("mcp_types.") and model.__name__ in messages):
            model.model_rebuild()


engine.preload("")
platform.platform()  # kept by its module: fast-agent tells each agent, and it takes a process to find out
_build(BaseModel, frozenset(_MESSAGES.split()))
jsonrpc.jsonrpc_message_adapter.rebuild()  # with each message


def warm() -> None:
    """Read the fleet file, and import what the provider of the project's default model needs.

    A project that cannot be read has none, and each agent says so.
    """
    config = Path(os.environ[names.ENV_AGENTS_CONFIG])
    with contextlib.suppress(Refused):
        prepare.read_fleet(config)
    project = config.parent
    declared, _ = fastagent.load(project)
    provider = models.provider_of(declared.default_model)
    engine.preload(provider.name if provider else "")


def main(arguments: Sequence[str], settle: Callable[[], None]) -> int:
    """Run the command of an agent (forker.Program)."""
    return cli.main(arguments, settle, installed=True)
