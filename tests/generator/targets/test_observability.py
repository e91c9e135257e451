"""Alert rules that fire when they should and not before (promtool), and files that Prometheus and Grafana take."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from pallas_contract.fleet.model import Agent, Fleet
from pallas_contract.fleet.resolved import ResolvedFleet, resolve
from pallas_contract.problems import Refused
from pallas_gen.cli import app
from pallas_gen.targets import observability

PROMTOOL = shutil.which("promtool")


def fleet(name: str = "demo", **more: object) -> ResolvedFleet:
    return resolve(Fleet(name=name, agents={"harper": Agent(module="agents.harper", port=8201)}, **more))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in observability.render(fleet(), "agents.yaml").items():
        (tmp_path / name).write_text(text)
    return tmp_path


def promtool(*arguments: str | Path) -> None:
    done = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def series(metric: str, values: str, **labels: str) -> dict[str, str]:
    pairs = {"job": "pallas-registry", "fleet": "demo", **labels}
    return {"series": f"{metric}{{{', '.join(f'{key}="{value}"' for key, value in pairs.items())}}}", "values": values}


CASES = {
    "PallasAgentDown": (series("pallas_agent_health", "1 1 0x9", agent="harper"), "2m", "3m"),
    "PallasAgentDegraded": (series("pallas_agent_health", "1 0.5x20", agent="harper"), "5m", "6m"),
    "PallasAgentFlapping": (
        series("pallas_agent_state_changes_total", "1+1x30", agent="harper", old="ok", new="error"),
        "5m",
        "9m",
    ),
    "PallasServiceDown": (series("pallas_service_health", "1 1 0x9", name="weather"), "2m", "5m"),
    "PallasRegistryStale": (series("pallas_registry_last_probe_age_seconds", "3 61x20", agent="harper"), "1m", "2m"),
    "PallasRegistryStarved": (series("pallas_registry_lost_seconds_total", "0+12x30"), "5m", "10m"),
    "PallasRegistryConfigBroken": (series("pallas_registry_config_ok", "1 0x20"), "1m", "2m"),
    "PallasRegistryDown": (series("pallas_registry_config_ok", "1 1 stale"), "3m", "5m"),
    "PallasUndeclaredAddress": (series("pallas_registry_undeclared_addresses", "0 2x20"), "5m", "6m"),
}


REASONS = [
    series("pallas_agent_reason", "_ _ 1x40", agent="harper", code="NoAnswer"),
    series("pallas_agent_reason", "1x40", agent="research", code="ReplicaMissing"),
    series("pallas_service_reason", "_ _ 1x40", name="weather", code="NoAnswer"),
]


def test_the_rules_about_an_agent_give_the_code_of_its_reason() -> None:
    (group,) = observability.alerts(fleet())["groups"]
    coded = [rule["alert"] for rule in group["rules"] if "reason" in rule["annotations"]]
    assert coded == ["PallasAgentDown", "PallasAgentDegraded", "PallasServiceDown"]


def test_every_rule_has_a_case() -> None:
    (group,) = observability.alerts(fleet())["groups"]
    assert {rule["alert"] for rule in group["rules"]} == set(CASES)


@pytest.mark.prometheus
@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool: tools/prometheus")
@pytest.mark.parametrize("alert", CASES)
def test_an_alert_fires_when_it_should_and_not_before(folder: Path, alert: str) -> None:
    injected, quiet, firing = CASES[alert]
    (group,) = yaml.safe_load((folder / "alerts.yaml").read_text())["groups"]
    group["rules"] = [rule for rule in group["rules"] if rule["alert"] == alert]
    (rule,) = group["rules"]
    (folder / "one.yaml").write_text(yaml.safe_dump({"groups": [group]}))
    labels = dict(re.findall(r'(\w+)="([^"]*)"', injected["series"]))
    kept = {key: labels[key] for key in ("agent", "fleet", "name") if key in labels}
    if "sum by" not in rule["expr"]:
        kept |= {"job": "pallas-registry"}
    expected = {"exp_labels": {"severity": rule["labels"]["severity"], **kept}}
    if "{{ $value" in rule["annotations"]["summary"]:
        expected["exp_annotations"] = {**rule["annotations"], "summary": "harper has not been probed for 1m 1s"}
    else:
        said = {
            key: text.replace("{{ $labels.agent }}", "harper").replace("{{ $labels.name }}", "weather")
            for key, text in rule["annotations"].items()
        }
        expected["exp_annotations"] = said | ({"reason": "NoAnswer"} if "reason" in said else {})
    tests = [
        {"eval_time": quiet, "alertname": alert, "exp_alerts": []},
        {"eval_time": firing, "alertname": alert, "exp_alerts": [expected]},
    ]
    whole = {
        "rule_files": ["one.yaml"],
        "tests": [{"interval": "1m", "input_series": [injected, *REASONS], "alert_rule_test": tests}],
    }
    (folder / "test.yaml").write_text(yaml.safe_dump(whole))
    promtool("test", "rules", folder / "test.yaml")


@pytest.mark.prometheus
@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool: tools/prometheus")
@pytest.mark.parametrize("name", ["demo", 'a "quoted" \\ one', "{{ 1 }}", "naïve fleet: yes"])
def test_prometheus_takes_the_files_whatever_the_fleets_name(tmp_path: Path, name: str) -> None:
    for file, text in observability.render(fleet(name), "agents.yaml").items():
        (tmp_path / file).write_text(text)
    promtool("check", "config", tmp_path / "prometheus.yaml")


@pytest.mark.parametrize(
    ("public_url", "target", "path"),
    [
        ("https://{name}.example.com", "registry.example.com", "/metrics"),
        ("https://example.com:8443/ai/{name}", "example.com:8443", "/ai/registry/metrics"),
    ],
)
def test_a_registry_behind_a_proxy_is_asked_there(public_url: str, target: str, path: str) -> None:
    own, agents = observability.scrape(fleet(public_url=public_url))["scrape_configs"]
    assert (own["static_configs"][0]["targets"], own["scheme"], own["metrics_path"]) == ([target], "https", path)
    root = path.removesuffix("/metrics")
    assert agents["http_sd_configs"][0]["url"] == f"https://{target}{root}/prometheus/targets"


def test_a_slow_probe_interval_is_not_called_stale() -> None:
    rules = observability.alerts(fleet(registry={"probe_interval": 60}))["groups"][0]["rules"]
    (stale,) = [rule for rule in rules if rule["alert"] == "PallasRegistryStale"]
    assert stale["expr"].endswith("> 360")


def test_panels_do_not_overlap_and_ask_the_chosen_datasource() -> None:
    board = observability.dashboard(fleet())
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in board["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert {panel["datasource"]["uid"] for panel in board["panels"]} == {"${datasource}"}


def test_the_command_writes_the_folder_and_notices_edits(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "harper.py").write_text("fast = None\n")
    (tmp_path / "agents.yaml").write_text("name: demo\nagents: {harper: {module: agents.harper, port: 8201}}\n")
    run = CliRunner().invoke
    file = ["-f", str(tmp_path / "agents.yaml")]
    assert run(app, ["observability", *file]).exit_code == 0
    board = tmp_path / "observability" / "dashboard.json"
    assert json.loads(board.read_text())["title"] == "Pallas: demo"
    assert run(app, ["observability", *file, "--check"]).exit_code == 0
    board.write_text("{}")
    assert isinstance(run(app, ["observability", *file]).exception, Refused)
