"""Reasons: what is read from an agent's own message, and how several become one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from pallas_contract.documents.reason import MAX_NAMES, OK, Code, Reason, joined, reported

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("message", "code", "about"),
    [
        ("Unreachable: neo4j", "Unreachable", ("neo4j",)),
        ("Unreachable: neo4j, tech-research", "Unreachable", ("neo4j", "tech-research")),
        ("Refused by: vault", "Refused", ("vault",)),
        ("Unreachable: neo4j; Refused by: vault, neo4j", "Unreachable", ("neo4j", "vault")),
        ("LLM: openai: connection refused", "ProviderDown", ()),
        ("Cannot process requests: no model; LLM: openai: down", "CannotProcess", ()),
        ("Not checked yet: argos", "NotCheckedYet", ()),
        ("Access: no keys", "AccessUnavailable", ()),
        ("Conversations: not kept: database or disk is full", "ConversationsNotKept", ()),
        ("Unreachable: neo4j; LLM: openai: model 'bad-model' not found", "Unreachable", ("neo4j",)),  # seed 001
        ("disk full; Unreachable: neo4j", "Unreachable", ("neo4j",)),
        ("connection refused", "SelfReported", ()),
        ("Unreachable: the connection to neo4j, sorry", "Unreachable", ()),  # prose and no list
        ("Unreachable: ", "Unreachable", ()),
        ("unreachable: neo4j", "SelfReported", ()),
        ("it is Unreachable: neo4j", "SelfReported", ()),
        ("Unreachable: neo4j;LLM: openai", "Unreachable", ()),
        ("", "SelfReported", ()),
    ],
)
def test_only_exact_lists_name_anybody(message: str, code: Code, about: tuple[str, ...]) -> None:
    assert reported(message, well=False) == Reason(code, message, about)


def test_a_remark_of_the_well_is_about_nobody() -> None:
    assert reported("Unreachable: neo4j", well=True) == Reason("Ok", "Unreachable: neo4j")


def test_a_message_names_a_bounded_number() -> None:
    many = ", ".join(f"s{number}" for number in range(MAX_NAMES + 1))
    assert reported(f"Unreachable: {many}", well=False).about == tuple(f"s{number}" for number in range(MAX_NAMES))


def test_several_reasons_are_one() -> None:
    refused = Reason("Refused", "Refused by: a, b", ("a", "b"))
    missing = Reason("ReplicaMissing", "2 of 3 replicas found")
    remark = Reason("Ok", "fine")
    assert joined([]) == OK
    assert joined([OK, remark]) == remark
    assert joined([remark, Reason("Unreachable", "Unreachable: b", ("b",)), refused, refused, missing]) == Reason(
        "Unreachable", "fine; Unreachable: b; Refused by: a, b; 2 of 3 replicas found", ("b", "a")
    )


def test_every_code_is_documented_once() -> None:
    page = (ROOT / "docs/registry.md").read_text(encoding="utf-8")
    table = page.split("\n## Reasons\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(get_args(Code))
