"""The values of the Helm chart: one closed model, from which its defaults, its schema and its reference are made.

Keys are camelCase, as charts have them. Maps instead of lists wherever a second values file may want to change one
entry: Helm merges maps and replaces lists.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pallas_gen.targets.helm.edge.values import Gateway
from pallas_gen.targets.helm.ip_blocks import WORLD, ip_block
from pallas_gen.targets.helm.values_workload import (
    Agent,
    Block,
    Companion,
    Images,
    Label,
    Name,
    Object,
    Pod,
    Registry,
)


class Secret(Block):
    """One secret file. Either its content or a Secret that has it must be given."""

    file: str = ""
    """Where the generator saw it; not read by the chart."""
    content: str = ""
    """The content, for `--set-file`; the chart then creates the Secret. Helm keeps it in its release record."""
    existing_secret: str = ""
    """Name of a Secret of yours that holds it."""
    key: str = ""
    """Its key there. Default: the name of this entry."""


class Project(Block):
    """The files of the project folder."""

    name: Label = ""
    """The fleet's name, as a label value."""
    delivery: Literal["configMap", "image"] = "configMap"
    """How code reaches agents: from the ConfigMap below, or from the image, which then has it in /project."""
    config: dict[str, str] = {}
    """The fleet file and fast-agent's configuration by name; every pod gets them."""
    lock: dict[str, str] = {}
    """agents.lock by name, where there is one; the registry alone gets it, from a ConfigMap of its own."""
    code: dict[str, str] = {}
    """Everything else by path: modules, agent cards and their data. A pod gets those in its own `files`."""


class NetworkPolicy(Block):
    """Who may reach whom, from the graph in agents.yaml. Needs a network plugin that enforces policies."""

    enabled: bool = True
    """Let through what the graph declares, and nothing else."""
    published_from: list[Object] = []
    """Peers that may call what is published: agents, gateway, registry. Empty: nobody; with `ingress` or `httpRoute`
    on, all other namespaces; with a `service.type` other than ClusterIP, the world."""
    monitoring_from: list[Object] = [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    ]
    """Peers that may scrape metrics, when `serviceMonitor` is on."""
    dns_to: list[Object] = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}]
    """Where names are resolved, at port 53. Empty: nowhere."""
    collector_at: list[Object] = [
        {"namespaceSelector": {}},
        *map(ip_block, WORLD),
    ]
    """Where the collector of traces may be, for workloads with `collectorPort`, at that port only. Name its namespace
    to narrow it. Empty: nowhere."""
    egress_to: list[Object] = [*map(ip_block, WORLD)]
    """The world, for workloads with `egress: true`: without the addresses of cloud metadata services.
    Empty: nowhere, but for workloads with an `egressTo` of their own."""


class Exposure(Block):
    """What is published, at its `publicUrl`."""

    enabled: bool = False
    """Create it. Needs `public_url` in agents.yaml, so that the registry publishes what is served here."""
    annotations: dict[str, str] = {}
    """Annotations of the object."""


class Ingress(Exposure):
    """An Ingress over the published agents, the gateway and the registry."""

    class_name: str = ""
    """Class of the Ingress. Empty: the cluster's default."""
    tls_secret: str = ""
    """Secret with a certificate for all of these host names. Empty: no TLS here."""


class HttpRoute(Exposure):
    """One HTTPRoute (Gateway API) per published agent, for the gateway and for the registry."""

    parent_refs: list[Object] = []
    """The Gateways to attach to."""


class ServiceMonitor(Block):
    """A ServiceMonitor over agents, gateway and registry (Prometheus Operator)."""

    enabled: bool = False
    """Create it."""
    interval: str = "30s"
    """Time between scrapes."""
    labels: dict[str, Label] = {}
    """Labels by which your Prometheus finds it."""


class PrometheusRule(Block):
    """Alerts on the health the registry measures (Prometheus Operator)."""

    enabled: bool = False
    """Create it."""
    labels: dict[str, Label] = {}
    """Labels by which your Prometheus finds it."""


class Toggle(Block):
    """Something that is on or off."""

    enabled: bool = False
    """Switch it on."""


class Values(Block):
    """Everything the chart takes."""

    global_: Annotated[Object, Field(alias="global")] = {}
    """Shared with other charts when this is a subchart; `imageRegistry` replaces every image's registry."""
    project: Project = Project()
    """The project folder."""
    images: Images = Images()
    """Where images come from."""
    agents: dict[Name, Agent] = {}
    """The agents by name; written by `pallas-gen helm`."""
    services: dict[Name, Companion] = {}
    """Companion services by name; written by `pallas-gen helm`."""
    registry: Registry = Registry()
    """The registry. Several replicas observe independently; where agents may register, there is one."""
    gateway: Gateway = Gateway()
    """The gateway, if there is one; written by `pallas-gen helm`."""
    secrets: dict[str, Secret] = {}
    """Secret files by name; written by `pallas-gen helm`, without any content."""
    defaults: Pod = Pod()
    """For every workload that does not say otherwise."""
    network_policy: NetworkPolicy = NetworkPolicy()
    """Network policies."""
    ingress: Ingress = Ingress()
    """Ingress."""
    http_route: HttpRoute = HttpRoute()
    """Gateway API routes."""
    service_monitor: ServiceMonitor = ServiceMonitor()
    """Scraping."""
    prometheus_rule: PrometheusRule = PrometheusRule()
    """Alerts."""
    dashboard: Toggle = Toggle()
    """A ConfigMap with a Grafana dashboard, labelled grafana_dashboard."""
    kagent: Toggle = Toggle()
    """Labels and annotations by which kagent finds the agents' Services."""
    cluster_domain: str = "cluster.local"
    """The cluster's DNS domain."""
    extra_objects: list[Object] = []
    """More objects, installed and removed with the release."""
