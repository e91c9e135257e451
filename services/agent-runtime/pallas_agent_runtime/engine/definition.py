"""The user's agent definition: found, imported and checked; and the model it runs on made known to fast-agent."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fast_agent import FastAgent
from fast_agent.config import get_settings
from fast_agent.core.exceptions import FastAgentError
from fast_agent.core.model_resolution import resolve_model_reference
from fast_agent.llm.model_database import ModelDatabase, ModelParameters
from fast_agent.llm.model_factory import ModelFactory
from pydantic import ValidationError

from pallas_agent_runtime.config.settings import Settings
from pallas_agent_runtime.engine import tool_policy, user_code
from pallas_agent_runtime.engine.patches import kit_configured
from pallas_contract import extras
from pallas_contract.codes import Code
from pallas_contract.fleet import fastagent_files, providers
from pallas_contract.fleet.fastagent import Capabilities
from pallas_contract.problems import Problem, Refused, Where
from pallas_contract.validate.code import models

DISTRIBUTION = "fast-agent-mcp"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The user's FastAgent application and the name its definition gives to the agent that is served."""

    app: FastAgent
    target: str

    @property
    def servers(self) -> frozenset[str]:
        """Names of the MCP servers that any agent of the application uses."""
        return frozenset(server for data in self.app.agents.values() for server in data["config"].servers)


_LATER = (
    "anyio._backends._asyncio",
    "encodings.idna",
    "fast_agent.core.agent_card_loader",
    "fast_agent.core.environment_lifecycle",
    "fast_agent.history.compaction",
    "fast_agent.hooks.compaction",
    "fast_agent.llm.internal.passthrough",
    "fast_agent.llm.model_info",
    "fast_agent.plugins.post_user_turn",
    "fast_agent.tools.attach_media",
    "fast_agent.tools.composite_filesystem_runtime",
    "fast_agent.tools.environment_filesystem_runtime",
    "fast_agent.tools.local_filesystem_runtime",
    "fast_agent.ui.progress_display",
    "httpcore",
)
_NEED_A_MODEL = frozenset({"basic", "llm"})
"""Types of agents, as fast-agent calls them, that it never makes without a model; `agent` and `smart` become these."""
_CLIENTS = {
    "anthropic": "fast_agent.llm.provider.anthropic.llm_anthropic",
    "google": "fast_agent.llm.provider.google.llm_google_native",
    "openai": "fast_agent.llm.provider.openai.llm_openai",
}
"""Modules that are imported with the first agent; and with the first that runs on a provider, by its name."""


def preload(provider: str) -> None:
    """Import what is otherwise imported with the first agent, on a model of `provider` where that is known."""
    for module in (*_LATER, *filter(None, [_CLIENTS.get(provider)])):
        with contextlib.suppress(ImportError):  # then the agent does without as well, or says so
            importlib.import_module(module)


def load(settings: Settings) -> Loaded:
    """Import the module, or read the card, of the agent.

    Raises:
        Refused: there is no usable agent in it.
    """
    agent = settings.agent
    keys = ("agents", settings.name, "module" if agent.module else "card")
    _check_configuration(settings.project)
    try:
        app = _from_module(settings, agent.module) if agent.module else _from_card(settings, str(agent.card))
    except FastAgentError as error:
        message = f"fast-agent refuses it: {said(error)}"
        hint = f"correct it in {agent.card or f'`{agent.module}`'}"
        code = Code.FAST_AGENT_REFUSES
        raise Refused([settings.tree.problem(*keys, message=message, hint=hint, code=code)]) from None
    tool_policy.one_tool_each((data["config"] for data in app.agents.values()), settings.subagents)
    return Loaded(app, _target(app, settings, keys))


def _check_configuration(project: Path) -> None:
    """Read the configuration before any code of the user does, so that its mistakes are told as such.

    Raises:
        Refused: fast-agent does not take it; without the values, one of which may be a secret.
    """
    try:
        get_settings()
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False, include_context=False)
        file = fastagent_files.config(project) or Path(fastagent_files.CONFIG[0])
        reasons = [(Where(file.name, field=".".join(map(str, entry["loc"]))), entry["msg"]) for entry in details]
        hint = "it stands there or in the secrets file"
        raise Refused(
            Problem(where, f"fast-agent refuses it: {message}", hint, code=Code.FAST_AGENT_REFUSES)
            for where, message in reasons
        ) from None


def _from_module(settings: Settings, name: str) -> FastAgent:
    """Return the `fast` of a module, else the only FastAgent in it, whatever it is called."""
    with kit_configured(name):
        module = user_code.load_module(settings, name)
    fast = getattr(module, "fast", None)
    if isinstance(fast, FastAgent):
        return fast
    apps = {variable: value for variable, value in vars(module).items() if isinstance(value, FastAgent)}
    if fast is None and len({id(app) for app in apps.values()}) == 1:  # `agents = fast_agents = FastAgent(...)` is one
        return next(iter(apps.values()))
    hint = 'define it: fast = FastAgent("name")'
    if fast is not None:
        message = f"`fast` in `{name}` is no FastAgent"
    elif apps:
        message = f"`{name}` has several FastAgents: {', '.join(sorted(apps))}"
        hint = "call the one that is served `fast`"
    else:
        message = f"`{name}` has no FastAgent"
    raise Refused(
        [settings.tree.problem("agents", settings.name, "module", message=message, hint=hint, code=Code.NO_FASTAGENT)]
    )


