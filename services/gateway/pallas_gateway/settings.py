"""The settings of the gateway, from agents.yaml, the environment and secret files; the names are the contract's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.documents.server_json import registry_name
from pallas_contract.fleet.access_model import Gateway
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.launch import addresses, credentials, program, secret_files
from pallas_contract.problems import Problem, Refused, Where, refuse_errors
from pallas_contract.validate import load
from pallas_gateway.policy.route import Route
from pallas_gateway.state import store_urls
from pallas_service import secret_text
from pallas_service.access import token_files

MAX_BODY = 32 << 20
"""Default of `PALLAS_MAX_BODY`: as much as agents take."""
_NUMBER = re.compile(r"[1-9][0-9]{0,11}")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the gateway starts with. `warnings` are those of the fleet file."""

    fleet: ResolvedFleet
    gateway: Gateway
    host: str
    port: int
    allowed_hosts: tuple[str, ...]
    placement: addresses.Placement
    routes: Mapping[str, Route] = field(repr=False)
    """The agents that it leads to, by host name."""
    through: Mapping[str, Route] = field(repr=False)
    """Members that are reached through the gateway alone: by those who depend on them, and of `gateway.services` by
    clients too; by host name."""
    tools: Mapping[str, tuple[str, Route]] = field(repr=False)
    """Tools that services have, by name: the host name of the service, and the way to it."""
    registered: Mapping[str, str]
    """Agents outside of the file that it leads to: host name -> name in the registry's catalogue."""
    registry: str
    """URL of the registry, without a path."""
    tokens: Mapping[str, str] = field(repr=False)
    """Caller -> token that is accepted."""
    keys_file: Path | None = None
    app: Path | None = None
    """Folder of the application for people."""
    withheld: frozenset[Path] = frozenset()
    """Secret files of the fleet, which are served to nobody wherever they lie."""
    audit_key: bytes = field(default=b"", repr=False)
    """Empty where there is no audit."""
    state: Path = Path()
    """Folder of what it keeps over a restart."""
    store: str = field(default="", repr=False)
    """URL of PostgreSQL; empty: files in that folder."""
    counters: str = field(default="", repr=False)
    """URL of Valkey; empty: each gateway counts for itself."""
    listen_on: tuple[str, ...] = ()
    """Names of this host to listen on instead of `host`; empty: listen on `host`."""
    max_body: int = MAX_BODY
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What agents.yaml says of its environment (`env`, `secrets`), for libraries that read it."""
    warnings: tuple[Problem, ...] = ()


def read(path: Path, environ: Mapping[str, str], secrets: Path) -> Settings:
    """Return the settings from the fleet file at `path`; `secrets` is the folder of a container's secret files.

    Raises:
        Refused: the file, a variable or a secret file cannot be used, or the file has no gateway.
    """
    fleet, tree, warnings = load.load(path)
    if fleet.gateway is None:
        hint = "add `gateway: {agents: [NAME]}`, with the agents that it leads to"
        raise Refused([tree.problem(message="has no `gateway`", hint=hint, code=Code.NO_GATEWAY)])
    env = {**program.gateway(fleet, fleet.gateway, "local").env, **environ}
    problems: list[Problem] = []
    host, port = _bind(env[names.ENV_BIND], problems)
    placement = _placement(env, problems)
    max_body = _max_body(env, problems)
    refuse_errors(problems)
    project = path.resolve().parent
    known = secret_files.of_gateway(fleet)
    routes = _routes(fleet, tree, placement=placement, project=project, secrets=secrets)
    tokens = token_files.read(fleet.gateway.access.tokens, known, tree, project=project, secrets=secrets)
    _apart(tokens, routes, known, tree)
    through = {names.slug(name): _inner(fleet, name, placement, routes) for name in fleet.through}
    led_to = {names.slug(name) for name in fleet.gateway.agents}
    jwks = (fleet.gateway.access.jwt and fleet.gateway.access.jwt.jwks_file) or ""
    return Settings(
        fleet=fleet,
        gateway=fleet.gateway,
        host=host,
        port=port,
        allowed_hosts=_listed(env[names.ENV_ALLOWED_HOSTS]),
        placement=placement,
        routes={host: route for host, route in routes.items() if host in led_to},
        through={host: route for host, route in through.items() if host not in led_to},
        tools={tool: _service(fleet, name, placement) for tool, name in fleet.gateway.tools.items()},
        registered={names.slug(name): registry_name(fleet, name) for name in fleet.gateway.registered},
        registry=addresses.registry_url(fleet, placement),
        tokens=tokens,
        keys_file=secret_text.locate(names.KEYS_FILE, jwks, project, secrets) if jwks else None,
        app=project / fleet.gateway.app if fleet.gateway.app else None,
        withheld=frozenset(project / secret.file for secret in secret_files.of_fleet(fleet)),
        audit_key=_audit_key(fleet.gateway, tree, project=project, secrets=secrets),
        state=project / env.get(names.ENV_GATEWAY_STATE, ""),
        store=store_urls.read(fleet, "store", tree, placement=placement, project=project, secrets=secrets),
        counters=store_urls.read(fleet, "counters", tree, placement=placement, project=project, secrets=secrets),
        listen_on=_listed(env.get(names.ENV_LISTEN_ON, "")),
        max_body=max_body,
        variables={
            **fleet.gateway.env,
            **secret_text.variables(
                secret_files.gateway_variables(fleet), tree, environ, project=project, secrets=secrets
            ),
        },
        warnings=tuple(warnings),
    )


def _routes(
    fleet: ResolvedFleet,
    tree: Source,
    *,
    placement: addresses.Placement,
    project: Path,
    secrets: Path,
) -> dict[str, Route]:
    """Return the routes with the gateway's own tokens, which it reads as any caller's."""
    presented = credentials.presented_by_gateway(fleet)
    written = {secret.target: secret for secret in secret_files.of_gateway(fleet)}
    routes = {}
    problems: list[Problem] = []
    for agent in fleet.behind_gateway:
        token = ""
        if agent in presented:
            secret = written[names.call_token(agent)]
            path = secret_text.locate(secret.target, secret.file, project, secrets)
            token, wrong = token_files.from_file(path, secret.file)
            if wrong:
                problems.append(
                    tree.problem(
                        *secret.path, message=f"{secret.file} {wrong[0]}", hint=wrong[1], code=Code.SECRET_FILE
                    )
                )
        routes[names.slug(agent)] = Route(addresses.mcp_url(fleet, agent, placement), token)
    refuse_errors(problems)
    return routes


def _audit_key(gateway: Gateway, tree: Source, *, project: Path, secrets: Path) -> bytes:
    if gateway.audit is None:
        return b""
    file = gateway.audit.key.file
    key, wrong = token_files.from_file(secret_text.locate(names.AUDIT_KEY, file, project, secrets), file)
    if wrong:
        problem = tree.problem(
            "gateway", "audit", "key", "file", message=f"{file} {wrong[0]}", hint=wrong[1], code=Code.SECRET_FILE
        )
        raise Refused([problem])
    return key.encode()


def _service(fleet: ResolvedFleet, name: str, placement: addresses.Placement) -> tuple[str, Route]:
    return names.slug(name), Route(addresses.mcp_url(fleet, name, placement))


def _inner(fleet: ResolvedFleet, name: str, placement: addresses.Placement, routes: Mapping[str, Route]) -> Route:
    """Return the way to a member that is reached through the gateway alone, open to those who depend on it."""
    callers: frozenset[str] | None
    callers = frozenset(agent.name for agent in fleet.agents.values() if name in agent.depends_on)
    if fleet.gateway and name in fleet.gateway.services:
        callers = None
    if name in fleet.agents:
        return replace(routes[names.slug(name)], callers=callers)
    return Route(addresses.mcp_url(fleet, name, placement), kind="service", callers=callers)


def _apart(
    tokens: Mapping[str, str], routes: Mapping[str, Route], known: Iterable[secret_files.Secret], tree: Source
) -> None:
    """Refuse a caller whose token is one of the gateway's own: agents would take that caller for the gateway."""
    own = {route.token: agent for agent, route in routes.items()}
    problems = []
    for secret in known:
        caller = next((name for name in tokens if names.token_file(name) == secret.target), "")
        if caller and tokens[caller] in own:
            message = f"{secret.file} has the token that the gateway shows to `{own[tokens[caller]]}`"
            problems.append(
                tree.problem(*secret.path, message=message, hint="give each its own token", code=Code.SAME_TOKEN)
            )
    refuse_errors(problems)


def _bind(text: str, problems: list[Problem]) -> tuple[str, int]:
    # the last colon: an IPv6 host has others before it
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        problems.append(_problem(names.ENV_BIND, f"must be `address:port`, not {text[:80]!r}"))
        return "", 0
    return host.removeprefix("[").removesuffix("]"), int(port)


def _placement(env: Mapping[str, str], problems: list[Problem]) -> addresses.Placement:
    try:
        return addresses.placement(env)
    except ValueError as error:
        problems.append(_problem(names.ENV_PLACEMENT, str(error)))
        return "local"


def _max_body(env: Mapping[str, str], problems: list[Problem]) -> int:
    text = env.get(names.ENV_MAX_BODY) or str(MAX_BODY)
    if _NUMBER.fullmatch(text):
        return int(text)
    problems.append(_problem(names.ENV_MAX_BODY, f"must be a whole number of at least 1, not {text[:80]!r}"))
    return MAX_BODY


def _listed(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _problem(variable: str, message: str) -> Problem:
    return Problem(Where(f"${variable}"), message, code=Code.WRONG_VARIABLE)
