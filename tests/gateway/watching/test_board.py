"""The board: what is under way, what was refused, what was confirmed, and for whom each is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from pallas_gateway.data_plane.errors import Reason
from pallas_gateway.data_plane.record import Call, Record
from pallas_gateway.watching import board as module
from pallas_gateway.watching.board import Board

CALL = Call("scout", "phone", "tools/call", "echo", tenant="acme", principal="phone")


class Everybody:
    def sees(self, entry: Mapping[str, Any]) -> bool:
        return True


class Of:
    def __init__(self, tenant: str) -> None:
        self.tenant = tenant

    def sees(self, entry: Mapping[str, Any]) -> bool:
        return bool(entry["tenant"] == self.tenant)


@pytest.fixture
def now() -> list[float]:
    return [100.0]


@pytest.fixture
def board(now: list[float]) -> Board:
    return Board(lambda: now[0], lambda: datetime(2026, 11, 23, tzinfo=UTC))


def refused(call: Call, reason: Reason = "not_granted") -> Record:
    return Record(replace(call), reason, 200, 0.1)


def test_a_call_is_under_way_from_when_it_is_passed_on_to_its_end(board: Board) -> None:
    board.begin(CALL)
    assert board.shown(Everybody()).calls == []
    board.passed_on(CALL)
    board.passed_on(replace(CALL, method="tools/list"))  # nobody works for that
    (entry,) = board.shown(Everybody()).calls
    about = {"principal": "phone", "tenant": "acme", "agent": "scout", "method": "tools/call", "name": "echo"}
    assert entry == {**about, "began": 100.0}
    board.end(Record(replace(CALL, decision=7), "answered", 200, 0.1))  # what else becomes known of it
    shown = board.shown(Everybody())
    assert (shown.under_way, shown.refused) == (0, [])


def test_refusals_are_shown_and_failures_are_none(board: Board) -> None:
    for reason in ("not_granted", "timeout", "rate", "unreachable", "confirmation_required"):
        board.end(refused(CALL, reason))  # type: ignore[arg-type]
    reasons = [entry["reason"] for entry in board.shown(Everybody()).refused]
    assert reasons == ["confirmation_required", "rate", "not_granted"]


def test_nobody_hides_the_refusals_of_others(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OWNERS", 2)
    board.end(refused(replace(CALL, tenant="home")))
    for _ in range(1000):
        board.end(refused(CALL))
    assert len(board.shown(Of("acme")).refused) == 20
    assert len(board.shown(Of("home")).refused) == 1
    board.end(refused(replace(CALL, tenant="", principal="desk")))
    assert board.shown(Of("home")).refused == []  # of the one that was heard of least lately


def test_a_confirmation_is_one_entry_that_says_who_decided(board: Board) -> None:
    about = {"caller": "phone", "tenant": "acme", "agent": "scout", "name": "echo"}
    board.confirmation("1", "asked", about)
    board.confirmation("2", "asked", about)
    assert board.shown(Everybody()).confirmed == []
    board.confirmation("1", "approved", {"by": "parent"})
    board.confirmation("1", "consumed", about)
    (entry,) = board.shown(Everybody()).confirmed
    assert (entry["state"], entry["by"], entry["principal"]) == ("consumed", "parent", "phone")
    assert board.questions == 4


def test_more_than_a_page_is_counted(board: Board) -> None:
    for _ in range(module.MOST + 3):
        board.passed_on(Call("scout", "", "tools/call", "echo"))
    shown = board.shown(Everybody())
    assert (shown.under_way, len(shown.calls)) == (module.MOST + 3, module.MOST)
