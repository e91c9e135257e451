"""What fast-agent and others import for every agent, and next to none uses: imported when it is used.

Found by how the importers named here use each name: as a function that is called, as a class that is instantiated or
that `isinstance` asks for, one as a table that is looked into. None is caught, matched, or in an annotation that
anybody evaluates. Two packages are late as a whole: openai's messages, 360 modules that `openai` imports to hand on,
where a request imports those that it is made of. With another version look at the uses anew:
tests/agent_runtime/test_unused_imports.py compares the versions with the lock.
"""

from __future__ import annotations

from pallas_service.late_imports import Distribution, Late, StandardLibrary, install


def _late(module: str, names: str = "", importers: str = "", **elsewhere: str) -> Late:
    return Late(module, frozenset(names.split()), tuple(importers.split()), elsewhere)


DISTRIBUTIONS = (
    Distribution(
        "fast_agent_mcp",
        "0.10.46",
        (
            _late("fast_agent.a2a.config", "A2AAgentConfig", "fast_agent.core.agent_card_loader"),
            _late("fast_agent.commands.harness", "execute_harness_command", "fast_agent."),
            _late(
                "fast_agent.llm.structured_schema",
                "validate_json_instance validate_json_schema_definition",
                "fast_agent.",
            ),
            _late("fast_agent.marketplace.git_sources"),
            _late(
                "fast_agent.mcp.oauth_client",
                "OAuthEvent OAuthEventHandler OAuthFlowCancelledError build_oauth_provider",
                "fast_agent.mcp.client_gateway fast_agent.mcp.mcp_connection_manager",
            ),
            _late(
                "fast_agent.skills.mcp_registry",
                "McpSkillRegistry scan_mcp_skill_registry server_supports_directory_read server_supports_mcp_skills",
                "fast_agent.mcp.mcp_aggregator",
            ),
            _late(
                "fast_agent.tools.web_search",
                "SearchCommands",
                "fast_agent.tools.codex_web_search",
                WEB_SEARCH_DESCRIPTION="fast_agent.tools.web_search.schema",
                WebSearchError="fast_agent.tools.web_search.client",
                commands_schema="fast_agent.tools.web_search.schema",
            ),
            _late(
                "fast_agent.tools.web_search.models",
                "SearchCommands SearchRequest SearchResponse",
                "fast_agent.tools.web_search.",
            ),
            _late(
                "fast_agent.ui.streaming",
                "NullStreamingHandle StreamContextBaseline StreamingHandle StreamingMessageHandle",
                "fast_agent.",
            ),
            _late("fast_agent.ui.markdown", "build_markdown_renderable prepare_markdown_content", "fast_agent."),
        ),
    ),
    Distribution("attrs", "26.1.0", (_late("attr", "ib", "rich.pretty"),)),
    Distribution("filelock", "4.0.12", (_late("filelock", "FileLock", "fast_agent.", Timeout="filelock._error"),)),
    Distribution(
        "httpx",
        "0.28.1",
        (
            _late("httpx", "AsyncClient Timeout", "fast_agent.tools.web_search.client"),
            _late("httpx._main", "main", "httpx"),
        ),
    ),
    Distribution("markdown_it_py", "4.3.0", (_late("markdown_it", "MarkdownIt", "fast_agent. rich."),)),
    Distribution(
        "mcp",
        "2.3.0",
        (
            _late(
                "mcp.server.auth.routes",
                "build_resource_metadata_url cors_middleware create_auth_routes create_protected_resource_routes",
                "mcp. pallas_service.access.gate",
            ),
            _late(
                "mcp.server",
                CacheHint="mcp.server.caching",
                InitializationOptions="mcp.server.models",
                NotificationOptions="mcp.server.lowlevel",
                Server="mcp.server.lowlevel",
                ServerRequestContext="mcp.server.context",
            ),
            _late("mcp.server.mcpserver", "MCPServer", "mcp.client."),
        ),
    ),
    Distribution(
        "openai",
        "3.24.0",
        (_late("openai.types"), Late("openai.types.responses", alone=frozenset({"function_tool_param"}))),
    ),
    Distribution("pillow", "13.0.0", (_late("PIL.Image"),)),
    Distribution(
        "rich",
        "15.0.0",
        (
            _late("rich._emoji_codes", "EMOJI", "rich._emoji_replace"),
            _late("rich.syntax", "Syntax SyntaxPosition", "fast_agent. rich."),
            _late("rich.traceback", "Traceback", "structlog."),
        ),
    ),
    Distribution("uvicorn", "0.54.0", (_late("uvicorn.main", "main run", "uvicorn", Server="uvicorn.server"),)),
)
STANDARD_LIBRARY = StandardLibrary(
    "python",
    "3.13",
    (
        _late("difflib", "unified_diff", "fast_agent.ui.edit_file_preview"),
        _late("hashlib"),
        _late("hmac", "compare_digest", "secrets"),
        _late("html", "escape", "fast_agent.skills.registry"),
        _late("logging.config"),
    ),
)
"""OpenSSL's digests, which hashlib and hmac bring along, take 1.8 MB; who digests has them."""
ALL = (*DISTRIBUTIONS, STANDARD_LIBRARY)


def defer() -> None:
    """Import them late from now on."""
    install(ALL)
