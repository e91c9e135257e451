"""What pip-audit says of the locks -> clean, or every reason why not. `python -m tools.supply_chain.audit` runs it.

Without its advisory service pip-audit skips every package, says "No known vulnerabilities found" and ends with 0. So
its word is not taken: clean is a lock of which every pin was looked up, and in which nothing was found that is not
waived in `requirements/waivers.toml` with a reason and a date.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from pallas_gen.images.inventory import normalised

from . import environment, toml_file

WAIVERS = "requirements/waivers.toml"
LOCKS = (
    "requirements/generator.lock",
    "requirements/registry.lock",
    "requirements/agent.lock",
    "requirements/dev.lock",
    "requirements/release.lock",
    "requirements/site.lock",
    "requirements/policy.lock",
    "requirements/conformance.lock",
    "generator/pallas_gen/dependencies/tools.lock",
)
"""All that is delivered or installed with the kit, and what builds and checks it; npm's and Go's locks are not here."""


@dataclass(frozen=True, slots=True)
class Waiver:
    """One vulnerability that is known and borne until a day."""

    id: str
    package: str
    reason: str
    until: date

    def covers(self, package: str, ids: Iterable[str]) -> bool:
        """Return whether it is about this finding, by its id or one of its aliases."""
        return normalised(self.package) == normalised(package) and self.id in ids


def read_waivers(text: str) -> tuple[list[Waiver], list[str]]:
    """Return the waivers of a file, and a line for each that is not complete."""
    waivers: list[Waiver] = []
    problems = []
    try:
        entries = toml_file.read(WAIVERS, text).get("waiver", [])
    except ValueError as error:
        return [], [str(error)]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return [], [f"{WAIVERS}:{toml_file.line_of(text, 'waiver')} waiver is no list of tables: write [[waiver]]"]
    for number, entry in enumerate(entries, start=1):
        missing = [key for key in ("id", "package", "reason") if not str(entry.get(key, "")).strip()]
        until = entry.get("until")
        if not isinstance(until, date) or isinstance(until, datetime):
            missing.append("until (a day, as 2030-01-31)")
        if missing:
            problems.append(f"{WAIVERS}: waiver {number} lacks {', '.join(missing)}")
        else:
            waivers.append(Waiver(entry["id"], entry["package"], entry["reason"], entry["until"]))
    return waivers, problems


def pins(lock: str) -> dict[str, str]:
    """Return version by normalised name of all pins in a lock."""
    matches = re.finditer(r"^([A-Za-z0-9._-]+)==([^ ;\\\n]+)", lock, re.MULTILINE)
    return {normalised(match[1]): match[2] for match in matches}


def problems(name: str, lock: str, report: str, *, waivers: Sequence[Waiver], today: date) -> list[str]:
    """Return why the lock `name`, with the text `lock`, is not clean by what pip-audit wrote; empty where it is."""
    try:
        entries: list[dict[str, Any]] = json.loads(report)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return [f"{name}: pip-audit gave no report; its message is above"]
    lines = []
    audited: dict[str, str] = {}
    skipped = []
    for entry in entries:
        if "skip_reason" in entry or "vulns" not in entry:
            skipped.append(str(entry.get("name")))
            continue
        audited[normalised(entry["name"])] = entry["version"]
        for vulnerability in entry["vulns"]:
            if line := _finding(entry, vulnerability, waivers, today):
                lines.append(f"{name}: {line}")
    if skipped:
        lines.append(
            f"{name}: {len(skipped)} of {len(entries)} packages were not looked up ({_some(skipped)}): is the advisory "
            "service to be reached? What was skipped is not clean"
        )
    wanted = pins(lock)
    absent = [pin for pin in wanted if audited.get(pin) != wanted[pin] and pin not in map(normalised, skipped)]
    if absent or not wanted:
        lines.append(f"{name}: {len(absent)} of {len(wanted)} pins are not in the report ({_some(absent)})")
    return lines


def unused(waivers: Iterable[Waiver], reports: Iterable[str]) -> list[str]:
    """Return a line for each waiver that no report bears out."""
    findings = [
        (entry["name"], {vulnerability["id"], *vulnerability.get("aliases", [])})
        for report in reports
        for entry in json.loads(report)["dependencies"]
        for vulnerability in entry.get("vulns", [])
    ]
    return [
        f"{WAIVERS}: {waiver.id} of {waiver.package} is found in no lock: take the waiver out"
        for waiver in waivers
        if not any(waiver.covers(package, ids) for package, ids in findings)
    ]


def main() -> int:
    """Audit all locks; print what is wrong, or that they are clean. Return 1 for anything that is not clean."""
    root = environment.ROOT
    waivers, lines = read_waivers((root / WAIVERS).read_text("utf-8"))
    reports = {name: _report(root / name) for name in LOCKS}
    today = datetime.now(UTC).date()
    for name, report in reports.items():
        lines += problems(name, (root / name).read_text("utf-8"), report, waivers=waivers, today=today)
    if not lines:
        lines = unused(waivers, reports.values())
    for line in lines:
        print(line, file=sys.stderr)
    if not lines:
        print(f"{len(LOCKS)} locks are clean; {len(waivers)} vulnerabilities are waived in {WAIVERS}")
    return 1 if lines else 0


def _report(lock: Path) -> str:
    """Return what pip-audit writes about a lock; its exit code is 0 or 1 whatever it means."""
    tool = environment.ready() / "bin" / "pip-audit"
    options = ("--disable-pip", "--require-hashes", "--progress-spinner", "off", "--format", "json", "--desc", "off")
    done = subprocess.run(
        [tool, *options, "--aliases", "on", "--requirement", lock], check=False, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def _finding(entry: dict[str, Any], vulnerability: dict[str, Any], waivers: Sequence[Waiver], today: date) -> str:
    """Return a line about a vulnerability, empty where a waiver covers it."""
    ids = {vulnerability["id"], *vulnerability.get("aliases", [])}
    remedy = ", ".join(vulnerability.get("fix_versions", [])) or "no version yet"
    line = f"{entry['name']} {entry['version']} has {vulnerability['id']}, mended by {remedy}"
    matching = [waiver for waiver in waivers if waiver.covers(entry["name"], ids)]
    if not matching:
        return line
    latest = max(waiver.until for waiver in matching)
    return f"{line}; its waiver ended on {latest}" if latest < today else ""


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


if __name__ == "__main__":
    sys.exit(main())
