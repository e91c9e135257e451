"""The values of one workload of the chart: what may be said for all of them, and what the generator says of each."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from pallas_contract import __version__

Object = dict[str, Any]
"""A piece of a Kubernetes object, handed through as it is."""
# With `type` the schema has each pattern once: Helm compiles every one that it finds, whenever it reads the chart.
type Quantity = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$")]
type Label = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$")]
Count = Annotated[int, Field(ge=1, le=1000)]
Seconds = Annotated[int, Field(ge=1, le=3600)]
type Name = Annotated[str, StringConstraints(pattern=r"^[a-z]([a-z0-9_-]{0,38}[a-z0-9])?$")]


class Block(BaseModel):
    """A closed mapping: an unknown key is refused."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        use_attribute_docstrings=True,
        alias_generator=to_camel,
        populate_by_name=True,
    )


class Image(Block):
    """Where one image comes from."""

    registry: str = ""
    """Registry host, for example ghcr.io. Empty: the runtime's default. `global.imageRegistry` wins over it."""
    repository: str = ""
    """Name of the image without host, tag and digest."""
    tag: str = ""
    """Tag of the image."""
    digest: str = ""
    """`sha256:...`; when given, the tag is for people only."""


class Images(Block):
    """The two images of a fleet."""

    agent: Image = Image(repository="pallas-agent", tag=__version__)
    """Image of agents, services and the gateway."""
    registry: Image = Image(repository="pallas-registry", tag=__version__)
    """Image of the registry."""
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    """When the node pulls."""
    pull_secrets: list[str] = []
    """Names of Secrets with registry credentials."""


class Resources(Block):
    """Kubernetes resources of a container."""

    limits: dict[str, Quantity] = {"cpu": "1", "memory": "512Mi", "ephemeral-storage": "256Mi"}
    """Most a container may use. `pallas-gen helm` writes cpu and memory for each workload."""
    requests: dict[str, Quantity] = {"cpu": "50m", "memory": "128Mi", "ephemeral-storage": "16Mi"}
    """What the scheduler sets aside: an idle agent's need."""


class Autoscaling(Block):
    """A HorizontalPodAutoscaler; the Deployment then says nothing about replicas."""

    enabled: bool = False
    """Scale by load."""
    min_replicas: Count = 2
    """Fewest replicas."""
    max_replicas: Count = 10
    """Most replicas."""
    target_cpu: Annotated[int, Field(ge=1, le=1000)] = 80
    """CPU use to aim at, in percent of the request."""
    behavior: Object = {}
    """`behavior` of the HorizontalPodAutoscaler."""


class Service(Block):
    """The Service in front of a workload."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    """With another type than ClusterIP, a published workload's own port is opened as well."""
    app_protocol: str = "http"
    """`appProtocol` of an MCP port, for example agentgateway.dev/mcp."""
    annotations: dict[str, str] = {}
    """Annotations of the Service."""
    labels: dict[str, Label] = {}
    """Labels of the Service, for example those by which a gateway finds MCP servers."""


class Pod(Block):
    """What can be said for all workloads in `defaults`, and again for one of them."""

    replicas: Count = 1
    """Pods of the workload; `pallas-gen helm` writes it for each. An agent with memory between calls has one."""
    resources: Resources = Resources()
    """Limits and requests."""
    autoscaling: Autoscaling = Autoscaling()
    """Scaling by load; only for a stateless workload."""
    service: Service = Service()
    """The Service in front of it."""
    labels: dict[str, Label] = {}
    """Labels of the pods."""
    annotations: dict[str, str] = {}
    """Annotations of the pods."""
    service_account_annotations: dict[str, str] = {}
    """Annotations of the ServiceAccount, for cloud identities."""
    env_from: list[Object] = []
    """More environment, from ConfigMaps or Secrets of yours; `env` wins."""
    volumes: list[Object] = []
    """More volumes."""
    volume_mounts: list[Object] = []
    """Where they are mounted."""
    node_selector: dict[str, Label] = {}
    """Labels of the nodes to run on."""
    tolerations: list[Object] = []
    """Taints to tolerate."""
    affinity: Object = {}
    """Affinity of the pods."""
    topology_spread: bool = True
    """Prefer different nodes for the replicas of one workload."""
    priority_class_name: str = ""
    """Priority of the pods."""
    runtime_class_name: str = ""
    """Runtime of the pods, for example a sandbox."""
    user: Annotated[int, Field(ge=0)] = 10001
    """User, group and file group of the pods; 0 leaves the choice to the platform (OpenShift)."""
    tmp_size: Quantity = "64Mi"
    """Size of /tmp, the only place a container can write to."""
    startup_seconds: Annotated[int, Field(ge=10, le=3600)] = 180
    """How long a container may take to start before it is restarted."""
    wait_seconds: Annotated[int, Field(ge=10, le=3600)] = 300
    """How long a pod waits for what it depends on before it says so by restarting its wait."""
    pre_stop_seconds: Seconds = 5
    """Pause between leaving the Service and SIGTERM, so that no new call arrives while stopping. Never 0, which
    API servers before 1.32 refuse."""
    grace_seconds: Annotated[int, Field(ge=10, le=3600)] = 40
    """From SIGTERM to SIGKILL: longer than the slowest call that is finished."""


