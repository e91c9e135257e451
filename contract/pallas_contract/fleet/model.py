"""agents.yaml as written: the keys of seed 001 with their meaning and defaults, and the kit's own optional ones.

Every default that can be said in one file is here; what follows from several keys together is decided by the plan.
"""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from pallas_contract.fleet import access_model, base
from pallas_contract.fleet.access_model import Access, AgentAccess, Gateway
from pallas_contract.fleet.base import (
    ContainerPath,
    DebianPackage,
    Endpoint,
    EnvKey,
    FilePath,
    FunctionName,
    Host,
    ImageName,
    ImageNames,
    ModulePath,
    Namespace,
    Pattern,
    Port,
    PublicUrl,
    Publish,
    Reach,
    RelativePath,
    Resources,
    SecretFile,
    SemVer,
    ServiceUrl,
    Text,
    TokenName,
    UrlPath,
)
from pallas_contract.fleet.base import Written as _Written

PATTERNS = {**base.PATTERNS, **access_model.PATTERNS}
"""Each pattern of the file in words, for messages."""


class Need(_Written):
    """One edge of `depends_on` in its map form."""

    required: bool = True
    """false starts the agent degraded instead of waiting for the other one."""


class Icon(_Written):
    """An icon of the registry entry (seed 000 section 1)."""

    src: Text
    """Absolute or relative URL; published as it is."""
    sizes: Text | None = None
    """For example `any` or `48x48`."""


def _edges(value: object) -> object:
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return {name: Need() for name in value}
    return value


Through = Literal["gateway"]
Edges = Annotated[
    dict[str, Need],
    BeforeValidator(_edges, json_schema_input_type=list[str] | dict[str, Need]),
]
Scope = Literal["shared", "connection", "request"]


class AgentDefaults(_Written):
    """Settings merged into every agent that does not say otherwise (`env`, `secrets`, `labels`, `files` by entry)."""

    replicas: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Containers of this agent (default 1). More than one needs `instance_scope: request`."""
    resources: Resources | None = None
    """Limits of each container."""
    env: dict[EnvKey, str] = {}
    """Plain environment variables; a `$` is literal."""
    secrets: dict[EnvKey, SecretFile] = {}
    """Environment variables whose value is read from a secret file at start, never written into generated files."""
    instance_scope: Scope | None = None
    """`request` keeps nothing between calls; `connection` (the default) and `shared` keep a conversation per caller."""
    keep_conversations: bool | None = None
    """Keep conversations over a restart, in an SQLite file (default: in memory). Scope `request` has none."""
    egress: bool | None = None
    """Whether the container may reach the world. Default: yes when the agent's own model or one of its own MCP servers
    is outside."""
    skills: list[RelativePath] | None = None
    """Folders of skills (`NAME/SKILL.md`), relative to agents.yaml, hidden ones too; a tool reads them and nothing
    else. Default: `skills.directories` of fast-agent's configuration, else none: no folder is searched for."""
    shell: bool | None = None
    """Let the agent have fast-agent's shell and file tools, where its definition asks for a shell or it has skills.
    Default: false, whatever the definition asks for."""
    publish: Publish | None = None
    """Publish the port on the host: true (on 127.0.0.1, the default), false, or the address to bind to."""
    labels: dict[Text, str] = {}
    """Labels put on the containers."""
    files: list[Pattern] = []
    """Files and folders of the project that the container gets besides the code it imports and the files it names:
    paths or patterns (`data/*.csv`, `prompts/`), relative to agents.yaml. Those of `defaults` are for every agent."""
    image: Text | None = None
    """Image of the container, as it is. Default: what `pallas-gen build` makes, or the kit's own."""
    requirements: RelativePath | None = None
    """File with the Python packages of this agent's code, relative to agents.yaml: requirements.txt, pylock.toml,
    uv.lock or pyproject.toml. Default: the one beside agents.yaml."""


