"""From the path of agents.yaml to everything one agent needs to start; nothing of fast-agent is imported for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, MutableMapping, Set
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from pallas_agent_runtime.config import environment, fastagent_yaml, interpolation, settings
from pallas_agent_runtime.config.fastagent_yaml import Built
from pallas_agent_runtime.config.settings import Settings
from pallas_agent_runtime.health.program_reason import ProgramReasons
from pallas_contract import names
from pallas_contract.fleet import fastagent, fastagent_files, skills, source
from pallas_contract.fleet.fastagent import Capabilities, Config
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.launch import credentials, secret_files
from pallas_contract.probe.probe import Target
from pallas_contract.problems import Problem, refuse_errors
from pallas_contract.validate import access_rules, load, plain_secrets, secret_shapes
from pallas_service import secret_text
from pallas_service.access import token_files


@dataclass(frozen=True, slots=True)
class Prepared:
    """An agent ready to be started."""

    settings: Settings
    config: Built
    default_model: str
    """As it is written; which provider has it, fast-agent says."""
    model: Capabilities
    """What the model is registered with; the defaults of seed 001 where the project declares nothing."""
    published: Capabilities | None
    """What the project declares, for the registry entry."""
    endpoints: dict[str, Target]
    """Every configured HTTP server by name, peers included."""
    oauth: frozenset[str]
    """Those at which fast-agent logs in by itself."""
    programs: frozenset[str]
    """The configured servers that the agent starts itself."""
    reasons: ProgramReasons
    """Words for those of them that do not start."""
    warnings: tuple[Problem, ...]
    keys_file: Path | None
    """Where the issuer's keys are, when they are in a file."""
    tokens: dict[str, str] = field(repr=False)
    """Caller -> the static token that is accepted from it."""


def read_fleet(path: Path) -> tuple[ResolvedFleet, Source, list[Problem]]:
    """Read agents.yaml as `load.load` does; text that this process, or its parent, has read last is not checked anew.

    Raises:
        Refused: with every error found.
    """
    fleet, tree, warnings = _fleet(source.text(path), path.name)
    return fleet, tree, list(warnings)


@lru_cache(1)
def _fleet(text: str, name: str) -> tuple[ResolvedFleet, Source, tuple[Problem, ...]]:
    tree = source.parse(text, name=name)
    fleet, warnings = load.check(tree)
    return fleet, tree, tuple(warnings)


def prepare(
    path: Path,
    name: str,
    environ: MutableMapping[str, str],
    secrets: Path,
    *,
    allow_plain_secrets: bool = False,
) -> Prepared:
    """Read, check and merge what the project says about agent `name`; `environ` receives its secrets and `.env`.

    `allow_plain_secrets` makes warnings of the errors about secrets in plain text. They are of an agent that is started
    by hand: where it is a member of a fleet, what started that has told.

    Raises:
        Refused: with every problem of the first stage that found any.
    """
    fleet, tree, warnings = read_fleet(path)
    settings.check_name(fleet, tree, name)
    project = path.resolve().parent
    by_hand = names.ENV_PLACEMENT not in environ
    cwd = None if environ.get(names.ENV_PLACEMENT) == "container" else Path.cwd()
    environment.fill(fleet, tree, name, project=project, environ=environ, secrets=secrets, cwd=cwd)
    config_tree = _tree(fastagent_files.config(project))
    secrets_tree = _tree(fastagent_files.secrets(secrets, project))
    declared, problems = fastagent.load(project, secrets)
    if by_hand:
        problems += plain_secrets.problems(tree, config_tree, allow=allow_plain_secrets)
    warnings += refuse_errors([*problems, *access_rules.not_called(fleet, name, declared, tree)])
    resolved = settings.resolve(fleet, tree, name, project, environ=environ)
    built = fastagent_yaml.build(
        config_tree,
        secrets_tree,
        prefix=declared.provider,
        peers=resolved.peers,
        environ=environ,
        skills=[str(project / Path(name).expanduser()) for name in skills.named(resolved.agent, declared)],
        presented={peer: names.call_token(peer) for peer in credentials.presented(fleet, name)},
    )
    jwks = (resolved.agent.access.jwt and resolved.agent.access.jwt.jwks_file) or ""
    own_secrets = secret_files.of_agent(fleet, name)
    servers = fastagent_yaml.http_servers(built.data, environ)
    return Prepared(
        settings=resolved,
        config=built,
        default_model=declared.default_model,
        model=declared.capabilities or Capabilities(model=""),
        published=declared.capabilities,
        endpoints={name: _target(name, server, resolved) for name, server in servers.items()},
        programs=fastagent_yaml.programs(built.data),
        reasons=ProgramReasons(
            commands=declared.commands,
            secrets=frozenset(_secret_values(environ, {secret.target for secret in own_secrets}, declared, built)),
            secretive=credentials.protected(fleet, name),
        ),
        oauth=frozenset(name for name, server in servers.items() if server.oauth),
        warnings=tuple(warnings),
        keys_file=secret_text.locate(names.KEYS_FILE, jwks, project, secrets) if jwks else None,
        tokens=token_files.read(fleet.agents[name].access.tokens, own_secrets, tree, project=project, secrets=secrets),
    )


def _target(name: str, server: fastagent_yaml.HttpServer, resolved: Settings) -> Target:
    """Return what a probe asks of a server: what a turn would, and as long. Only callers have a token for some."""
    lists = 0.0 if name in resolved.forward else float(resolved.connect_timeout)
    return Target(server.url, headers=server.headers, sse=server.sse, lists=lists, follow=True)


def _secret_values(environ: Mapping[str, str], targets: Set[str], declared: Config, built: Built) -> Iterator[str]:
    """Yield the values that no output of a server may show: secrets of the agent, of its files, and by their names."""
    hidden = targets | declared.variables.keys()
    yield from (value for key, value in environ.items() if key in hidden or secret_shapes.is_secret_key(key))
    for entry in built.data["mcp"]["servers"].values():
        env = entry.get("env")
        for key, value in (env if isinstance(env, Mapping) else {}).items():
            if secret_shapes.is_secret_key(str(key)):
                yield interpolation.expand(str(value), environ)


def _tree(path: Path | None) -> Source | None:
    """Return the file's tree when it is there and says anything; a secrets file must be readable for this user."""
    if path is None or not path.is_file():
        return None
    if not os.access(path, os.R_OK):
        secret_text.read(path)  # says so, with the user that tried
    tree = source.read(path)
    return tree if tree.data is not None else None
