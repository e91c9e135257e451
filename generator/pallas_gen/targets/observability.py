"""A fleet for Prometheus and Grafana: a scrape configuration, alert rules and a dashboard.

Everything is asked of the registry's metrics, which are there whatever the agents do; the agents' own metrics are found
through the registry's service discovery.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_gen.targets.base import RenderContext, Target

if TYPE_CHECKING:
    from pallas_contract.fleet.resolved import ResolvedFleet
    from pallas_gen.output.write import Files

SCRAPE, ALERTS, DASHBOARD = map(PurePosixPath, ("prometheus.yaml", "alerts.yaml", "dashboard.json"))
JOB = "pallas-registry"
AGENTS_JOB = "pallas-agents"


def render(fleet: ResolvedFleet, source: str) -> dict[PurePosixPath, str]:
    """Render the three files. `source` is the name of the fleet file, for their headers."""
    from pallas_gen.output import yaml as yaml_out

    return {
        SCRAPE: yaml_out.dump(scrape(fleet), source=source, override="a file of your own", literal=True),
        ALERTS: yaml_out.dump(alerts(fleet), source=source, override="a file of your own", literal=True),
        DASHBOARD: json.dumps(dashboard(fleet), indent=2, ensure_ascii=False) + "\n",
    }


def scrape(fleet: ResolvedFleet) -> dict[str, Any]:
    """Return a Prometheus configuration for where the fleet is published: its `public_url`, else its ports."""
    from pallas_contract.launch import addresses

    registry = addresses.public_url(fleet, names.REGISTRY, fleet.registry_port)
    url = urlsplit(registry)
    target = {"targets": [url.netloc], "labels": {"fleet": fleet.name}}
    beyond = {"scheme": url.scheme, "metrics_path": f"{url.path}/metrics"} if fleet.public_url else {}
    discovery = [{"url": f"{registry}/prometheus/targets", "refresh_interval": "15s"}]
    return {
        "global": {"scrape_interval": "15s"},
        "rule_files": [ALERTS.name],
        "scrape_configs": [
            {"job_name": JOB, **beyond, "static_configs": [target]},
            {"job_name": AGENTS_JOB, "http_sd_configs": discovery},
        ],
    }


def alerts(fleet: ResolvedFleet) -> dict[str, Any]:
    """Return alert rules: what a person should look at, and after how long."""
    return {"groups": [{"name": f"pallas {fleet.name}", "rules": list(_rules(fleet))}]}


def selector(fleet: ResolvedFleet) -> str:
    """Return the label selector of the registry's series of this fleet."""
    name = fleet.name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{{job="{JOB}",fleet="{name}"}}'


