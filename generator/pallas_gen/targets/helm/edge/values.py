"""The values of what can stand in front of the gateway: rules of its HTTPRoute, and agentgateway's resources."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from pallas_gen.targets.helm.values_workload import Block, Keeping, Name, Object

Header = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7E]{1,256}$")]
Duration = Annotated[str, StringConstraints(pattern=r"^([0-9]{1,5}(h|m|s|ms)){1,4}$")]


class McpRule(Block):
    """One more rule of the gateway's HTTPRoute: for requests whose headers say so, as those of MCP 2026-07-28 do."""

    method: Header = "tools/call"
    """`Mcp-Method` of the requests, for example tools/call."""
    name: Header | None = None
    """Their `Mcp-Name`: a tool, a prompt, a URI. Default: any."""
    path: Annotated[str, StringConstraints(pattern=r"^/[!-~]*$", max_length=200)] = "/"
    """Below which path of the gateway, for example /agents/scout/mcp."""
    timeout: Duration | None = None
    """Time for a request; 0s is without end. Default: that of the Gateway in front."""
    backend_refs: list[Object] = []
    """Where they go. Default: the gateway."""


class Edge(Block):
    """agentgateway in front of the gateway. `pallas-gen helm` writes all that agents.yaml says of it."""

    enabled: bool = False
    """Create its resources: a route, a backend and a policy for each agent behind the gateway. Needs `httpRoute`, whose
    `parentRefs` then name a Gateway of agentgateway."""
    strict: bool = False
    """Refuse a request without a valid JWT at the edge. Default: the gateway refuses it, and says where to get one."""
    jwks: str = ""
    """The issuer's keys, for `--set-file`, where agents.yaml has them in a file."""
    rate_limit: Object = {}
    """`backendRef` of a rate limit service (envoyproxy/ratelimit), which reads its limits from ConfigMap
    `pallas-edge-limits`. Empty: the gateway alone counts."""
    allow: dict[Name, str] = {}
    """Host name of each agent behind the gateway -> CEL, true for what may pass."""
    tokens: bool = False
    """Whether callers with a static token come too, which only the gateway knows."""
    issuer: str = ""
    """`iss` of the callers' tokens."""
    audience: str = ""
    """`aud` that they must have."""
    jwks_url: str = ""
    """Where the issuer's keys are."""
    tenant: str = ""
    """CEL: the tenant of a caller."""
    requests: dict[str, Annotated[int, Field(ge=1)]] = {}
    """Tenant -> its requests a minute."""


class Gateway(Keeping):
    """The gateway, where agents.yaml has one. `stateless: false` where it counts or keeps a state by itself."""

    files: list[str] = []
    """Paths of `project.code` that its pod gets: those of `gateway.app`."""
    mcp_routes: Annotated[list[McpRule], Field(max_length=15)] = []
    """More rules of its HTTPRoute, by headers of MCP."""
    edge: Edge = Edge()
    """agentgateway in front of it."""
