"""fast-agent as an engine: the only package that imports it. Everything else sees what is exported here.

Public API it relies on, each named in tests/agent_runtime/test_engine_symbols.py: `FastAgent` (`agents`, `app`,
`harness`, `load_agents`), `Core` (`initialize`, `context` with `no_shell`), `AgentHarness.session`, `HarnessSession`
(`agent_app`, `generate`, `delete`), `AgentApp` (`registered_agents`, `attach_mcp_server`, `detach_mcp_server`,
`list_attached_mcp_servers`), the agents' `clear`, `config`, `llm`, `message_history`, `load_message_history`,
`add_tool`, `call_tool`, `list_tools` and `remove_tool`, a planner's `plan_telemetry`, `PromptMessageExtended`,
`RequestParams`, `LlmStopReason`, `FastAgentError`, `ModelDatabase` with `ModelParameters`, `ModelFactory` with
`parse_model_spec`, `resolve_model_reference`, the form of human input (`get_elicitation_fastmcp_tool`,
`run_elicitation_form`, `set_elicitation_input_callback`), a configuration's `human_input` and `elicitation_handler`,
the `console` and `error_console`, the loader of tools that are functions in files (`load_function_from_spec`,
`build_default_function_tool`), and `to_json` and `from_json` of messages; and fastmcp's `FunctionTool`, which
fast-agent takes functions as.

Nothing private; nothing patched but the constructor of `FastAgent`, while a module of the user is imported, the
look-up and check of providers' keys (`patches`: `ProviderKeyManager` with `get_api_key` and `get_optional_api_key`,
`validate_provider_keys_post_creation`), three methods of `MCPClientConnection`, to know for which turn a request to a
server is made (`human_input`), a fourth, `list_tools`, to know which one is to which program (`patches`), of the MCP
SDK the function that starts a program, to hear its last words, and the method that ends a session,
`terminate_session` of `StreamableHTTPTransport`, to wait for it no longer than it is worth (`patches`), what makes
the clients of MCP servers and reads from them, for a limit to their answers (`answers.limits`: `post_writer` of
`StreamableHTTPTransport`, `sse_client` where fast-agent calls it, `sse_within_origin`, `EventSource`;
`answers.program_lines`: `stdio_client` where fast-agent calls it, and the `TextReceiveStream` of the SDK;
`answers.models`: `send` of httpx2's client, for what the SDKs of OpenAI and Anthropic read), the constructor of that
client, to read certificates once for many (`patches`), and, where the installed version has them, the copies of
messages and the merge of parameters (`copies`) and what prepares messages for the display (`terminal`:
`show_assistant_message` of `LlmAgent` and `McpAgent`, and `_display_trailing_user_messages`).
"""

from fast_agent.mcp.prompt_serialization import from_json, to_json

from pallas_agent_runtime.engine.answers.limits import bounded
from pallas_agent_runtime.engine.answers.models import bounded as models_bounded
from pallas_agent_runtime.engine.connect import Programs
from pallas_agent_runtime.engine.definition import (
    Loaded,
    check_files,
    check_models,
    load,
    prefixes,
    preload,
    register_model,
    resolve_model,
)
from pallas_agent_runtime.engine.forwarding import Forwarding
from pallas_agent_runtime.engine.patches import certificates_kept, hurried, resting
from pallas_agent_runtime.engine.terminal import silence
from pallas_agent_runtime.engine.turns import Engine, EngineFailed, weigh

__all__ = [
    "Engine",
    "EngineFailed",
    "Forwarding",
    "Loaded",
    "Programs",
    "bounded",
    "certificates_kept",
    "check_files",
    "check_models",
    "from_json",
    "hurried",
    "load",
    "models_bounded",
    "prefixes",
    "preload",
    "register_model",
    "resolve_model",
    "resting",
    "silence",
    "to_json",
    "weigh",
]