class HealthPaths(Block):
    """Paths that answer GET with 200."""

    live: str
    """While the process is alive."""
    ready: str
    """While it can serve."""


class Workload(Pod):
    """One program of the fleet, as the generator planned it."""

    args: list[str] = []
    """Arguments of the interpreter, which is the image's entry point."""
    env: dict[str, str] = {}
    """Environment; every character is literal."""
    health_paths: HealthPaths | None = None
    """Where to ask for its health. Without: it is asked in MCP."""
    calls: list[str] = []
    """Host names of what it may call."""
    waits_for: list[str] = []
    """URLs that must answer before it starts."""
    secrets: dict[str, str] = {}
    """File name in /run/secrets -> name under `secrets`."""
    egress: bool = False
    """Whether it may reach the world."""
    egress_to: list[Object] = []
    """What it may reach with `egress: true`, in place of `networkPolicy.egressTo`."""
    collector_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port of the collector it sends traces to; `networkPolicy.collectorAt` says where that may be."""
    publish: bool = False
    """Whether it may be called from outside of the fleet."""
    public_url: str = ""
    """Its URL outside of the fleet (`public_url` in agents.yaml), which `ingress` and `httpRoute` serve."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Its port outside of the fleet, where the Service's type opens one."""
    stateless: bool = True
    """Whether replicas can take over from each other."""
    fingerprint: str = ""
    """Changes with the files it reads at its start; its pods are then replaced."""
    image: Image | None = None
    """An image of its own; keys that are not there come from `images`, an empty one means none."""


def _one_replica(schema: dict[str, Any]) -> None:
    """JSON schema of the rule that an agent which remembers is not scaled."""
    schema["if"] = {"properties": {"stateless": {"const": False}}, "required": ["stateless"]}
    off = {"properties": {"enabled": {"const": False}}}
    schema["then"] = {"properties": {"replicas": {"maximum": 1}, "autoscaling": off}}


class State(Block):
    """What a program must not lose over a restart: who registered, conversations, files of a service, or an audit."""

    enabled: bool = False
    """Keep it; written by `pallas-gen helm` for `registry.registration.store`, `keep_conversations`,
    `services.<name>.state` and `gateway.tasks`, and for `gateway.audit` and `gateway.confirm` without a
    `gateway.store`."""
    persistent: bool = True
    """In a PersistentVolumeClaim, which outlives the pod; false: in the pod, which outlives only its containers."""
    existing_claim: str = ""
    """A PersistentVolumeClaim of yours. Empty: the chart makes one, which `helm uninstall` leaves there."""
    size: Quantity = "1Gi"
    """Size of the volume. A registration takes a few KiB, a conversation what its words and images do, an audit a
    quarter more than `gateway.audit.size`, for which `pallas-gen helm` writes it."""
    storage_class: str = ""
    """Storage class of the claim. Empty: the cluster's default."""


class Keeping(Workload):
    """A program that may have something to keep; then there is one of it."""

    model_config = ConfigDict(json_schema_extra=_one_replica)

    state: State = State()
    """What it keeps over a restart."""


class Agent(Keeping):
    """One agent."""

    files: list[str] = []
    """Paths of `project.code` that its pods get."""


class Registry(Keeping):
    """The registry. `stateless: false` when agents may register: they do so with one registry, not with several."""


class Companion(Keeping):
    """One companion service."""

    files: list[str] = []
    """Paths of `project.code` that its pods get."""
    protocol: Literal["mcp", "http", "tcp"] = "mcp"
    """What it speaks on its port."""
    path: str = "/mcp"
    """Path of its MCP endpoint."""
    foreign: bool = False
    """Whether its `image` is not one of the kit's, and is taken as it is."""
    entrypoint: list[str] = []
    """In place of the image's own."""
    container_port: Annotated[int, Field(ge=1, le=65535)] = 8080
    """Port that it listens on, and is called at."""
    health_command: list[str] = []
    """Run in the container to see whether it is up. A foreign one without it and `healthPaths` is asked by its port."""
