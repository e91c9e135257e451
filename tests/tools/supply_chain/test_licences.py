"""tools/supply_chain/licences.py: what is not on the list fails, and so does what nobody stated."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.supply_chain.image.inventory import Component
from tools.supply_chain.licences import FILE, Policy, refused_parts

POLICY = Policy(frozenset({"MIT", "Apache-2.0", "GPL-2.0-only WITH Classpath-exception-2.0"}), {"odd-one": "MIT"})


def python(name: str, licence: str) -> Component:
    return Component("python", name, "1", licence)


@pytest.mark.parametrize(
    ("expression", "refused"),
    [
        ("MIT", []),
        ("GPL-3.0-only", ["GPL-3.0-only"]),
        ("MIT AND GPL-3.0-only", ["GPL-3.0-only"]),
        ("GPL-3.0-only OR MIT", []),
        ("AGPL-3.0-only OR GPL-3.0-only", ["AGPL-3.0-only", "GPL-3.0-only"]),
        ("MIT AND (GPL-3.0-only OR Apache-2.0)", []),
        ("MIT OR Apache-2.0 AND GPL-3.0-only", []),
        ("(MIT OR Apache-2.0) AND GPL-3.0-only", ["GPL-3.0-only"]),
        ("GPL-2.0-only WITH Classpath-exception-2.0", []),
        ("GPL-2.0-only", ["GPL-2.0-only"]),
        ("3-Clause BSD License", ["3-Clause BSD License"]),
        ("(MIT", ["("]),
        ("MIT AND", ["nothing"]),
    ],
)
def test_of_an_expression_every_part_counts_but_of_or_one(expression: str, refused: list[str]) -> None:
    assert refused_parts(expression, POLICY.allowed) == refused


def test_unknown_and_refused_licences_are_problems() -> None:
    components = [python("good", "MIT"), python("bad", "GPL-3.0-only"), python("silent", ""), python("Odd_One", "")]
    assert POLICY.problems(POLICY.named(components)) == [
        f"bad 1: licence GPL-3.0-only is not in the list of {FILE}",
        f"silent 1: its metadata has no licence; read its files, and state it in {FILE}",
    ]


def test_of_debian_only_the_section_counts() -> None:
    def package(section: str) -> Component:
        return Component("debian", "tool", "1", "", section=section)

    assert POLICY.problems([package("libs")]) == []
    assert POLICY.problems([package("non-free/libs")]) == ["tool 1: Debian's section non-free/libs is not free"]


def test_a_statement_about_nothing_is_a_problem() -> None:
    assert POLICY.unused([python("odd.one", "")]) == []
    assert POLICY.unused([python("good", "MIT")]) == [
        f"{FILE}: stated.odd-one is in no image and no wheel: take it out"
    ]


def test_the_list_of_the_repository_can_be_read(root: Path) -> None:
    policy = Policy.read(root / FILE)
    assert {"MIT", "Apache-2.0"} < policy.allowed
    assert set(policy.stated.values()) <= policy.allowed | {"BSD-3-Clause OR Apache-2.0"}
