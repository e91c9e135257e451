"""The sections `access` and `gateway` of agents.yaml: who may call an agent, whose token goes on, and the one door."""

from __future__ import annotations

import unicodedata
from ipaddress import ip_address
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints

from pallas_contract.fleet.base import (
    EnvKey,
    FilePath,
    Memory,
    Port,
    Publish,
    RelativePath,
    Resources,
    SecretFile,
    Text,
    Written,
    fitting_path,
)

_CALLER = r"^[a-z]([a-z0-9_-]{0,38}[a-z0-9])?$"
_SCOPE = r"^[\x21\x23-\x5B\x5D-\x7E]+$"
_TENANT = r"^[a-z0-9]([a-z0-9_-]{0,62}[a-z0-9])?$"
_RATE = r"^[1-9][0-9]{0,5}/minute$"
_TOOLS = r"^[\x21-\x7E]{1,128}$"

PATTERNS = {
    _CALLER: "a name of a-z, 0-9, `_` and `-`",
    _SCOPE: "an OAuth scope, without spaces and quotes",
    _TENANT: "a name of a-z, 0-9, `_` and `-`, with 64 characters at most",
    _RATE: "a number of requests per minute, such as `100/minute`",
    _TOOLS: "the name of a tool, without spaces, in which `*` stands for any characters",
}
"""Each pattern in words, for messages."""


def _https(text: str) -> str:
    """Require https: all trust rests on the issuer and its keys. Only this machine is asked without TLS."""
    parts = urlsplit(text)
    if parts.scheme == "https" and parts.hostname:
        return text
    if parts.scheme == "http" and _is_this_machine(parts.hostname or ""):
        return text
    raise ValueError("must be an https URL")


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _is_plain_path(path: str) -> str:
    """Require a path that every program reads alike: what is compared with it is one of many ways to write a path."""
    parts = path.removeprefix("/").removesuffix("/").split("/")
    if not all(parts) or {".", ".."} & set(parts):
        raise ValueError("must be a folder or file such as tasks/home/, without `.`, `..` and doubled slashes")
    if {"\\", "%"} & set(path) or not path.isprintable() or not unicodedata.is_normalized("NFKC", path):
        raise ValueError("must be a path without `\\`, `%` and invisible characters, in Unicode's normal form NFKC")
    return fitting_path(path)


Caller = Annotated[str, StringConstraints(pattern=_CALLER)]
TenantName = Annotated[str, StringConstraints(pattern=_TENANT)]
Rate = Annotated[str, StringConstraints(pattern=_RATE)]
ToolPattern = Annotated[str, StringConstraints(pattern=_TOOLS)]
PlainPath = Annotated[str, StringConstraints(min_length=1), AfterValidator(_is_plain_path)]
SeedTool = Literal["create_agent", "lookup_entity", "search_knowledge_base"]
"""Tools of seed 002 that need somebody who has the data."""
ScopeName = Annotated[str, StringConstraints(pattern=_SCOPE)]
HttpsUrl = Annotated[str, AfterValidator(_https)]
Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Public-key algorithms only: with a shared secret, who can check a token could also make one."""


class Jwt(Written):
    """Tokens of an authorization server (RFC 9068), checked with its public keys."""

    issuer: HttpsUrl
    """The `iss` of its tokens; published as the authorization server (RFC 9728)."""
    audience: Text | None = None
    """The `aud` a token must have. Default: the URL under which the agent is published (RFC 8707). It has no
    default where that is on localhost, or the agent is not published."""
    jwks_url: HttpsUrl | None = None
    """Where its keys are. Either this or `jwks_file`."""
    jwks_file: FilePath | None = None
    """A file with its keys, relative to agents.yaml or absolute: for agents that may not reach the world."""
    algorithms: Annotated[list[Algorithm], Field(min_length=1)] = ["RS256", "PS256", "ES256", "EdDSA"]
    """Signature algorithms that are accepted."""
    scopes: list[ScopeName] = []
    """Scopes that a token must have, all of them."""


class Access(Written):
    """Who may call every agent of the fleet. Without it, everybody who reaches the port."""

    tokens: dict[Caller, SecretFile] = {}
    """Static tokens by the name of their caller. Under the name of an agent it is the token that this agent presents
    to those it depends on."""
    jwt: Jwt | None = None
    """Tokens of an authorization server."""


class AgentAccess(Access):
    """Who may call this agent: `tokens` are added to those of the fleet, `jwt` replaces the fleet's."""

    anonymous: bool = False
    """true lets everybody in, in spite of the fleet's `access`."""
    forward: list[Text] = []
    """Names of agents and MCP servers that are called with the caller's own token, where it is meant for them too."""


