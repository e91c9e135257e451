"""tools/supply_chain/audit.py over what pip-audit wrote; `recorded/` has one report of each kind.

`without_service.json` is from a machine without the advisory service, where pip-audit said "No known vulnerabilities
found" and ended with 0. The two others are written by pip-audit's own formatter, of results made by hand.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tools.supply_chain import audit, checkout
from tools.supply_chain.audit import Waiver

LOCK = "anyio==4.16.0 \\\n    --hash=sha256:aa\n    # via starlette\nh11==0.16.0 \\\n    --hash=sha256:bb\n"
TODAY = date(2030, 6, 1)
FOUND = "a.lock: h11 0.16.0 has PYSEC-2030-1, mended by 0.17.0"


def recorded(name: str) -> str:
    return (Path(__file__).parent / "recorded" / f"{name}.json").read_text()


def problems(report: str, *waivers: Waiver, lock: str = LOCK) -> list[str]:
    return audit.problems("a.lock", lock, report, waivers=waivers, today=TODAY)


def waiver(name: str, until: date, package: str = "H11") -> Waiver:
    return Waiver(name, package, "nothing calls it", until)


def test_every_pin_looked_up_and_nothing_found_is_clean() -> None:
    assert problems(recorded("clean")) == []


def test_skipped_is_not_clean() -> None:
    """Every package was skipped; pip-audit itself calls that clean."""
    assert problems(recorded("without_service")) == [
        "a.lock: 2 of 2 packages were not looked up (anyio, h11): is the advisory service to be reached? "
        "What was skipped is not clean"
    ]


def test_one_that_was_skipped_is_enough() -> None:
    mixed = recorded("clean").replace('"version": "0.16.0", "vulns": []', '"skip_reason": "no"')
    assert problems(mixed)[0].startswith("a.lock: 1 of 2 packages were not looked up (h11)")


@pytest.mark.parametrize("report", ["", "Traceback", "[]", "{}"])
def test_no_report_is_not_clean(report: str) -> None:
    assert problems(report) == ["a.lock: pip-audit gave no report; its message is above"]


@pytest.mark.parametrize("report", ['{"dependencies": []}', recorded("clean").replace("4.16.0", "4.15.0")])
def test_a_report_about_something_else_is_not_clean(report: str) -> None:
    (line,) = problems(report)
    assert "pins are not in the report (anyio" in line


def test_a_lock_without_pins_is_not_clean() -> None:
    assert problems('{"dependencies": []}', lock="# empty\n") == ["a.lock: 0 of 0 pins are not in the report ()"]


def test_what_was_found_is_said_with_its_remedy() -> None:
    assert problems(recorded("vulnerable")) == [FOUND]


@pytest.mark.parametrize("name", ["PYSEC-2030-1", "GHSA-aaaa-bbbb-cccc", "CVE-2030-0001"])
def test_a_waiver_covers_it_by_any_of_its_names_until_its_day(name: str) -> None:
    assert problems(recorded("vulnerable"), waiver(name, TODAY)) == []
    assert problems(recorded("vulnerable"), waiver(name, date(2030, 5, 31))) == [
        f"{FOUND}; its waiver ended on 2030-05-31"
    ]
    assert problems(recorded("vulnerable"), waiver(name, TODAY, package="anyio")) == [FOUND]
    assert problems(recorded("vulnerable"), waiver("PYSEC-2030-2", TODAY)) == [FOUND]


def test_a_waiver_of_nothing_is_to_go() -> None:
    used, other = waiver("PYSEC-2030-1", TODAY), waiver("PYSEC-1", TODAY)
    assert audit.unused([used, other], [recorded("vulnerable")]) == [
        "requirements/waivers.toml: PYSEC-1 of H11 is found in no lock: take the waiver out"
    ]


def test_a_waiver_needs_a_reason_and_a_day() -> None:
    whole = '[[waiver]]\nid = "A-1"\npackage = "h11"\nreason = "not called"\nuntil = 2030-01-31\n'
    waivers, lines = audit.read_waivers(
        whole + '[[waiver]]\nid = "A-2"\npackage = "h11"\nreason = " "\nuntil = "soon"\n'
    )
    assert waivers == [Waiver("A-1", "h11", "not called", date(2030, 1, 31))]
    assert lines == ["requirements/waivers.toml: waiver 2 lacks reason, until (a day, as 2030-01-31)"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[[waiver]\n", "1:9 Expected ']]' at the end of an array declaration: write it as TOML"),
        ('x = 1\nwaiver = ["a"]\n', "2 waiver is no list of tables: write [[waiver]]"),
        ("\n[waiver]\n", "2 waiver is no list of tables: write [[waiver]]"),
    ],
)
def test_waivers_that_cannot_be_read_are_a_line(text: str, line: str) -> None:
    assert audit.read_waivers(text) == ([], [f"{audit.WAIVERS}:{line}"])


def test_the_files_of_the_repository_are_those_that_are_audited(root: Path) -> None:
    waivers, lines = audit.read_waivers((root / audit.WAIVERS).read_text())
    assert lines == []
    assert all(waiver.reason for waiver in waivers)
    assert set(audit.LOCKS) == {path for path in checkout.locks(root) if path.endswith(".lock")}
    assert all(len(audit.pins((root / name).read_text())) for name in audit.LOCKS)
    assert len(audit.pins((root / "requirements/agent.lock").read_text())) > 100