class Agent(AgentDefaults):
    """One agent (seed 001, `agents.<name>`)."""

    module: ModulePath | None = None
    """Python module with a FastAgent: `fast`, or the only one of any name. Either this or `card`."""
    card: RelativePath | None = None
    """Agent card (Markdown or YAML), relative to agents.yaml: an agent without Python."""
    port: Port
    """Port of this agent's MCP endpoint on the host."""
    title: Text | None = None
    """Name shown to people. Default: the agent's name in title case."""
    description: str = ""
    """One line about what the agent does."""
    depends_on: Edges = {}
    """Agents and services that must be ready before this one, and that it may call."""
    icons: list[Icon] = []
    """Icons of the registry entry."""
    functions: list[FunctionName] = []
    """Functions of the agent, tools that its own code defines, that callers may call by name, without its model."""
    access: AgentAccess = AgentAccess()
    """Who may call this agent, where that is not as for the whole fleet."""
    through: Through | None = None
    """`gateway`: reached through the gateway alone, also by agents that depend on this one."""


class ServiceHealth(_Written):
    """How to see that a server is up which does not carry the kit's own check: one of the two."""

    path: UrlPath | None = None
    """Answered to GET with 200 while it can serve."""
    command: list[Text] = []
    """Run in the container: exit code 0 while it can serve."""


class Service(_Written):
    """A companion of the fleet: the project's own code in the agent image, or any image."""

    module: ModulePath | None = None
    """Run as `python -m module`; it listens on the `address:port` given in PALLAS_BIND. Either this or `image`."""
    image: ImageName | None = None
    """Image of a server, as it is, in a container as closed as all the others."""
    args: list[str] = []
    """Arguments of the module, or of the image's entry point instead of the image's own."""
    entrypoint: list[Text] = []
    """Replaces the image's entry point."""
    port: Port
    """Port on the host when the fleet runs as processes; with `image` also the one it listens on in its container."""
    path: UrlPath | None = None
    """Path of what an image provides. Default: /mcp, or /v1 for `openai`."""
    command: list[Text] = []
    """Command line that `pallas` starts for an `image`; `${PORT}` in it stands for `port`."""
    url: ServiceUrl | None = None
    """Where `pallas` finds what an `image` provides; it starts nothing then."""
    provides: Literal["mcp", "openai", "other"] = "mcp"
    """`mcp`: an MCP server; `openai`: an OpenAI-compatible API, given as OPENAI_BASE_URL; `other`: something else, such
    as a database, whose `host:port` is in PALLAS_ADDRESS_NAME (its name in capitals) for agents that depend on it."""
    health: ServiceHealth | None = None
    """How to see that an image is up. Default: what it provides answers (on Kubernetes: its port)."""
    env: dict[EnvKey, str] = {}
    """Plain environment variables; a `$` is literal."""
    secrets: dict[EnvKey, SecretFile] = {}
    """Environment variables read from secret files. An image gets `NAME_FILE` with the path of the file."""
    egress: bool = False
    """Whether the container may reach the world."""
    resources: Resources = Resources()
    """Limits of the container."""
    files: list[Pattern] = []
    """Files and folders of the project that the container gets in /project, besides the code that a module imports."""
    calls: list[Text] = []
    """Agents that a `module` may call back, of those that depend on it; their URLs are in PALLAS_PEERS, by name."""
    state: bool = False
    """Give a `module` a folder that outlives a restart: its path is in PALLAS_STATE."""
    user: Annotated[int, Field(ge=1, le=2**31 - 1)] = 10001
    """User and group of an image's processes; never root."""
    through: Through | None = None
    """`gateway`: an MCP server that is reached through the gateway alone, by the agents that depend on it."""
    writable: list[ContainerPath] = []
    """Folders that an image may write to besides /tmp: in memory, gone with the container."""


class Token(_Written):
    """A token by reference, and the agents it is good for."""

    file: FilePath
    """Path of the file that holds it, relative to agents.yaml or absolute: at least 16 characters in one line."""
    agents: list[Text] = []
    """Agents that this token alone may register. Empty: every name that is free and in no other token's list."""


class Registration(_Written):
    """Agents outside of this file may register themselves and send heartbeats (seed 003, sections 3.2 and 3.3)."""

    tokens: Annotated[dict[TokenName, Token], Field(min_length=1)]
    """Who may register, by a name for logs."""
    store: bool = False
    """Keep registrations over a restart of the registry, in an SQLite file."""
    reach: list[Reach] = []
    """Host names, addresses and networks at which registered agents may have the registry probe them. Empty: none."""
    max_agents: Annotated[int, Field(ge=1, le=1000)] = 100
    """Most registered agents at a time."""


