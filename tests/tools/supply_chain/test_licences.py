"""tools/supply_chain/licences.py: what is not on the list fails, and so does what nobody stated."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_gen.images.inventory import Component
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


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('allowed = ["MIT"\n\nx = 1\n', ["3:1 Unclosed array: write it as TOML"]),
        ('allowed = ["MIT"', ["1:1 Unclosed array: write it as TOML"]),
        (
            'allowed = "MIT"\n[stated]\na-b = "MIT"\n"c" = {licence = "MIT"}\nd = {licence = " ", read = "x"}\n',
            [
                '1 allowed is no list of SPDX identifiers: write allowed = ["Apache-2.0", "MIT"]',
                '3 stated.a-b lacks licence or read: write a-b = {licence = "MIT", read = "LICENSE"}',
                '4 stated.c lacks licence or read: write c = {licence = "MIT", read = "LICENSE"}',
                '5 stated.d lacks licence or read: write d = {licence = "MIT", read = "LICENSE"}',
            ],
        ),
        (
            "stated = 3\n",
            [
                '1 allowed is no list of SPDX identifiers: write allowed = ["Apache-2.0", "MIT"]',
                "1 stated is no table: write [stated], and a package on each line below it",
            ],
        ),
    ],
)
def test_a_list_that_cannot_be_read_is_refused_by_line(tmp_path: Path, text: str, lines: list[str]) -> None:
    (tmp_path / "licences.toml").write_text(text)
    with pytest.raises(ValueError, match="licences") as failure:
        Policy.read(tmp_path / "licences.toml")
    assert str(failure.value).splitlines() == [f"{FILE}:{line}" for line in lines]


def test_a_list_without_statements_is_one(tmp_path: Path) -> None:
    (tmp_path / "licences.toml").write_text('allowed = ["MIT"]\n')
    assert Policy.read(tmp_path / "licences.toml") == Policy(frozenset({"MIT"}), {})
