"""The model providers that the kit knows, one row each: plain data, for the generator and the runtime alike.

A new provider is one row of `PROVIDERS`; one whose API is like no other's also needs a check in
`pallas_agent_runtime.health.providers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pallas_contract import names

Api = Literal["anthropic", "openai"]
"""The shape of the API that lists a provider's models."""


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """A model provider: names, where its key and its address come from, how it is checked and traced."""

    name: str
    """Prefix of a model (`openai.gpt-4.1`), and section of fast-agent's files."""
    instrumentor: str
    """`module:class` below `opentelemetry.instrumentation`, for the client library that fast-agent calls it with."""
    api: Api | None = None
    """None: preflight does not ask it, and fast-agent finds its key."""
    key_variable: str = ""
    url_variable: str = ""
    default_url: str = ""
    """Address without a trailing slash, where neither a file nor the variable gives one."""
    explicit_url: bool = False
    """Whether `base_url` is written for fast-agent even where the user wrote none."""
    aliases: tuple[str, ...] = ()
    """Other prefixes of models that are reached with the same key at the same address."""

    @property
    def prefixes(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)


PROVIDERS = (
    ModelProvider(
        "anthropic",
        instrumentor="anthropic:AnthropicInstrumentor",
        api="anthropic",
        key_variable="ANTHROPIC_API_KEY",
        url_variable="ANTHROPIC_BASE_URL",
        default_url="https://api.anthropic.com",
    ),
    ModelProvider("google", instrumentor="google_genai:GoogleGenAiSdkInstrumentor"),
    ModelProvider(
        "openai",
        instrumentor="openai:OpenAIInstrumentor",
        api="openai",
        key_variable="OPENAI_API_KEY",
        url_variable=names.ENV_OPENAI_BASE_URL,
        default_url="https://api.openai.com/v1",
        explicit_url=True,
        aliases=("responses",),
    ),
)
CHECKED = tuple(provider for provider in PROVIDERS if provider.api)
"""Those whose keys and models are checked at start (seed 001, Startup Preflight)."""

DEFAULT_INSTRUMENTOR = "openai:OpenAIInstrumentor"
"""fast-agent reaches every provider without a row through OpenAI's client."""

OFFLINE = frozenset({"fast-agent", "passthrough", "playback", "silent", "slow"})
"""fast-agent's built-in models, which call nobody, and the prefix they may be written with."""

_UNCHECKED = frozenset(
    {"aliyun", "anthropic-vertex", "azure", "bedrock", "codexresponses", "copilot", "deepseek", "generic", "googleoai"}
    | {"groq", "hf", "metaai", "moonshot", "openresponses", "openrouter", "tensorzero", "xai", "zai"}
)
"""Prefixes that fast-agent knows and that have no row: their keys and models are not checked."""
IN_EXTRAS = frozenset({"bedrock"})
"""Those whose client fast-agent leaves to an extra of its own, which has the same name."""
PREFIXES = OFFLINE | _UNCHECKED | {prefix for provider in PROVIDERS for prefix in provider.prefixes}


def find(prefix: str) -> ModelProvider | None:
    """Return the row of a model's prefix, None where there is none."""
    return next((provider for provider in PROVIDERS if prefix in provider.prefixes), None)


def split(model: str) -> tuple[str, str]:
    """Return the prefix of a written model, and the rest: `openai.gpt-4.1` is `openai` and `gpt-4.1`.

    A bare name has no prefix (`gpt-4.1`, `sonnet`): which provider has it, fast-agent alone knows. A built-in model is
    its own prefix (`passthrough`).
    """
    prefix, _, rest = model.partition(".")
    if prefix in PREFIXES:
        return prefix, rest
    prefix, _, rest = model.partition("/")
    return (prefix, rest) if rest and prefix in PREFIXES else ("", model)
