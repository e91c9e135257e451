"""Every symbol of fast-agent that the engine relies on, by name: an upgrade that takes one away fails here, clearly."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import pallas_agent_runtime

ROOM = Path(pallas_agent_runtime.__file__).parent

SYMBOLS = {
    "fast_agent": "AgentHarness FastAgent HarnessSession LlmAgent LlmStopReason PromptMessageExtended RequestParams",
    "fast_agent.agents.mcp_agent": "McpAgent",
    "fast_agent.config": "MCPServerSettings get_settings",
    "fast_agent.core.agent_app": "AgentApp",
    "fast_agent.core": "validation",
    "fast_agent.core.exceptions": "FastAgentError ProviderKeyError",
    "fast_agent.core.logging.transport": "AsyncEventBus",
    "fast_agent.core.model_resolution": "resolve_model_reference",
    "fast_agent.llm": "fastagent_llm",
    "fast_agent.llm.model_database": "ModelDatabase ModelParameters",
    "fast_agent.llm.model_factory": "ModelFactory",
    "fast_agent.llm.provider_key_manager": "ProviderKeyManager",
    "fast_agent.mcp": "client_gateway stdio_tracking_simple",
    "fast_agent.mcp.client_connection": "MCPClientConnection",
    "fast_agent.mcp.mcp_aggregator": "MCPAttachOptions",
    "fast_agent.mcp.prompt_serialization": "from_json to_json",
    "fast_agent.tools.elicitation": (
        "get_elicitation_fastmcp_tool run_elicitation_form set_elicitation_input_callback"
    ),
    "fast_agent.tools.function_tool_loader": "build_default_function_tool load_function_from_spec",
    "fast_agent.ui.console": "console error_console",
}
MEMBERS = {
    ("fast_agent", "FastAgent"): "harness load_agents",
    ("fast_agent.core.core_app", "Core"): "context initialize",
    ("fast_agent", "AgentHarness"): "session __aenter__ __aexit__",
    ("fast_agent", "HarnessSession"): "agent_app generate delete",
    ("fast_agent", "PromptMessageExtended"): "all_text from_multipart",
    ("fast_agent", "LlmStopReason"): "ERROR TIMEOUT CANCELLED",
    ("fast_agent.core.agent_app", "AgentApp"): (
        "registered_agents attach_mcp_server detach_mcp_server list_attached_mcp_servers"
    ),
    ("fast_agent.agents.tool_agent", "ToolAgent"): "add_tool call_tool list_tools remove_tool",
    ("fast_agent.agents.workflow.iterative_planner", "IterativePlanner"): "plan_telemetry",
    ("fastmcp.tools", "FunctionTool"): "run",
    ("fast_agent", "LlmAgent"): (
        "clear llm message_history load_message_history show_assistant_message _display_trailing_user_messages"
    ),
    ("fast_agent.agents.mcp_agent", "McpAgent"): "show_assistant_message",
    ("fast_agent.interfaces", "AgentProtocol"): "clear config llm message_history",
    ("fast_agent.llm", "fastagent_llm"): "merge_request_params",
    ("fast_agent.llm.model_database", "ModelDatabase"): (
        "get_model_params register_runtime_model_params QWEN_MULTIMODAL TEXT_ONLY"
    ),
    ("fast_agent.llm.model_factory", "ModelFactory"): "parse_model_spec",
    ("fast_agent.llm.model_info", "ModelInfo"): "supports_mime",
    ("fast_agent.llm.provider_key_manager", "ProviderKeyManager"): "get_api_key get_optional_api_key",
    ("fast_agent.core.logging.transport", "AsyncEventBus"): "_next_event",
    ("fast_agent.core", "validation"): "validate_provider_keys_post_creation",
    ("fast_agent.agents.agent_types", "AgentConfig"): "human_input elicitation_handler",
    ("fast_agent.mcp", "client_gateway"): "sse_client",
    ("fast_agent.mcp", "stdio_tracking_simple"): "stdio_client",
    ("fast_agent.mcp.client_connection", "MCPClientConnection"): (
        "call_tool list_tools read_resource get_prompt ping protocol_version session"
    ),
    ("fast_agent.ui.console", "console"): "quiet",
    ("fast_agent.ui.console", "error_console"): "file soft_wrap",
}
PARAMETERS = {
    ("fast_agent", "FastAgent", "__init__"): "config_path home no_home parse_cli_args quiet",
    ("fast_agent", "AgentHarness", "session"): "session_id agent_name",
    ("fast_agent", "HarnessSession", "generate"): "messages request_params",
    ("fast_agent.core.agent_app", "AgentApp", "attach_mcp_server"): "agent_name server_name options",
    ("fast_agent.mcp.mcp_aggregator", "MCPAttachOptions"): "startup_timeout_seconds",
}
FIELDS = {
    ("fast_agent.context", "Context"): "no_shell",
    ("fastmcp.tools", "FunctionTool"): "fn name description parameters",
    ("fast_agent", "RequestParams"): "tool_execution_handler emit_loop_progress messages template_vars",
    ("fast_agent", "PromptMessageExtended"): "role content stop_reason tool_calls tool_results channels",
    ("fast_agent.llm.model_database", "ModelParameters"): "context_window max_output_tokens tokenizes",
    ("fast_agent.config", "Settings"): "session_history llm_retries logger mcp openai anthropic",
    (
        "fast_agent.config",
        "MCPServerSettings",
    ): "url transport headers access_token load_on_start elicitation ping_interval_seconds",
}


def find(module: str, *path: str) -> object:
    found: object = importlib.import_module(module)
    for name in path:
        found = getattr(found, name)
    return found


def test_nothing_else_is_imported_from_fast_agent_and_only_by_the_engine() -> None:
    imported: dict[str, set[str]] = {}
    for path in ROOM.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fast_agent":
                assert path.is_relative_to(ROOM / "engine"), f"{path} imports fast_agent"
                imported.setdefault(str(node.module), set()).update(alias.name for alias in node.names)
            if isinstance(node, ast.Import):
                assert not any(alias.name.split(".")[0] == "fast_agent" for alias in node.names), path
    assert imported == {module: set(names.split()) for module, names in SYMBOLS.items()}


@pytest.mark.parametrize(("where", "names"), MEMBERS.items())
def test_members(where: tuple[str, str], names: str) -> None:
    holder = find(*where)
    known = {*dir(holder), *getattr(holder, "__annotations__", {})}
    assert set(names.split()) <= known


@pytest.mark.parametrize(("where", "names"), PARAMETERS.items())
def test_parameters(where: tuple[str, ...], names: str) -> None:
    function = find(*where)
    assert callable(function)
    assert set(names.split()) <= inspect.signature(function).parameters.keys()


@pytest.mark.parametrize(("where", "names"), FIELDS.items())
def test_fields(where: tuple[str, str], names: str) -> None:
    assert set(names.split()) <= dict(vars(find(*where))["__pydantic_fields__"]).keys()
