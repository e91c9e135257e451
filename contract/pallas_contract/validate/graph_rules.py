"""Rules over several keys at once: names, ports, edges, cycles, and one way to run each member."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.fleet.model import Service
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.launch import addresses, credentials
from pallas_contract.problems import Problem
from pallas_contract.validate import access_rules, cycles
from pallas_contract.validate.entry import gateway_rules, registration_rules, through_rules
from pallas_contract.validate.suggestions import Suggestions


def problems(fleet: ResolvedFleet, tree: Source, outside: Container[str] = ()) -> Iterator[Problem]:
    """Yield a problem per cross-agent rule that `fleet` breaks, placed in `tree`.

    `outside` are the names of servers that fast-agent's configuration has.
    """
    yield from _names(fleet, tree)
    yield from _ports(fleet, tree)
    yield from _edges(fleet, tree, outside)
    yield from _cycles(fleet, tree)
    yield from _agents(fleet, tree)
    yield from _variables(fleet, tree)
    yield from _services(fleet, tree)
    yield from registration_rules.problems(fleet, tree)
    yield from access_rules.problems(fleet, tree)
    yield from gateway_rules.problems(fleet, tree)
    yield from through_rules.problems(fleet, tree)
    yield from _telemetry(fleet, tree)


def without_process(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    """Yield a problem per service that `pallas` can neither start nor find."""
    for name, service in fleet.services.items():
        if service.image and not service.command and not service.url:
            message = "has an image only, and `pallas` starts no containers"
            hint = "add `command: [...]` to start it as a process, or `url: http://...` where one runs"
            yield tree.problem("services", name, message=message, hint=hint, code=Code.SERVICE_WITHOUT_PROCESS)


_PRIVILEGED = 1024
_OF_IMAGES = ("entrypoint", "path", "command", "url", "health", "user", "writable")


def _members(fleet: ResolvedFleet) -> Iterator[tuple[str, str]]:
    yield from (("agents", name) for name in fleet.agents)
    yield from (("services", name) for name in fleet.services)


def _names(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    taken: dict[str, tuple[str, str]] = {}
    for kind, name in _members(fleet):
        label = names.slug(name)
        if not names.is_name(name):
            rule = f"use a-z, 0-9, `_` and `-`, starting with a letter, at most {names.MAX_NAME} characters"
            hint = f"{_fitting(name)}{rule}"
            yield tree.problem(kind, name, message=f"`{name}` cannot be a host name", hint=hint, code=Code.HOST_NAME)
        elif label in names.RESERVED:
            yield tree.problem(
                kind,
                name,
                message=f"the name `{label}` is reserved for the kit",
                hint="choose another name",
                code=Code.RESERVED_NAME,
            )
        elif label in taken:
            other = ".".join(taken[label])
            yield tree.problem(
                kind,
                name,
                message=f"has the same host name `{label}` as {other}",
                hint="rename one of them",
                code=Code.SAME_HOST_NAME,
            )
        taken.setdefault(label, (kind, name))


def _fitting(name: str) -> str:
    """Return the question whether the nearest name that fits is meant; nothing where there is none so near."""
    fit = name.lower().replace(" ", "-").replace(".", "-")
    return f"did you mean `{fit}`? " if names.is_name(fit) else ""


def _ports(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    taken = {fleet.registry_port: "registry_port"}
    for kind, name in _members(fleet):
        # Unpublished ones too: as processes all of them share one machine, and a file is good for every target.
        if kind == "services" and not addresses.is_started(fleet, name, "local"):
            continue  # only in a container of its own
        port = (fleet.agents[name] if kind == "agents" else fleet.services[name]).port
        if port in taken:
            message = f"port {port} is already used by {taken[port]}"
            yield tree.problem(kind, name, "port", message=message, hint="give each its own port", code=Code.SAME_PORT)
        elif port < _PRIVILEGED:
            message = f"only root may listen on ports below {_PRIVILEGED}, as `pallas` does with it"
            yield tree.problem(
                kind, name, "port", message=message, hint="choose a higher one", level="warning", code=Code.LOW_PORT
            )
        taken.setdefault(port, f"{kind}.{name}")


def _edges(fleet: ResolvedFleet, tree: Source, outside: Container[str]) -> Iterator[Problem]:
    members = sorted((*fleet.agents, *fleet.services))
    suggestions = Suggestions()
    for name, agent in fleet.agents.items():
        listed = tree.data["agents"][name].get("depends_on")
        for index, peer in enumerate(agent.depends_on):
            # Both forms of `depends_on` are a mapping by now; the position needs the one that was written.
            path = ("agents", name, "depends_on", index if isinstance(listed, list) else peer)
            if peer == name:
                yield tree.problem(
                    *path, message=f"`{name}` depends on itself", hint="remove it", code=Code.DEPENDS_ON_ITSELF
                )
            elif not fleet.is_member(peer) and peer in outside:
                message = f"`{peer}` is a server of fastagent.config.yaml, not of this fleet"
                hint = "remove it here, and name it among the `servers` of the agent's code"
                yield tree.problem(*path, message=message, hint=hint, code=Code.DEPENDS_ON_SERVER)
            elif not fleet.is_member(peer):
                hint = suggestions.hint(peer, members)
                yield tree.problem(
                    *path, message=f"there is no agent or service `{peer}`", hint=hint, code=Code.NO_SUCH_MEMBER
                )


def _cycles(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    """Yield one problem per cycle of hard edges, at the agent whose name sorts first in it."""
    waits = {
        name: sorted(peer for peer in agent.required if peer in fleet.agents) for name, agent in fleet.agents.items()
    }
    for cycle in cycles.cycles(waits):
        message = f"agents wait for each other: {' -> '.join([*cycle, cycle[0]])}"
        hint = "make one edge soft: `depends_on: {NAME: {required: false}}`"
        yield tree.problem("agents", cycle[0], "depends_on", message=message, hint=hint, code=Code.CYCLE)


def _agents(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    for name, agent in fleet.agents.items():
        if (agent.module is None) == (agent.card is None):
            message = "needs either `module` or `card`" if agent.module is None else "has both `module` and `card`"
            yield tree.problem(
                "agents",
                name,
                message=message,
                hint="`module: agents.NAME` or `card: agents/NAME.md`",
                code=Code.MODULE_OR_CARD,
            )
        if agent.replicas > 1 and agent.instance_scope != "request":
            message = f"{agent.replicas} replicas need `instance_scope: request`"
            hint = "a conversation lives in one replica; `request` keeps nothing between calls"
            yield tree.problem("agents", name, "replicas", message=message, hint=hint, code=Code.REPLICAS_AND_SESSIONS)
        if fleet.written.agents[name].keep_conversations and agent.instance_scope == "request":
            message = "an agent with `instance_scope: request` has no conversations"
            yield tree.problem(
                "agents",
                name,
                "keep_conversations",
                message=message,
                hint="remove one of the two",
                code=Code.NOTHING_TO_KEEP,
            )


def _services(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    """Yield a problem per service that says not exactly one way to run it, or keys that its way does not know."""
    for name, service in fleet.services.items():
        if (service.module is None) == (service.image is None):
            has = "needs either" if service.module is None else "has both"
            conjunction = "or" if service.module is None else "and"
            hint = f"`module: tools.{name}` for code of yours, `image: NAME:TAG` for a server of somebody else's"
            yield tree.problem(
                "services", name, message=f"{has} `module` {conjunction} `image`", hint=hint, code=Code.MODULE_OR_IMAGE
            )
        elif service.module:
            yield from _of_module(name, service, tree)
        else:
            yield from _of_image(name, service, tree)
        yield from _calls(fleet, name, service, tree)


def _calls(fleet: ResolvedFleet, name: str, service: Service, tree: Source) -> Iterator[Problem]:
    """Yield a problem per agent that a service cannot call back."""
    for index, agent in enumerate(service.calls):
        path = ("services", name, "calls", index)
        if agent not in fleet.agents:
            hint = Suggestions().hint(agent, sorted(fleet.agents))
            yield tree.problem(*path, message=f"there is no agent `{agent}`", hint=hint, code=Code.NO_SUCH_MEMBER)
        elif service.image:
            message = "an image is told no addresses of agents"
            yield tree.problem(*path, message=message, hint="only a `module` has `calls`", code=Code.SERVICE_CALLS)
        elif name not in fleet.agents[agent].depends_on:
            # in compose a service listens on all its networks: who is called could always call back
            message = f"`{agent}` does not depend on `{name}`, and services call only agents that do"
            hint = f"add `{name}` to agents.{agent}.depends_on, or have the agent call the service"
            yield tree.problem(*path, message=message, hint=hint, code=Code.SERVICE_CALLS)
        elif credentials.protected(fleet, agent) or fleet.agents[agent].through:
            message = f"`{agent}` asks for a token, and services have none"
            hint = (
                f"`agents.{agent}.access: {{anonymous: true}}` and `publish: false`, so that only the fleet reaches it"
            )
            if fleet.agents[agent].through:
                message = f"`{agent}` is reached through the gateway alone"
                hint = "remove it here, or `through` there"
            yield tree.problem(*path, message=message, hint=hint, code=Code.SERVICE_CALLS)


def _of_module(name: str, service: Service, tree: Source) -> Iterator[Problem]:
    for key in _OF_IMAGES:
        if key in service.model_fields_set:
            hint = "remove it, or write `image` instead of `module`"
            yield tree.problem(
                "services", name, key, message="is for a service with an `image`", hint=hint, code=Code.KEY_OF_IMAGES
            )
    if service.provides == "other":
        message = "a module is an MCP server (`mcp`) or a model (`openai`)"
        yield tree.problem(
            "services", name, "provides", message=message, hint="anything else comes as an `image`", code=Code.PROVIDES
        )


def _of_image(name: str, service: Service, tree: Source) -> Iterator[Problem]:
    if service.state:
        message = "nothing of an image outlives its container"
        hint = "remove it; or run the server elsewhere, and name it by `url`"
        yield tree.problem("services", name, "state", message=message, hint=hint, code=Code.NOTHING_TO_KEEP)
    if service.command and service.url:
        hint = "keep `command` to have it started, `url` where it runs already"
        yield tree.problem(
            "services", name, message="has both `command` and `url`", hint=hint, code=Code.COMMAND_AND_URL
        )
    if service.health and bool(service.health.path) == bool(service.health.command):
        hint = "`health: {path: /healthz}`, or `health: {command: [pg_isready]}`"
        yield tree.problem(
            "services", name, "health", message="needs either `path` or `command`", hint=hint, code=Code.HEALTH_CHECK
        )


def _variables(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    """Yield a warning per value of `env` that is written as a variable: a `$` is literal there."""
    sections: list[tuple[tuple[str, ...], Mapping[str, str]]] = [(("defaults",), fleet.written.defaults.env)]
    sections += [(("agents", name), agent.env) for name, agent in fleet.written.agents.items()]
    sections += [(("services", name), service.env) for name, service in fleet.written.services.items()]
    sections += [(("gateway",), fleet.gateway.env)] if fleet.gateway else []
    for path, env in sections:
        for key, value in env.items():
            if match := _VARIABLE.fullmatch(value):
                hint = f"write `secrets: {{{key}: {{file: secrets/{key}.txt}}}}`"
                if path[0] in _READ_DOTENV:
                    hint = f"put {match['name']}=... into .env, or {hint}"
                message = "`${...}` is not expanded here: these characters are the value"
                yield tree.problem(
                    *path, "env", key, message=message, hint=hint, level="warning", code=Code.LITERAL_VARIABLE
                )


_READ_DOTENV = ("defaults", "agents")
"""Sections about programs that read `.env`."""
_VARIABLE = re.compile(r"\$\{?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}?")


def _telemetry(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    if fleet.telemetry is None:
        return
    host = urlsplit(fleet.telemetry.otlp_endpoint).hostname
    # On the network that both share, Docker's DNS would answer with either.
    if host in names.RESERVED | {names.slug(name) for _, name in _members(fleet)}:
        message = f"`{host}` is a member of the fleet, not a collector"
        hint = "give the collector another name, and run it beside the fleet"
        yield tree.problem("telemetry", "otlp_endpoint", message=message, hint=hint, code=Code.COLLECTOR_IS_MEMBER)