def _from_card(settings: Settings, card: str) -> FastAgent:
    keys = ("agents", settings.name, "card")
    path = settings.project / card
    if not path.is_file():
        hint = f"create it in {settings.project}, or correct the path"
        raise Refused([settings.tree.problem(*keys, message=f"no such file: {card}", hint=hint, code=Code.NO_CARD)])
    with user_code.importable(settings.project):
        app = FastAgent(settings.name, parse_cli_args=False, quiet=True)
        try:
            app.load_agents(path)
        except FastAgentError:  # `load` words it, as it does for a module
            raise
        except Exception as error:  # a card may name Python code, and YAML may be broken in many ways
            message = f"{card} cannot be read: {user_code.reason(error)}"
            hint = "mend it; `pallas-gen validate` names its lines where it can"
            raise Refused([settings.tree.problem(*keys, message=message, hint=hint, code=Code.NOT_A_CARD)]) from None
    return app


def _target(app: FastAgent, settings: Settings, keys: tuple[str, ...]) -> str:
    """Return the agent of that name, else the one that is so called in other letters, the only one, the default one."""
    defined = app.agents
    for name in (settings.name, settings.slug):
        if name in defined:
            return name
    alike = [name for name in defined if _folded(name) == _folded(settings.name)]
    if len(alike) == 1:
        return alike[0]
    default = [name for name, data in defined.items() if data["config"].default]
    if len(defined) == 1 or len(default) == 1:
        return next(iter(default or defined))
    if not defined:
        message = "defines no agent"
        hint = "decorate a function with @fast.agent(...)"
    else:
        message = f"defines {', '.join(sorted(defined))}, but not `{settings.name}`"
        hint = "name the agent in agents.yaml after the one to serve, in lower case, or mark that with default=True"
    raise Refused([settings.tree.problem(*keys, message=message, hint=hint, code=Code.AGENT_NOT_DEFINED)])


def _folded(name: str) -> str:
    """Return a name as agents.yaml can have it: lower case, one kind of hyphen."""
    return name.lower().replace("_", "-")


def resolve_model(text: str, references: Mapping[str, Mapping[str, str]] | None) -> tuple[str, str]:
    """Return prefix and model of a model as it is written, aliases and bare names as fast-agent reads them.

    `sonnet` is a model of `anthropic`, `gpt-4.1` one of `openai`. `references` are those of fast-agent's files
    (`model_references`: namespace -> key -> model), which are written `$namespace.key`. A model that fast-agent does
    not know it refuses itself, with better words, once an instance is made.
    """
    if not text or text in providers.OFFLINE:
        return text, ""
    try:
        spec = ModelFactory.parse_model_spec(resolve_model_reference(text, references))
    except FastAgentError:
        return providers.split(text)
    return spec.provider.value, spec.model_name


def prefixes(loaded: Loaded, default_model: str, references: Mapping[str, Mapping[str, str]] | None) -> frozenset[str]:
    """Return the prefixes of the models of all agents; `default_model` is for those that name none."""
    written = {data["config"].model or default_model for data in loaded.app.agents.values()}
    return frozenset(resolve_model(model, references)[0] for model in written)


def check_models(
    loaded: Loaded, settings: Settings, default_model: str, references: Mapping[str, Mapping[str, str]] | None
) -> None:
    """Check that each agent has a model, and its client is installed; `default_model` is for those that name none.

    Raises:
        Refused: one has none, or fast-agent leaves its client to an extra of its own, which is not there.
    """
    agents = loaded.app.agents.values()
    keys = ("agents", settings.name, "module" if settings.agent.module else "card")
    problems = []
    named = default_model or any(os.environ.get(variable) for variable in models.VARIABLES)
    modelless = [data for data in agents if data["type"] in _NEED_A_MODEL and not data["config"].model]
    if modelless and not named:
        file = fastagent_files.config(settings.project) or Path(fastagent_files.CONFIG[0])
        message, hint = models.no_model(file.name)
        names = ", ".join(sorted(f"`{data['config'].name}`" for data in modelless))
        problems.append(settings.tree.problem(*keys, message=f"{names} {message}", hint=hint, code=Code.NO_MODEL))
    for prefix in sorted(prefixes(loaded, default_model, references) & providers.IN_EXTRAS):
        if packages := extras.missing(prefix, distribution=DISTRIBUTION):
            names = ", ".join(packages)
            message = f"models of `{prefix}` need what is not installed: {names}"
            hint = f"pip install '{DISTRIBUTION}[{prefix}]'; for containers write {names} into requirements.txt"
            problems.append(settings.tree.problem(*keys, message=message, hint=hint, code=Code.MISSING_PACKAGE))
    if problems:
        raise Refused(problems)


def check_files(loaded: Loaded, settings: Settings) -> None:
    """Check that the files and tools are there that the agents are made from.

    Raises:
        Refused: with what is not there, or cannot be loaded.
    """
    user_code.check_files(settings, loaded.app.agents.values())


def register_model(capabilities: Capabilities, provider: str) -> bool:
    """Tell fast-agent of a model it does not know (seed 001, Model Registration); True when it was told."""
    if provider in providers.OFFLINE or not capabilities.model:
        return False
    if ModelDatabase.get_model_params(capabilities.model) is not None:
        return False
    tokens = ModelDatabase.QWEN_MULTIMODAL if capabilities.vision else ModelDatabase.TEXT_ONLY
    parameters = ModelParameters(
        context_window=capabilities.context_window,
        max_output_tokens=capabilities.max_output_tokens,
        tokenizes=list(tokens),
    )
    ModelDatabase.register_runtime_model_params(capabilities.model, parameters)
    return True


def said(error: Exception) -> str:
    """One line of an error. fast-agent's own are written for users; the text of any other may hold anything."""
    if isinstance(error, FastAgentError):
        return " ".join(f"{error.message}: {error.details}".removesuffix(": ").split())
    return type(error).__name__
