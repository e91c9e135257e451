"""tools/totals.py [--again REPORT] [--listed FILE] REPORT...: the ten slowest tests of pytest runs, and how all went.

REPORT is JUnit XML of pytest. A test that failed and passes in the one after --again is unsteady: it is named at the
end, and fails nothing (docs/decisions/0051). A run that ended without its report has failed. FILE has the tests there
are, one a line: where every run has its report, each that is in none of them is named, and so is what was skipped
where CI is set. Exit code 0 when at least one test passed, none failed and none is named so, else 1.

`--failed REPORT...` prints instead, a line each, the tests that may have such a second look: all that failed, or none
where they are more than three, or where something failed that is no test.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

SLOWEST = 10
NAMED = 20
"""How many of the tests that have not run are named."""
LOOKS = 3
"""How many failures of one run may be chance: what breaks more is broken."""
_CRASHED = re.compile(r"worker '\w+' crashed while running")
"""pytest-xdist's words for a test whose process is gone: it crashed, or hung until pytest-timeout ended it."""


class Runs:  # no dataclass: to import that is a quarter of what this program takes
    """What the tests of some runs did."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        """Test -> `passed`, `skipped` or `failed`; a test of a file that is here by pytest's name for it."""
        self.seconds: list[tuple[float, str]] = []
        self.lost = 0
        """Runs without a report."""
        self.crashed = False
        """Whether a test took its process with it, which is no chance either."""

    @property
    def failed(self) -> list[str]:
        return [test for test, outcome in self.outcomes.items() if outcome == "failed"]


def read(reports: Iterable[Path]) -> Runs:
    """Read the reports; a test that fails and whose teardown fails too is there twice, and counts once."""
    runs = Runs()
    for report in reports:
        if not report.exists():
            runs.lost += 1
            continue
        for case in ElementTree.parse(report).iter("testcase"):
            test = name_of(case)
            outcomes = {child.tag for child in case} & {"failure", "error", "skipped"}
            if outcomes - {"skipped"} or runs.outcomes.get(test) == "failed":
                runs.outcomes[test] = "failed"
            else:
                runs.outcomes[test] = "skipped" if outcomes else "passed"
            runs.crashed |= any(_CRASHED.match(child.text or "") for child in case.iter("error"))
            runs.seconds.append((float(case.get("time", 0)), test))
    return runs


def name_of(case: ElementTree.Element) -> str:
    """Return `FILE::CLASS::TEST`, by which pytest finds the test, or as the report has it where that is no file."""
    parts, name = case.get("classname", "").split("."), case.get("name", "")
    for length in range(len(parts), 0, -1):
        path = f"{'/'.join(parts[:length])}.py"
        if Path(path).is_file():
            return "::".join((path, *parts[length:], name))
    return f"{'.'.join(parts)}::{name}"


def to_look_at(runs: Runs) -> list[str]:
    """Return the tests that failed where a second look at them is worth it."""
    tests = runs.failed
    known = all(Path(test.partition("::")[0]).is_file() for test in tests)
    return tests if known and not runs.lost and not runs.crashed and len(tests) <= LOOKS else []


def not_run(runs: Runs, listed: Path | None) -> list[str]:
    """Return what was to run and has not: of the tests in the file `listed`, and where CI is set the skipped."""
    absent = []
    if listed and not runs.lost:
        tests = listed.read_text("utf-8").splitlines() if listed.exists() else []
        absent = [test for test in tests or [f"any: {listed} names none"] if test not in runs.outcomes]
    return absent + [test for test, outcome in runs.outcomes.items() if outcome == "skipped" and os.environ.get("CI")]


def totals(runs: Runs, again: Runs, listed: Path | None = None) -> int:
    """Print the slowest, the counts, and last what has not run and the unsteady; return the exit code."""
    absent = not_run(runs, listed)
    unsteady = [test for test in runs.failed if again.outcomes.get(test) == "passed"]
    counts = Counter(passed=0, failed=runs.lost)
    counts.update((runs.outcomes | dict.fromkeys(unsteady, "unsteady")).values())
    print(f"\nThe {SLOWEST} slowest, with setup and teardown:")
    for duration, name in sorted(runs.seconds, reverse=True)[:SLOWEST]:
        print(f"{duration:8.1f} s  {name}")
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    for test in absent[:NAMED]:
        print(f"NOT RUN {test}")
    if more := absent[NAMED:]:
        print(f"NOT RUN {len(more)} more")
    for test in unsteady:
        print(f"UNSTEADY {test} (failed, as shown above; passed alone)")
        if "GITHUB_ACTIONS" in os.environ:
            print(f"::warning title=Unsteady test::{test} failed, and passed alone")
    return 0 if counts["passed"] and not counts["failed"] and not absent else 1


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--failed", action="store_true")
    parser.add_argument("--again", type=Path)
    parser.add_argument("--listed", type=Path)
    parser.add_argument("reports", type=Path, nargs="+")
    options = parser.parse_args(arguments)
    runs = read(options.reports)
    if options.failed:
        print("".join(f"{test}\n" for test in to_look_at(runs)), end="")
        return 0
    return totals(runs, read([options.again] if options.again else []), options.listed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