def _rules(fleet: ResolvedFleet) -> Iterator[dict[str, Any]]:
    of = selector(fleet)
    # six rounds of probes without an answer or a failure: the registry itself is late
    stale = max(60, round(6 * fleet.registry.probe_interval))
    who = "{{ $labels.agent }}"
    yield _rule(
        "PallasRegistryDown",
        f"absent(pallas_registry_config_ok{of})",
        wait="2m",
        severity="critical",
        summary="The registry gives no metrics",
        description="Nothing is known about the agents as long as this lasts.",
    )
    yield _rule(
        "PallasAgentDown",
        f"pallas_agent_health{of} == 0",
        wait="1m",
        severity="critical",
        summary=f"{who} is down",
        description="No replica answers, or none was found. The registry's status page says why, and what started it.",
        reason=_CODE,
    )
    yield _rule(
        "PallasAgentDegraded",
        f"pallas_agent_health{of} == 0.5",
        wait="5m",
        severity="warning",
        summary=f"{who} is degraded",
        description="It answers, but something it needs does not, its replicas differ, or it wants credentials.",
        reason=_CODE,
    )
    yield _rule(
        "PallasServiceDown",
        f"pallas_service_health{of} < 1",
        wait="2m",
        severity="warning",
        summary="Service {{ $labels.name }} is not well",
        description="It does not answer as its health in the fleet file says. Agents that need it say so themselves.",
        reason=_SERVICE_CODE,
    )
    yield _rule(
        "PallasAgentFlapping",
        f"sum by (fleet, agent) (increase(pallas_agent_state_changes_total{of}[15m])) > 6",
        wait="0m",
        severity="warning",
        summary=f"{who} keeps changing its state",
        description="More than six changes in a quarter of an hour; "
        "the status page lists the last ones with their reasons.",
    )
    yield _rule(
        "PallasRegistryStale",
        f"pallas_registry_last_probe_age_seconds{of} > {stale}",
        wait="1m",
        severity="warning",
        summary=f"{who} has not been probed for {{{{ $value | humanizeDuration }}}}",
        description=f"Probes are due every {fleet.registry.probe_interval:g} s: the registry's machine is overloaded.",
    )
    yield _rule(
        "PallasRegistryStarved",
        f"rate(pallas_registry_lost_seconds_total{of}[5m]) > 0.1",
        wait="5m",
        severity="warning",
        summary="The registry gets too little processor time",
        description="For more than a tenth of the time it should have run and did not. "
        "What it says grows old; it calls nobody silent for it.",
    )
    yield _rule(
        "PallasRegistryConfigBroken",
        f"pallas_registry_config_ok{of} == 0",
        wait="1m",
        severity="warning",
        summary="The fleet file on disk cannot be used",
        description="The registry goes on with the one it read before; its log names every problem.",
    )
    yield _rule(
        "PallasUndeclaredAddress",
        f"pallas_registry_undeclared_addresses{of} > 0",
        wait="5m",
        severity="warning",
        summary="Something in the fleet's DNS domain is in no fleet file",
        description="The registry's status page lists the addresses; it asks them nothing.",
    )


# An annotation and no label: an alert whose labels change begins to wait anew, and a reason may change with each probe.
_CODE = (
    '{{ with printf "pallas_agent_reason{job=%q,fleet=%q,agent=%q}" $labels.job $labels.fleet $labels.agent | query }}'
    '{{ . | first | label "code" }}{{ end }}'
)
"""The code of the reason at the moment of the alert (docs/registry.md); empty where the registry tells none."""
_SERVICE_CODE = (
    '{{ with printf "pallas_service_reason{job=%q,fleet=%q,name=%q}" $labels.job $labels.fleet $labels.name | query }}'
    '{{ . | first | label "code" }}{{ end }}'
)


def _rule(
    name: str, expr: str, *, wait: str, severity: str, summary: str, description: str, **annotations: str
) -> dict[str, Any]:
    return {
        "alert": name,
        "expr": expr,
        "for": wait,
        "keep_firing_for": "1m",
        "labels": {"severity": severity},
        "annotations": {"summary": summary, "description": description, **annotations},
    }


def dashboard(fleet: ResolvedFleet) -> dict[str, Any]:
    """Return a Grafana dashboard in the classic format, which every Grafana imports."""
    of = selector(fleet)
    panels = [_panel(number, panel) for number, panel in enumerate(_panels(of), 1)]
    datasource = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    return {
        "title": f"Pallas: {fleet.name}",
        "uid": None,  # Grafana gives one at the import: two fleets have two dashboards
        "tags": ["pallas"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [datasource]},
        "panels": panels,
    }


_Position = tuple[int, int, int, int]
"""x, y, width, height in Grafana's grid of 24 columns."""
_Panel = tuple[str, str, str, str, str, _Position]
"""Title, kind, query, legend, unit, position."""


