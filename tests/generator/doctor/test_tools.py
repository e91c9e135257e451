"""Tools: not here, too old, without an engine; and who needs them decides how bad that is."""

from __future__ import annotations

import pytest

from pallas_contract import extras
from pallas_gen.doctor.finding import Finding
from pallas_gen.doctor.tools import tools
from pallas_gen.running.tool import Done


def by_subject(findings) -> dict[str, Finding]:
    return {finding.subject: finding for finding in findings}


def test_what_is_here_has_its_version(machine) -> None:
    findings = by_subject(tools(machine(), {}))
    versions = {name: finding.message for name, finding in findings.items()}
    assert {name: text for name, text in versions.items() if not name.startswith(("Python", "extra"))} == {
        "Docker Engine": "26.1.5+dfsg1",
        "docker compose": "2.26.1-4",
        "docker buildx": "0.13.1+ds1",
        "helm": "3.19.0",
        "kubectl": "1.32.4",
    }
    assert {finding.state for finding in findings.values()} == {"ok"}


@pytest.mark.parametrize("state", ["note", "warning", "error"])
def test_a_missing_tool_is_as_bad_as_it_is_needed(machine, state: str) -> None:
    wanted = {} if state == "note" else {"helm": state}
    findings = by_subject(tools(machine({"helm": None, "kubectl": None}), wanted))
    helm = findings["helm"]
    assert (helm.state, helm.message, helm.hint) == (state, "is not here", "install helm 3.19 or newer, for the chart")
    assert findings["kubectl"].state == "note"


def test_a_plugin_that_docker_does_not_have_is_not_here(machine) -> None:
    done = Done(1, "", "docker: 'compose' is not a docker command.\nSee 'docker --help'\n\n")
    finding = by_subject(tools(machine({"docker compose": done}), {"compose": "error"}))["docker compose"]
    assert (finding.state, finding.message) == ("error", "is not here: See 'docker --help'")


@pytest.mark.parametrize(
    ("output", "state"), [("2.23.3\n", "warning"), ("2.24.0", "ok"), ("5.0.0", "ok"), ("v10.1", "ok")]
)
def test_an_old_one_is_a_warning(machine, output: str, state: str) -> None:
    finding = by_subject(tools(machine({"docker compose": Done(0, output)}), {}))["docker compose"]
    assert finding.state == state
    assert ("too old" in finding.message) == (state != "ok")


@pytest.mark.parametrize("output", ["null\n", ""])
def test_an_engine_that_is_away_is_no_missing_tool(machine, output: str) -> None:
    done = Done(1, output, "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.\n")
    finding = by_subject(tools(machine({"docker version": done}), {"compose": "warning"}))["Docker Engine"]
    assert finding.state == "warning"
    assert finding.message.startswith("does not answer: Cannot connect to the Docker daemon")
    assert "start Docker" in finding.hint


def test_an_extra_is_needed_by_processes_alone(machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "missing", lambda *names: ["uvloop"] if "registry" in names else [])
    assert by_subject(tools(machine(), {}))["extra `local`"].state == "note"
    local = by_subject(tools(machine(), {"processes": "error"}))["extra `local`"]
    assert (local.state, local.message) == ("error", "not installed: uvloop")
    assert local.hint.startswith("pip install 'pallas-kit[local]'")
