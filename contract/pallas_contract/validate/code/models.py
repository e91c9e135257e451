"""Rules over models as they are written: one that fast-agent knows, and a key for its provider."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Set

from pallas_contract.codes import Code
from pallas_contract.definitions.definition import Definition
from pallas_contract.fleet import engine_table, providers
from pallas_contract.fleet.fastagent import VARIABLE, Config
from pallas_contract.fleet.providers import ModelProvider
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.problems import Problem, Where
from pallas_contract.validate.suggestions import Suggestions

_BEDROCK = re.compile(r"([a-z]{2,6}\.)?(amazon|anthropic|meta|mistral|cohere|ai21|deepseek|openai|qwen|writer)\..+")
_REASONING = re.compile(r"(?P<model>.+)\.(?P<effort>minimal|low|medium|high|xhigh|max|none)")
_MOST_NAMES = 8
"""Agents that one message names."""
_LOCAL = frozenset({"ollama", "vllm", "lmstudio", "lm-studio", "llamacpp", "llama.cpp", "localai", "sglang", "local"})
_WITH_A_MODEL = frozenset({"agent", "smart"})
"""Kinds that fast-agent never starts without a model. Others, as chains, may have none of their own."""
_OWN_SERVERS = frozenset({"openai"})
"""APIs of which people run servers that ask for no key; whoever passes on Anthropic's wants one all the same."""
VARIABLES = frozenset({"FAST_AGENT_MODEL", "DEFAULT_MODEL"})
"""Variables by which fast-agent takes a default model."""


def problems(model: str, where: Where, suggestions: Suggestions) -> Iterator[Problem]:
    """Yield a problem when fast-agent knows no such model or provider.

    A model behind a provider's name may be new; a bare name must be one that fast-agent knows.
    """
    written = model.partition("?")[0].strip()
    if not written or written.startswith("$") or VARIABLE.search(model):
        return
    effort = _REASONING.fullmatch(written)
    prefix, rest = providers.split(written)
    if effort:
        hint = f"write `{effort['model']}?reasoning={effort['effort']}`"
        yield Problem(where, "fast-agent reads no effort behind a dot", hint, code=Code.UNKNOWN_MODEL)
    elif prefix in providers.OFFLINE or (prefix and rest) or _known(written):
        return
    elif prefix:
        yield Problem(
            where, f"names the provider `{prefix}` and no model", f"write `{prefix}.MODEL`", code=Code.UNKNOWN_MODEL
        )
    else:
        yield Problem(where, *_unknown(written, suggestions), code=Code.UNKNOWN_MODEL)


def _known(written: str) -> bool:
    models = engine_table.models()
    names = (written, written.casefold(), written.rpartition(":")[0])
    return any(name in models for name in names) or _BEDROCK.fullmatch(written) is not None


def _unknown(written: str, suggestions: Suggestions) -> tuple[str, str]:
    prefix = re.split(r"[./:]", written, maxsplit=1)[0]
    if prefix.lower() in _LOCAL:
        hint = (
            f"write `generic.{written[len(prefix) + 1 :] or 'MODEL'}`, and `generic: {{base_url: http://HOST:PORT/v1}}`"
        )
        return f"fast-agent knows no provider `{prefix}`", hint
    others = sorted(providers.PREFIXES - providers.OFFLINE)
    if prefix != written:
        nearest = suggestions.hint(prefix, others)
        if nearest.startswith("did you mean"):
            return f"fast-agent knows no provider `{prefix}`", nearest
    nearest = suggestions.hint(written, sorted(engine_table.models()))
    hint = f"{nearest} " if nearest.startswith("did you mean") else ""
    return f"fast-agent knows no model `{written}`", f"{hint}one it does not know needs its provider: `PROVIDER.MODEL`"


def without_key(fleet: ResolvedFleet, config: Config, variables: Collection[str]) -> Iterator[Problem]:
    """Yield a warning when nothing gives the key of the provider of `default_model` to some agents, which it names."""
    provider = provider_of(config.default_model)
    if provider is None or not provider.key_variable or config.model_position is None:
        return
    if config.reached & set(provider.prefixes):
        return
    key = provider.key_variable
    enough = {key, provider.url_variable} if provider.api in _OWN_SERVERS else {key}
    without = []
    for name, agent in fleet.agents.items():
        peers = [fleet.services[peer] for peer in agent.depends_on if peer in fleet.services]
        brought = any(service.provides == provider.api for service in peers)
        if not brought and not enough & {*variables, *agent.env, *agent.secrets}:
            without.append(f"`{name}`")
    if without:
        more = f" and {len(without) - _MOST_NAMES} more agents" if len(without) > _MOST_NAMES else ""
        message = f"nothing gives the key of `{provider.name}` ({key}) to {', '.join(without[:_MOST_NAMES])}{more}"
        written = f"defaults: {{secrets: {{{key}: {{file: secrets/{key}.txt}}}}}}"
        hint = f"write `{written}` in agents.yaml, or {key}=... in .env"
        yield Problem(config.model_position, message, hint, "warning", code=Code.MODEL_WITHOUT_KEY)


def without_model(definition: Definition, config: Config, given: Set[str]) -> Iterator[Problem]:
    """Yield a problem when nothing says which model an agent runs on: fast-agent does not start it.

    `given` holds the names of the variables that the agent has.
    """
    named = config.default_model or definition.model != "" or VARIABLES & given
    if not named and definition.kind in _WITH_A_MODEL:
        yield Problem(definition.where, *no_model(config.file), code=Code.NO_MODEL)


def no_model(file: str) -> tuple[str, str]:
    """Return message and hint for an agent without a model; `file` is the name of the configuration."""
    hint = (
        f"write `default_model: PROVIDER.MODEL` in {file} (`passthrough` repeats the message, without a key), or "
        "`defaults: {env: {FAST_AGENT_MODEL: PROVIDER.MODEL}}` in agents.yaml"
    )
    return "names no model, and there is no default_model: it will not start", hint


def prefix_of(model: str) -> str:
    """Return the prefix of a model as it is written, or the provider of a bare name; empty where nobody knows that."""
    written = model.partition("?")[0].strip()
    return providers.split(written)[0] or engine_table.models().get(written, "")


def provider_of(model: str) -> ModelProvider | None:
    """Return the row of the provider of a model as it is written, None for one without a row."""
    return providers.find(prefix_of(model))
