"""The names that two programs must agree on, spelled once: ports, paths, environment keys, host names."""

from __future__ import annotations

import os

# Every health check imports this module: `re` and pathlib would be a tenth of its cost each, as would functools.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CONTAINER_PORT = 8080
"""The port every agent, service and registry listens on inside a container."""

CLOUD_METADATA = (
    "169.254.0.0/16",
    "100.100.100.200/32",
    "168.63.129.16/32",
    "fe80::/10",
    "fd00:ec2::254/128",
    "fd20:ce::254/128",
)
"""Networks where clouds hand out a machine's credentials (link-local, Alibaba, Azure; link-local, AWS, Google)."""

MCP_PATH = "/mcp"
SERVER_JSON_PATH = "/.well-known/mcp/server.json"
"""Of a registry the agents of its fleet, of an agent itself (seed 000 section 1)."""
SERVICES_PATH = "/services"
"""Of a registry: the services of its fleet."""
LIVE_PATH = "/livez"
READY_PATH = "/readyz"
HEALTH_PATH = "/healthz"
"""The answer of `get_health` to everybody, also where `/mcp` asks for a token."""
PROJECT_DIR = "/project"
"""Where a container sees the folder that holds agents.yaml, read-only."""
SECRETS_DIR = "/run/secrets"
"""Where compose and Kubernetes put secret files; each file `KEY` becomes the variable `KEY`."""

KEYS_FILE = "access.jwks.json"
"""The public keys of an issuer, in the same folder. No variable has such a name, so it becomes none; nor do tokens that
only have to be compared (`token_file`)."""

AUDIT_KEY = "audit.key"
"""The key of the gateway's audit, in the same folder."""

STORE_URL = "store.url"
COUNTERS_URL = "counters.url"
"""The addresses of the gateway's databases, in the same folder."""

STATE_DIR = "/state"
"""Where a container that keeps something over a restart has its volume, the one place it can write to besides /tmp."""

AGENTS_FILE = "agents.yaml"
DOTENV_FILE = ".env"
LOCK_FILE = "agents.lock"
"""Beside agents.yaml: what `pallas-gen lock` has locked, and the registry compares with (documents.lock)."""
REPLICAS_FILE = ".replicas.json"
"""JSON object `{agent: replicas}` beside agents.yaml, which the chart writes and the registry reads: there, replicas
are values, and nobody knows a number for an agent that is scaled by load."""

