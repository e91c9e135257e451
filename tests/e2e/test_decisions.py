"""What counts as a problem, without the suite: the list must not be able to hide anything."""

from __future__ import annotations

import json

import pytest

from . import decisions
from .decisions import Decisions

MODERN, LEGACY = "2026-07-28", "2025-11-25"
FAILURE = "FAILURE: no"
FINE = {"a-1": "", "wire-schema-valid": ""}
FILE = Decisions.model_validate(
    {
        "run": ["a", "b"],
        "not_applicable": [
            {"why": "w", "scenarios": ["c"]},
            {"why": "w", "only": ["registry"], "scenarios": ["b"]},
        ],
        "excused": [{"why": "w", "checks": ["a:a-2"]}],
    }
)
GOOD = {
    (MODERN, "a"): {**FINE, "a-2": FAILURE},
    (LEGACY, "a"): FINE,
    (MODERN, "b"): FINE,
    (MODERN, "c"): {"c-1": FAILURE, "wire-schema-valid": ""},
}


def test_what_is_decided_is_no_problem() -> None:
    assert decisions.problems(FILE, "agent", GOOD) == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({(LEGACY, "a"): {"a-1": FAILURE}}, "a:a-1 in 2025-11-25: FAILURE: no"),
        ({(LEGACY, "a"): {"a-1": "WARNING: hm"}}, "a:a-1 in 2025-11-25: WARNING: hm"),
        ({(LEGACY, "a"): {"a-2": ""}}, "a:a-2 passes in 2025-11-25, and is excused"),
        ({(MODERN, "a"): FINE}, "a:a-2 is excused, but nothing of the kind is found"),
        ({(MODERN, "c"): {"c-1": "", "wire-schema-valid": ""}}, "c passes in 2026-07-28, and is listed as not applic"),
        ({(MODERN, "c"): {"c-1": FAILURE, "wire-schema-valid": FAILURE}}, "c:wire-schema-valid in 2026-07-28: FAILURE"),
        ({(MODERN, "d"): FINE}, "d is in the suite, but not in decisions.yaml"),
    ],
)
def test_everything_else_is(found: dict[tuple[str, str], dict[str, str]], said: str) -> None:
    (line,) = decisions.problems(FILE, "agent", GOOD | found)
    assert line.startswith(said)


def test_what_left_the_suite_has_to_leave_the_file() -> None:
    left = {key: value for key, value in GOOD.items() if key[1] != "b"}
    assert decisions.problems(FILE, "agent", left) == ["b is in decisions.yaml, but not in the suite"]


def test_a_decision_for_one_server_is_not_one_for_another() -> None:
    found = GOOD | {(MODERN, "b"): {"b-1": FAILURE}}
    assert decisions.problems(FILE, "registry", found) == []
    assert decisions.problems(FILE, "agent", found) == ["b:b-1 in 2026-07-28: FAILURE: no"]


def test_the_file_decides_nothing_twice() -> None:
    file = decisions.load()
    for server in decisions.SERVERS:
        for groups in (
            [group.scenarios for group in file.not_applicable if server in group.only],
            [group.checks for group in file.excused if server in group.only],
            [file.run],
        ):
            every = [name for group in groups for name in group]
            assert len(every) == len(set(every))


def test_the_lock_of_npm_pins_all_packages_by_hash_and_names_no_host() -> None:
    locked = json.loads(decisions.PATH.with_name("package-lock.json").read_text())["packages"]
    del locked[""]  # ourselves
    assert len(locked) > 100
    assert [name for name, package in locked.items() if "integrity" not in package] == []
    assert [name for name, package in locked.items() if "resolved" in package] == []