class Registry(_Written):
    """Settings of the registry."""

    probe_interval: Annotated[float, Field(ge=0.5, le=3600)] = 5.0
    """Seconds between two probes of one replica."""
    publish: Publish = True
    """Publish the port on the host: true (on 127.0.0.1), false, or the address to bind to."""
    resources: Resources = Resources(memory="256Mi")
    """Limits of the container."""
    registration: Registration | None = None
    """Lets agents outside of this file register themselves. Default: nobody may."""


class Telemetry(_Written):
    """Where agents and the gateway send their traces (docs/telemetry.md)."""

    otlp_endpoint: Endpoint
    """Base URL of a collector that takes OTLP over HTTP. In compose, one whose host name has no dot is expected on the
    network `telemetry`; any other is outside."""
    sample: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of the traces that are recorded, where the caller has not decided."""
    content: bool = False
    """Put prompts, arguments and answers into the traces."""


class Images(_Written):
    """Where the containers' images come from."""

    names: ImageNames = "{name}"
    """Registry, path and tag of all images that are not named below: `{name}` stands for `pallas-agent` and the like,
    as in ghcr.io/team/{name}:1.4. Default tag: the kit's version. The variable PALLAS_IMAGES is stronger."""
    agent: Text | None = None
    """Image of agents and services. Default: `pallas-agent`, by `names`."""
    registry: Text | None = None
    """Image of the registry. Default: `pallas-registry`, by `names`."""
    packages: list[DebianPackage] = []
    """Debian packages to put into the fleet's image, as `git` or `git=1:2.47.3-0+deb13u1`; only without `agent`."""
    python: ImageName | None = None
    """Image with Debian and Python 3.13 that all are built from. Default: `python:3.13-slim`; `@sha256:...` pins it."""
    code: Literal["mounted", "baked"] = "mounted"
    """`mounted`: the project folder is mounted read-only; `baked`: the agent image already holds it in /project."""


def _images(value: object) -> object:
    return Images(agent=value, code="baked") if isinstance(value, str) else value


def _networks(value: object) -> object:
    return Networks(mode=value) if value in ("isolated", "flat") else value


def _pool(value: object) -> object:
    # Strict models take a network object only, and YAML has nothing but text for it.
    return IPv4Network(value) if isinstance(value, str) else value


class Networks(_Written):
    """How the containers are separated from each other."""

    mode: Literal["isolated", "flat"] = "isolated"
    """`isolated`: only what `depends_on` declares can be reached; `flat`: everything reaches everything."""
    pool: Annotated[IPv4Network, BeforeValidator(_pool, json_schema_input_type=str)] = IPv4Network("10.213.0.0/16")
    """Address range that the subnets of the isolated networks are cut from."""


class Fleet(_Written):
    """The whole file (seed 001, agents.yaml)."""

    name: Text
    """Project name: in every log line as `fleet`, and the name of the compose project, which takes a to z, digits,
    hyphens and underscores. No two fleets of one host may have the same."""
    version: SemVer = "1.0.0"
    """Semver string published in the registry entries."""
    host: Host = "localhost"
    """Host name in the registry's `remotes[].url`."""
    public_url: PublicUrl | None = None
    """Where clients reach what is published behind a reverse proxy, an Ingress or a Gateway: `{name}` stands for an
    agent's host name, or for `registry`, as in https://{name}.example.com. Default: http://host:port."""
    namespace: Namespace | None = None
    """Reverse-domain prefix of registry names. Default: `local.` and the project's name."""
    registry_port: Port = 24200
    """Port of the registry on the host."""
    agents: Annotated[dict[str, Agent], Field(min_length=1)]
    """The agents by name."""
    services: dict[str, Service] = {}
    """Companion processes by name: MCP servers or a model endpoint that the fleet brings along."""
    defaults: AgentDefaults = AgentDefaults()
    """Settings for every agent that does not say otherwise."""
    image: Annotated[Images, BeforeValidator(_images, json_schema_input_type=str | Images)] = Images()
    """Images of the containers; a text names an agent image that holds the project's code."""
    access: Access = Access()
    """Who may call the agents: static tokens or those of an authorization server."""
    gateway: Gateway | None = None
    """One guarded door in front of agents. Default: none."""
    registry: Registry = Registry()
    """How the registry runs."""
    telemetry: Telemetry | None = None
    """Traces of the agents and the gateway. Default: none."""
    networks: Annotated[
        Networks, BeforeValidator(_networks, json_schema_input_type=Literal["isolated", "flat"] | Networks)
    ] = Networks()
    """Separation of the containers; `flat` switches it off."""