class Tenant(Written):
    """Callers of the gateway that share what they may use of it (seed 002, Rate Limiting)."""

    callers: list[Caller] = []
    """Names of its callers with a static token."""
    subjects: list[Text] = []
    """Its callers with a JWT, by their `sub`."""
    requests: Rate = "100/minute"
    """Requests that it may make in any 60 seconds, as `100/minute`; lists and notifications are not counted."""
    concurrent: Annotated[int, Field(ge=1, le=10_000)] = 10
    """Requests that it may have under way at once."""
    timeout: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """Seconds that a request of it may take, where that is less than the gateway's own `timeout`."""

    @property
    def per_minute(self) -> int:
        """Return the number in `requests`."""
        return int(self.requests.partition("/")[0])


class Who(Written):
    """A verified caller of the gateway: one of the three."""

    caller: Caller | None = None
    """The name of a caller with a static token."""
    subject: Text | None = None
    """The `sub` of a caller with a JWT."""
    tenant: TenantName | None = None
    """A tenant: all its callers."""


class Route(Who):
    """Where a caller is led that names no agent (seed 004, Routing Layer); its own route goes before its tenant's."""

    agent: Text
    """One of the gateway's `agents`."""


class Grant(Who):
    """What a caller may call (seed 004, Permission Checks). With one grant in the file nothing else may be called."""

    agent: Text | None = None
    """One of the gateway's `agents`, or of those `registered`. Either this or `service`."""
    service: Text | None = None
    """A service that the gateway calls."""
    tools: Annotated[list[ToolPattern], Field(min_length=1)]
    """Names of its tools, as it has them; `*` stands for any characters. `*` alone, without `paths`, is all that it
    offers: prompts and resources too."""
    paths: dict[Text, Annotated[list[PlainPath], Field(min_length=1)]] = {}
    """Arguments that are paths, and the folders or files one of which each must lie in (seed 004, Path Whitelists)."""


class Confirm(Written):
    """Tools whose calls another principal confirms, one by one (seed 004, Permission Checks)."""

    agent: Text | None = None
    """One of the gateway's `agents`. Either this or `service`."""
    service: Text | None = None
    """A service that the gateway calls."""
    tools: Annotated[list[ToolPattern], Field(min_length=1)]
    """Names of its tools; `*` stands for any characters."""
    by: Annotated[list[Caller | Who], Field(min_length=1)]
    """Callers that may confirm: the name of a static token, or `caller`, `subject` or `tenant` as in `grants`. None of
    them confirms its own calls."""


class Audit(Written):
    """A record of each decision and each outcome of a call, in files that show when they were changed."""

    key: SecretFile
    """Secret with which the records are sealed, 16 characters or more, for example of `openssl rand -hex 32`. Who has
    it can check them, and could write others."""
    size: Memory = "256Mi"
    """Bytes that the records may take, in Mi or Gi; beyond them the oldest are removed, which a record says."""

    @property
    def bytes(self) -> int:
        """Return the number of bytes in `size`."""
        return int(self.size[:-2]) << (20 if self.size.endswith("Mi") else 30)


class Tasks(Written):
    """Graphs of tasks (docs/gateway.md, Graphs of tasks)."""

    durable: bool = False
    """Keep on disk what became of each task: a graph goes on without its caller, and after the gateway was killed with
    what was not done yet. Its `task_id` is then its idempotency key."""


