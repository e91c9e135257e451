"""Why an agent's container may reach the world: what its own code uses outside of the fleet. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.definitions.definition import Definitions
from pallas_contract.fleet import providers
from pallas_contract.fleet.access_model import Access, Gateway
from pallas_contract.fleet.fastagent import VARIABLE, Config
from pallas_contract.fleet.resolved import ResolvedAgent, ResolvedFleet
from pallas_contract.validate.code import models

EXPLICIT = "`egress: true`"
_NO_MODEL = frozenset({"a2a", "chain", "evaluator_optimizer", "maker", "parallel"})
"""Kinds of agents that only hand on: the agents they name have the models."""


def reasons(fleet: ResolvedFleet, config: Config, agent: ResolvedAgent, definitions: Definitions) -> tuple[str, ...]:
    """Return everything outside of the fleet that `agent` uses, in words; nothing where it needs no way out.

    `egress` of the fleet file has the last word. Servers come from the agent's own code; where that does not say them
    as literals, all of the configuration count, and the reason says why.
    """
    if agent.egress is not None:
        return (EXPLICIT,) if agent.egress else ()
    called = {f"its model {model}" for model in _models(fleet, config, agent, definitions)}
    return (*sorted(called), *_servers(fleet, config, definitions), *keys(agent.access))


def urls(fleet: ResolvedFleet, config: Config, agent: ResolvedAgent, definitions: Definitions) -> Iterator[str]:
    """Yield the URLs outside of the fleet that `agent` is known to call: of servers, model providers, an issuer.

    Those that are known only when it starts are left out.
    """
    candidates = [*_outside(fleet, config, definitions).values(), *_providers(fleet, config, agent, definitions)]
    if agent.access.jwt and agent.access.jwt.jwks_url:
        candidates.append(agent.access.jwt.jwks_url)
    yield from (url for url in candidates if _host(url) and not VARIABLE.search(url))


def _providers(fleet: ResolvedFleet, config: Config, agent: ResolvedAgent, definitions: Definitions) -> Iterator[str]:
    """Yield the address of the provider of each model that is called: as configured, else its default."""
    data = config.tree.data if config.tree else {}
    for model in _models(fleet, config, agent, definitions):
        if provider := models.provider_of(model):
            section = data.get(provider.name)
            configured = section.get("base_url") if isinstance(section, dict) else None
            yield str(configured or agent.env.get(provider.url_variable) or provider.default_url)


def _models(fleet: ResolvedFleet, config: Config, agent: ResolvedAgent, definitions: Definitions) -> Iterator[str]:
    """Yield the models that are called outside of the fleet."""
    own = any(peer in fleet.services and fleet.services[peer].provides == "openai" for peer in agent.depends_on)
    written = [definition.model for definition in definitions.agents if definition.kind not in _NO_MODEL]
    for model in written or ([] if definitions.agents else [""]):
        text = config.default_model if model == "" else model
        if text is None:
            yield "(known only when it starts)"
        elif text and providers.split(text)[0] not in providers.OFFLINE and not (own and _is_openai(text)):
            yield text


def _is_openai(model: str) -> bool:
    """Return whether a service of the fleet may stand in for the provider, as for one that is known at the start only.

    `sonnet` is Anthropic's: an agent on it that is kept from the world has no model.
    """
    provider = models.provider_of(model)
    return not models.prefix_of(model) or (provider is not None and provider.url_variable == names.ENV_OPENAI_BASE_URL)


def _servers(fleet: ResolvedFleet, config: Config, definitions: Definitions) -> Iterator[str]:
    outside = _outside(fleet, config, definitions)
    why = _unclear(definitions)
    if why and outside:
        yield f"all servers of the configuration count, because {why}"
    yield from (f"its server `{name}` ({_origin(url)})" for name, url in sorted(outside.items()))
    urls = sorted({url for definition in definitions.agents for url in definition.urls})
    yield from (f"its card names {_origin(url)}" for url in urls if _is_outside(fleet, "", url))


def _outside(fleet: ResolvedFleet, config: Config, definitions: Definitions) -> dict[str, str]:
    """Return the URL of each server outside of the fleet that counts: of all where nobody can read which are used."""
    outside = {name: url for name, url in config.servers.items() if url and _is_outside(fleet, name, url)}
    if _unclear(definitions):
        return outside
    return {name: url for name, url in outside.items() if name in definitions.servers}


def _is_outside(fleet: ResolvedFleet, name: str, url: str) -> bool:
    host = _host(url)
    return not fleet.is_member(name) and host not in names.LOCAL_HOSTS and host not in fleet.slugs


def _unclear(definitions: Definitions) -> str:
    """Return why the servers are not known, empty where they are."""
    if definitions.unclear:
        first = min(definitions.unclear)
        return f"{first.where}: {first.message}" if first.where.line else f"{first.where} {first.message}"
    return "" if definitions.agents else "its module defines no agent where that can be read"


def keys(access: Access) -> Iterator[str]:
    """Yield the reason that lies in the keys of an issuer, where they are to be fetched."""
    jwt = access.jwt
    if jwt is not None and jwt.jwks_url is not None:
        yield f"the keys of its callers' tokens ({_origin(jwt.jwks_url)})"


def stores(gateway: Gateway) -> Iterator[str]:
    """Yield the reason that lies in each database of the gateway outside of the fleet; its address is a secret."""
    for key, store in (("store", gateway.store), ("counters", gateway.counters)):
        if store and not store.service:
            yield f"`gateway.{key}`"


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _origin(url: str) -> str:
    """Return scheme, host and port of a URL: the rest of it may be a secret."""
    if VARIABLE.search(url) or not _host(url):
        return "a URL known only when it starts"
    parts = urlsplit(url)
    try:
        _ = parts.port
    except ValueError:  # a password with a slash in it: what stands before that is half of it
        return f"{parts.scheme}://{parts.hostname}"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