# Kubernetes injects `<SERVICE>_PORT`, `<SERVICE>_SERVICE_HOST` and the like for every Service of a namespace.
# None of our keys may end so, or a Service named `pallas` would overwrite it.
ENV_AGENTS_CONFIG = "PALLAS_AGENTS_CONFIG"
"""Path of agents.yaml (seed 001); relative to the working directory, default `agents.yaml`."""
ENV_PLACEMENT = "PALLAS_PLACEMENT"
"""`container` or `local`: whether agents are found by DNS on one port, or are processes of one machine on the ports of
agents.yaml. Default `local`, as for `pallas --agent NAME` by hand."""
ENV_BIND = "PALLAS_BIND"
"""`address:port` to listen on."""
ENV_LISTEN_FD = "PALLAS_LISTEN_FD"
"""Number of an inherited file descriptor: the socket on the address of PALLAS_BIND that `pallas` holds for a member
from before the first one starts. It is bound, and listens only once the member can answer."""
ENV_LISTEN_ON = "PALLAS_LISTEN_ON"
"""Comma-separated names of this host on the networks its callers come from. Where it is set, the port of PALLAS_BIND is
opened on the addresses of these names and on loopback only, so that nobody can be called back."""
ENV_PEERS = "PALLAS_PEERS"
"""JSON object `{name: MCP URL}`: the agents and MCP services this agent may call."""
ENV_ALLOWED_HOSTS = "PALLAS_ALLOWED_HOSTS"
"""Comma-separated Host header values accepted on `/mcp`; `name:*` admits every port."""
ENV_ADDRESSES = "PALLAS_ADDRESSES"
"""JSON object `{agent: "address:port"}` handed to the registry where agents are processes, not DNS names."""
ENV_ABSENCES = "PALLAS_ABSENCES"
"""Path of the file in which `pallas` tells the registry why agents are not up (documents.absence)."""
ENV_WARM_PARENT = "PALLAS_WARM_PARENT"
"""`0` has `pallas` start each agent by its command, also where it could fork it from one that has imported the same."""
ENV_REPLICA_DOMAIN = "PALLAS_REPLICA_DOMAIN"
"""DNS domain with a record per replica under each agent's host name (`<slug>.<domain>`), told to the registry where
the host name alone stands for all replicas at once."""
ENV_PODS_DOMAIN = "PALLAS_PODS_DOMAIN"
"""DNS domain in which `pallas-pods-<slug>` has a record per pod of an agent, ready or not, told to the registry where
PALLAS_REPLICA_DOMAIN has those that are ready."""
PODS_PREFIX = "pallas-pods-"
"""Begin of the names of these Services."""
ENV_REGISTRATIONS = "PALLAS_REGISTRATIONS"
"""SQLite file in which the registry keeps who registered, relative to agents.yaml or absolute; without it a restart
forgets them. Written for `registry.registration.store`."""
ENV_GATEWAY_STATE = "PALLAS_GATEWAY_STATE"
"""Folder of what the gateway keeps over a restart, relative to agents.yaml or absolute. Written for `gateway.audit` and
`gateway.confirm` and `gateway.tasks`."""
ENV_STATE = "PALLAS_STATE"
"""Folder of what a service keeps over a restart, for it alone, relative to agents.yaml or absolute. It is there when
the service starts. Written for `services.NAME.state`."""
ENV_ADDRESS = "PALLAS_ADDRESS_"
"""Prefix of the variable with the `host:port` of a service that is neither MCP server nor model; see `address_key`."""
ENV_SERVICE = "PALLAS_SERVICE"
"""The name under which a companion service runs."""
ENV_LOG_FORMAT = "PALLAS_LOG_FORMAT"
"""`json` (default) or `text`."""
ENV_MAX_DEPTH = "PALLAS_MAX_DEPTH"
"""Most agents that a call may pass through, this one included; default 8. Set it under `env` in agents.yaml."""
ENV_CONVERSATIONS = "PALLAS_CONVERSATIONS"
"""SQLite file that keeps conversations over a restart, relative to agents.yaml or absolute; without it they live in
memory. Written for `keep_conversations`."""
ENV_MAX_BODY = "PALLAS_MAX_BODY"
"""Most bytes that a message and its images may have together, images in base64; default 32 MiB. Set it under `env` in
agents.yaml."""
ENV_CONNECT_TIMEOUT = "PALLAS_CONNECT_TIMEOUT"
"""Whole seconds in which an agent connects the MCP servers that a turn is without; default 5. Set it under `env` in
agents.yaml."""
ENV_TRACE_CONTENT = "PALLAS_TRACE_CONTENT"
"""`true` puts prompts, arguments and answers into the spans that go to the collector; default: none of it."""
ENV_REGISTRY = "PALLAS_REGISTRY"
"""URL of the registry of a running fleet, for the verbs of `pallas`."""
ENV_TOKEN = "PALLAS_TOKEN"  # noqa: S105 - a name
"""Bearer token that `pallas call` and `pallas chat` show to an agent with `access`."""
ENV_OTLP_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""Base URL of the collector (OpenTelemetry's own variable); traces go to `/v1/traces` under it."""
ENV_SAMPLER = "OTEL_TRACES_SAMPLER"
"""The way traces are sampled (OpenTelemetry's own variable)."""
ENV_SAMPLER_RATIO = "OTEL_TRACES_SAMPLER_ARG"
"""The share of the traces that are sampled, 0 to 1 (OpenTelemetry's own variable)."""
ENV_RUN = "PALLAS_RUN"
"""Of a process of a local fleet: the run, a slash, and the member that it is or was started by."""
ENV_HOME = "PALLAS_HOME"
"""Of an agent of a local fleet: the folder that it makes its home in, which `pallas` removes once the agent has ended.
"""
ENV_IMAGES = "PALLAS_IMAGES"
"""The names of images for `pallas-gen`, such as ghcr.io/team/{name}:1.4; stronger than `image.names`."""
ENV_OPENAI_BASE_URL = "OPENAI_BASE_URL"
"""Set for agents that depend on a service with `provides: openai`."""

# Keys of `_meta` in a `tools/call`, from an agent to the one it asks. All values are text.
META_TASK = "io.pallas-kit/task"
"""Id of the task, the same at every hop."""
META_DEPTH = "io.pallas-kit/depth"
"""How many agents passed it on."""
META_PATH = "io.pallas-kit/path"
"""Registry names of these agents, the first one first, separated by commas."""
META_SECONDS = "io.pallas-kit/seconds"
"""Seconds the task has left; not a time of day, because clocks of two hosts differ."""
META_MODEL = "io.pallas-kit/model"
"""The model that is to answer, empty where any may; in the result of such a call the one that has."""

CALLER_HEADER = "pallas-caller"
"""HTTP header from the gateway to an agent: a digest of the caller that the gateway has verified, the same for every
token of that caller. Heeded from the bearer of the static token `GATEWAY` only."""

GATEWAY = "gateway"
"""Host name of the gateway, and name of the static token that it presents to agents."""
PROBE_TIMEOUT = 3.0
"""Seconds for a whole probe, all its requests together (seed 000: 3 seconds per downstream probe)."""
ALLOW_PLAIN_SECRETS = "--allow-plain-secrets"
"""The option of commands that write, which makes warnings of secrets in plain text."""

REGISTRY = "registry"
REGISTRY_SERVER = "pallas-registry"
"""Name under which the registry itself answers MCP: never that of an agent."""
RESERVED = frozenset({REGISTRY, GATEWAY, "agents"})
"""Host names of the kit itself: neither an agent nor a service may have them."""

MAX_NAME = 40
"""Longest slug: release prefix and suffix must still fit a 63-character DNS label."""

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})
"""Hosts by which a URL means the machine, or the container, that it is used on."""