class Store(Written):
    """A database that all replicas of the gateway have together."""

    url: SecretFile
    """Its address, in a secret file since a password is in it: `postgresql://user:password@host:5432/name` of the
    store, `valkey://:password@host:6379/0` of the counters; `?sslmode=verify-full`, and `valkeys://`, for TLS."""
    service: Text | None = None
    """The service of this fleet that it is, with `provides: other`: its host and port stand for those in the address.
    Without it the database is outside of the fleet, and the gateway may reach the world for it."""


class Gateway(Written):
    """One guarded door in front of agents (docs/gateway.md): each is reached through it at /agents/NAME/mcp."""

    port: Port = 24190
    """Port of the gateway on the host."""
    publish: Publish = True
    """Publish the port on the host: true (on 127.0.0.1), false, or the address to bind to."""
    agents: Annotated[list[Text], Field(min_length=1)]
    """Agents that can be reached through it, and no others."""
    registered: list[Text] = []
    """Agents outside of this file that `agent.execute` reaches once they have registered themselves: names that a token
    of `registry.registration` is bound to."""
    console: bool = False
    """A page at /console on which people talk to these agents, with a token of their own where one is asked for."""
    app: RelativePath | None = None
    """Folder of the project with a web application of your own, served at /app/ to everybody: its index.html first."""
    services: list[Text] = []
    """MCP services with `through: gateway` that its clients may call too, as far as `grants` go."""
    timeout: Annotated[float, Field(gt=0, le=3600)] = 3600.0
    """Seconds that a call may take, from its body to the end of its answer; progress does not extend it."""
    tenants: dict[TenantName, Tenant] = {}
    """Limits for callers, by the name of their tenant. A caller that is in none has no limits. With tenants the gateway
    has tools of its own at /mcp."""
    tools: dict[SeedTool, Text] = {}
    """More tools at /mcp, each by the service of this fleet that has a tool of that name: the gateway checks arguments,
    tenant and limits, and passes the call on."""
    routes: list[Route] = []
    """Which agent a verified caller is led to at /agent/mcp, and by `ask_agent` without an agent."""
    grants: list[Grant] = []
    """Who may call which tools. Default: every caller all that is behind the gateway; with a grant, only what is
    granted."""
    confirm: list[Confirm] = []
    """Tools whose calls are confirmed by another caller before they run."""
    operators: list[Caller | Who] = []
    """Callers that may see what all callers do, on the page of calls, in /healthz and in /metrics; named as in `by` of
    `confirm`. Others see their own, or their tenant's."""
    audit: Audit | None = None
    """Record every call (docs/gateway.md). Without it, `confirm` and `tasks: {durable: true}` no state is kept."""
    tasks: Tasks | None = None
    """How graphs of tasks are run; in memory, where nothing is said."""
    replicas: Annotated[int, Field(ge=1, le=100)] = 1
    """How many of it there are (docs/gateway.md, Replicas). More than one need a `store` for `audit`, `confirm` and
    durable `tasks`, and `counters` for `tenants`."""
    store: Store | None = None
    """PostgreSQL for confirmations, audit and durable graphs of tasks. Default: files in the gateway's own folder."""
    counters: Store | None = None
    """Valkey, or what speaks its protocol, for the limits of tenants. Default: each gateway counts for itself."""
    access: Access = Access()
    """Who may pass: added to the fleet's `access`. The token under the name `gateway` there is the one that it presents
    itself to the agents, and lets nobody in here."""
    env: dict[EnvKey, str] = {}
    """Plain environment variables; a `$` is literal."""
    secrets: dict[EnvKey, SecretFile] = {}
    """Environment variables whose value is read from a secret file at start, never written into generated files."""
    resources: Resources = Resources(memory="512Mi")
    """Limits of the container."""

    @property
    def keeps(self) -> bool:
        """Return whether it keeps what several can share in a `store`."""
        return self.audit is not None or bool(self.confirm) or self.is_durable

    @property
    def is_durable(self) -> bool:
        """Return whether it keeps graphs of tasks."""
        return self.tasks is not None and self.tasks.durable

    @property
    def has_files(self) -> bool:
        """Return whether it keeps something in a folder of its own."""
        return self.keeps and self.store is None

    @property
    def services_of_stores(self) -> list[str]:
        """Return the services that are its databases."""
        return [store.service for store in (self.store, self.counters) if store and store.service]