def _panels(of: str) -> Iterator[_Panel]:
    duration = "pallas_registry_probe_duration_seconds_bucket"
    yield "Agents by state", "stat", f"pallas_registry_agents{of}", "{{status}}", "none", (0, 0, 16, 4)
    yield (
        "Fleet file in use",
        "stat",
        f"pallas_registry_config_ok{of}",
        "is the one on disk",
        "bool_yes_no",
        (16, 0, 4, 4),
    )
    undeclared = f"pallas_registry_undeclared_addresses{of}"
    yield "Undeclared addresses", "stat", undeclared, "addresses", "none", (20, 0, 4, 4)
    yield "Health", "state-timeline", f"pallas_agent_health{of}", "{{agent}}", "none", (0, 4, 24, 9)
    yield "Replicas", "timeseries", f"pallas_agent_replicas{of}", "{{agent}}", "none", (0, 13, 8, 8)
    changes = f"sum by (agent) (increase(pallas_agent_state_changes_total{of}[$__rate_interval]))"
    yield "Changes of state", "timeseries", changes, "{{agent}}", "none", (8, 13, 8, 8)
    age = f"pallas_registry_last_probe_age_seconds{of}"
    yield "Age of the last probe", "timeseries", age, "{{agent}}", "s", (16, 13, 8, 8)
    slow = f"histogram_quantile(0.99, sum by (le) (rate({duration}{of}[$__rate_interval])))"
    yield "Probe duration, 99th percentile", "timeseries", slow, "p99", "s", (0, 21, 6, 8)
    count = f"sum(rate(pallas_registry_probe_duration_seconds_count{of}[$__rate_interval]))"
    yield "Probes per second", "timeseries", count, "probes", "reqps", (6, 21, 6, 8)
    lateness = f"sum by (le) (rate(pallas_registry_probe_lateness_seconds_bucket{of}[$__rate_interval]))"
    late = f"histogram_quantile(0.99, {lateness})"
    yield "Lateness of probes, 99th percentile", "timeseries", late, "p99", "s", (12, 21, 6, 8)
    lost = f"rate(pallas_registry_lost_seconds_total{of}[$__rate_interval])"
    yield "Time the registry did not get", "timeseries", lost, "lost", "percentunit", (18, 21, 6, 8)
    reasons = f"count by (code) (pallas_agent_reason{of})"
    yield "Agents by reason", "timeseries", reasons, "{{code}}", "none", (0, 29, 24, 8)


_HEALTH = [
    {"type": "value", "options": {"0": {"text": "down", "color": "red"}}},
    {"type": "value", "options": {"0.5": {"text": "degraded", "color": "orange"}}},
    {"type": "value", "options": {"1": {"text": "ok", "color": "green"}}},
]


def _panel(number: int, panel: _Panel) -> dict[str, Any]:
    title, kind, query, legend, unit, (x, y, width, height) = panel
    source = {"type": "prometheus", "uid": "${datasource}"}
    defaults = {"unit": unit} | ({"mappings": _HEALTH} if kind == "state-timeline" else {})
    return {
        "id": number,
        "title": title,
        "type": kind,
        "datasource": source,
        "gridPos": {"x": x, "y": y, "w": width, "h": height},
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [{"refId": "A", "datasource": source, "expr": query, "legendFormat": legend}],
    }


def _sums() -> PurePosixPath:
    from pallas_gen.output import write

    return write.sums_file("observability")


def _render(context: RenderContext) -> Files:
    from pallas_gen.output import write

    files = render(context.loaded.fleet, context.plan.source)
    return files | {_sums(): write.sums(files)}


def _next_steps(context: RenderContext) -> Iterator[str]:
    yield f"next: name {ALERTS} under rule_files of Prometheus, and import {DASHBOARD} in Grafana"


TARGET = Target(
    name="observability",
    summary="Write a scrape configuration and alert rules for Prometheus, and a dashboard for Grafana.",
    noun="observability",
    files=(SCRAPE, ALERTS, DASHBOARD),
    render=_render,
    sums=_sums,
    folder="observability",
    mounted=False,
    next_steps=_next_steps,
)
