"""`pallas-gen doctor`: its exit codes and forms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Where
from pallas_gen.doctor import examine as examining
from pallas_gen.doctor import machine
from pallas_gen.doctor.finding import Finding
from pallas_gen.doctor.machine import Machine

OK = Finding("machine", "ok", "helm", "4.3")


@pytest.fixture
def findings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Finding]:
    """What the doctor finds."""
    monkeypatch.chdir(tmp_path)
    result = [OK]
    monkeypatch.setattr(examining, "examine", lambda *_, **__: result)
    return result


def test_the_exit_code_says_whose_the_trouble_is(findings: list[Finding], run) -> None:
    assert run("doctor") == (0, "machine\n  ok       helm: 4.3\nnothing stands in the way\n", "")
    findings.append(Finding("machine", "warning", "kubectl", "is old", "take a newer one"))
    assert run("doctor")[0] == 0
    findings.append(Finding("ports", "error", "8101", "is taken", "stop it"))
    assert run("doctor")[0] == 1
    findings.append(Finding("project", "error", "agents.yaml", "is wrong", "mend it"))
    assert run("doctor")[0] == 2


def test_a_document_and_quiet(findings: list[Finding], run) -> None:
    code, out, _ = run("doctor", "--format", "json", "-q")
    assert (code, json.loads(out)["findings"][0]["subject"]) == (0, "helm")
    assert run("doctor", "-q") == (0, "", "")
    findings.append(Finding("machine", "warning", "kubectl", "is old", "take a newer one", Code.TOOL_TOO_OLD))
    assert "see docs/problems.md#" in run("doctor", "-v")[1]


def test_a_log_of_an_analysis_has_what_stands_in_the_way(findings: list[Finding], run) -> None:
    """A place in a file is one, and the name of a host is none."""
    place = Where("agents.yaml", 3, 5, "agents.desk")
    findings.append(Finding.of("project", Problem(place, "is wrong", "mend it", code=Code.UNKNOWN_KEY)))
    findings.append(Finding("hosts", "warning", "search.example", "has no address", "look", Code.HOST_UNKNOWN))
    findings.append(Finding("images", "note", "redis:8", "is not here", "pull it", Code.IMAGE_MISSING))
    code, out, err = run("doctor", "--format", "sarif")
    assert (code, err) == (2, "")
    results = json.loads(out)["runs"][0]["results"]
    places = {entry["ruleId"]: entry["locations"][0] for entry in results}
    assert places == {
        "PAL101": {
            "logicalLocations": [{"fullyQualifiedName": "agents.desk"}],
            "physicalLocation": {
                "artifactLocation": {"uri": "agents.yaml"},
                "region": {"startLine": 3, "startColumn": 5},
            },
        },
        "PAL812": {"logicalLocations": [{"fullyQualifiedName": "hosts search.example"}]},
    }
    assert "where" not in json.loads(run("doctor", "--format", "json")[1])["findings"][1]


def test_a_target_that_there_is_not_is_refused(findings: list[Finding], run) -> None:
    code, _, err = run("doctor", "--target", "swarm")
    assert code == 2
    assert "there is no target swarm: processes, compose, helm" in err


def test_a_file_that_is_named_must_be_there(run, tmp_path: Path, monkeypatch) -> None:
    """On a machine that has no tool at all."""
    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr(machine, "Machine", lambda: Machine(run=asked.append, environ={}))
    code, out, _ = run("doctor", "nowhere.yaml", "-q")
    assert (code, "nowhere.yaml: no such file" in out) == (2, True)
    assert "\nproject\n" in f"\n{out}"
    assert "\nproject\n" not in f"\n{run('doctor')[1]}"
    assert ["docker", "version"] in [list(command[:2]) for command in asked]
