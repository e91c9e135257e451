"""The settings of one agent process: its place in the fleet, where it listens and whom it may call."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.documents import server_json
from pallas_contract.fleet.resolved import ResolvedAgent, ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.launch import addresses, program
from pallas_contract.problems import Problem, Refused, Where
from pallas_contract.validate.suggestions import Suggestions

# Bounded: int() raises for a text of more than 4300 digits.
_NUMBER = re.compile(r"[1-9][0-9]{0,11}")
MAX_BODY = 32 << 20
"""Default of `PALLAS_MAX_BODY`: room for a few images."""
MAX_DEPTH = 8
"""Default of `PALLAS_MAX_DEPTH`."""
CONNECT_TIMEOUT = 5
"""Default of `PALLAS_CONNECT_TIMEOUT`, in seconds."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything about one agent that does not depend on fast-agent's own files."""

    fleet: ResolvedFleet
    tree: Source
    """agents.yaml, for places in messages."""
    name: str
    project: Path
    """The folder of agents.yaml: importable, and where relative paths of fast-agent's files start."""
    host: str
    port: int
    peers: Mapping[str, str]
    """MCP URL by name of the agents and MCP services it depends on."""
    allowed_hosts: tuple[str, ...]
    """Host headers accepted on `/mcp`; `name:*` admits every port."""
    placement: addresses.Placement
    """Whether it runs in a container or as a process, as it was told."""
    listen_on: tuple[str, ...] = ()
    """Names of this host to listen on instead of `host`; empty: listen on `host`."""
    max_depth: int = MAX_DEPTH
    """Most agents a call may pass through, this one included."""
    max_body: int = MAX_BODY
    """Most bytes of a message and its images, in base64, together."""
    connect_timeout: int = CONNECT_TIMEOUT
    """Seconds to connect what is missing before a turn goes on without it."""
    conversations: Path | None = None
    """SQLite file of the conversations; None keeps them in memory."""
    trace_content: bool = False
    """Whether prompts, arguments and answers go to the collector with the spans."""

    @property
    def agent(self) -> ResolvedAgent:
        return self.fleet.agents[self.name]

    @property
    def slug(self) -> str:
        return names.slug(self.name)

    @property
    def registry_name(self) -> str:
        return server_json.registry_name(self.fleet, self.name)

    @property
    def remembers(self) -> bool:
        """Return whether conversations are kept between calls (`instance_scope` is not `request`)."""
        return self.agent.instance_scope != "request"

    @property
    def forward(self) -> frozenset[str]:
        """Servers that are called with the caller's own token."""
        return frozenset(self.agent.access.forward)

    @property
    def subagents(self) -> frozenset[str]:
        """The peers that are agents of this fleet."""
        return frozenset(self.peers) & frozenset(self.fleet.agents)


def check_name(fleet: ResolvedFleet, tree: Source, name: str) -> None:
    """Refuse a `name` that is no agent of the fleet.

    Raises:
        Refused: it is not, with the nearest one that is.
    """
    if name in fleet.agents:
        return
    hint = Suggestions().hint(name, sorted(fleet.agents))
    raise Refused([tree.problem("agents", message=f"there is no agent `{name}`", hint=hint, code=Code.NO_SUCH_MEMBER)])


def resolve(fleet: ResolvedFleet, tree: Source, name: str, project: Path, *, environ: Mapping[str, str]) -> Settings:
    """Return the settings of agent `name`; what `environ` does not say is as on one machine (seed 001, Running Pallas).

    Raises:
        Refused: an environment variable is malformed.
    """
    env = {**program.agent(fleet, name, "local").env, **environ}
    host, port = address(env[names.ENV_BIND])
    conversations = env.get(names.ENV_CONVERSATIONS)
    return Settings(
        fleet=fleet,
        tree=tree,
        name=name,
        project=project,
        host=host,
        port=port,
        peers=_peers(env[names.ENV_PEERS]),
        allowed_hosts=_listed(env[names.ENV_ALLOWED_HOSTS]),
        placement=_placement(env),
        listen_on=_listed(env.get(names.ENV_LISTEN_ON, "")),
        max_depth=_number(env, names.ENV_MAX_DEPTH, MAX_DEPTH),
        max_body=_number(env, names.ENV_MAX_BODY, MAX_BODY),
        connect_timeout=_number(env, names.ENV_CONNECT_TIMEOUT, CONNECT_TIMEOUT),
        conversations=project / conversations if conversations else None,
        trace_content=_flag(env, names.ENV_TRACE_CONTENT),
    )


def _placement(environ: Mapping[str, str]) -> addresses.Placement:
    try:
        return addresses.placement(environ)
    except ValueError as error:
        raise _refused(names.ENV_PLACEMENT, str(error)) from None


def address(text: str) -> tuple[str, int]:
    """Return `host:port` as two values; an IPv6 host is written in brackets.

    Raises:
        Refused: it is neither.
    """
    # The last colon: an IPv6 host has others before it.
    host, colon, port = text.rpartition(":")
    # isdigit() alone is true of `²` and of digits of other scripts, which are no port.
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise _refused(names.ENV_BIND, f"must be `address:port`, not {text!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _number(environ: Mapping[str, str], key: str, default: int) -> int:
    text = environ.get(key) or str(default)
    if not _NUMBER.fullmatch(text):
        raise _refused(key, f"must be a whole number of at least 1, not {text[:80]!r}")
    return int(text)


def _flag(environ: Mapping[str, str], key: str) -> bool:
    text = environ.get(key) or "false"
    if text not in ("true", "false"):
        raise _refused(key, f"must be `true` or `false`, not {text[:80]!r}")
    return text == "true"


def _listed(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _peers(text: str) -> Mapping[str, str]:
    try:
        peers = json.loads(text)
    except ValueError:
        peers = None
    if not isinstance(peers, dict) or not all(isinstance(url, str) for url in peers.values()):
        raise _refused(names.ENV_PEERS, "must be a JSON object of names and URLs")
    return MappingProxyType(peers)


def _refused(key: str, message: str) -> Refused:
    return Refused([Problem(Where(f"${key}"), message, code=Code.WRONG_VARIABLE)])