def fleet_file(named: str | Path | None, environ: Mapping[str, str]) -> Path:
    """Return the path of agents.yaml: as named, else by the environment, else here; a folder stands for its file.

    A link stands for the file it leads to, in whose folder the project is. In a container it is Kubernetes' own, which
    leads elsewhere after each change, and stays.
    """
    from pathlib import Path  # noqa: PLC0415 - see above

    path = Path(named or environ.get(ENV_AGENTS_CONFIG) or AGENTS_FILE)
    if path.is_dir():
        path = path / AGENTS_FILE
    if path.is_symlink() and environ.get(ENV_PLACEMENT) != "container":
        real = path.resolve()
        return real if path.is_absolute() else Path(os.path.relpath(real))
    # `deploy/../agents.yaml` is what it says unless deploy is a link
    plain = Path(os.path.normpath(path))
    return plain if ".." in path.parts and plain.resolve() == path.resolve() else path


def is_name(name: str) -> bool:
    """Return whether `name` becomes a DNS label once underscores are hyphens (RFC 1123)."""
    import re  # noqa: PLC0415 - see above

    return len(name) <= MAX_NAME and re.fullmatch(r"[a-z]([a-z0-9_-]*[a-z0-9])?", name) is not None


def slug(name: str) -> str:
    """Return an agent's host and registry name: underscores become hyphens (seed 001, Registry Name Construction)."""
    return name.replace("_", "-")


def registration_secret(token: str) -> str:
    """Return the file name in SECRETS_DIR of a token of `registry.registration.tokens`."""
    return f"registration-{token}"


def token_file(caller: str) -> str:
    """Return the name in the secrets folder of a token that is accepted from `caller`."""
    return f"access.{caller}"


def call_token(peer: str) -> str:
    """Return the variable with the token that an agent presents to `peer`."""
    return f"PALLAS_CALL_{slug(peer).replace('-', '_').upper()}_TOKEN"


def title(name: str) -> str:
    """Return the default display name of an agent (seed 001: `name.title()`, with underscores read as spaces)."""
    return name.replace("_", " ").replace("-", " ").title()


def address_key(service: str) -> str:
    """Return the variable in which agents get the address of `service`."""
    return ENV_ADDRESS + service.upper().replace("-", "_")
