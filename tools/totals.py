"""tools/totals.py REPORT...: the ten slowest tests of several pytest runs, and how all went, from their JUnit XML.

Exit code 0 when at least one test passed and none failed, else 1. A run that ended without its report has failed.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

SLOWEST = 10


def main(reports: list[str]) -> int:
    seconds: list[tuple[float, str]] = []
    counts: Counter[str] = Counter(passed=0, failed=0)
    for report in map(Path, reports):
        if not report.exists():
            counts["failed"] += 1
            continue
        for case in ElementTree.parse(report).iter("testcase"):
            outcomes = {child.tag for child in case} & {"failure", "error", "skipped"}
            failed = bool(outcomes - {"skipped"})
            counts["failed" if failed else "skipped" if outcomes else "passed"] += 1
            seconds.append((float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}"))
    print(f"\nThe {SLOWEST} slowest, with setup and teardown:")
    for duration, name in sorted(seconds, reverse=True)[:SLOWEST]:
        print(f"{duration:8.1f} s  {name}")
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 0 if counts["passed"] and not counts["failed"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
