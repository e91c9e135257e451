"""Calls in front of the gatekeeper: what they are answered, and what is recorded before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pallas_gateway.confirmation.confirmations import Asked, Confirmations
from pallas_gateway.confirmation.gatekeeper import Gatekeeper, Unconfirmed
from pallas_gateway.state.database import Database
from tests.gateway.confirmation.test_confirmations import WANTED


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "gateway.db")
    yield opened
    opened.close()


async def refused(gatekeeper: Gatekeeper, **changes: Any) -> Unconfirmed:
    with pytest.raises(Unconfirmed) as unconfirmed:
        await gatekeeper.let_through(replace(WANTED, **changes))
    return unconfirmed.value


async def test_a_call_is_told_what_it_waits_for_and_goes_on_once(database: Database) -> None:
    notes: list[tuple[str, str, Mapping[str, Any]]] = []

    async def noted(id_: str, state: str, about: Mapping[str, Any]) -> bool:
        notes.append((id_, state, about))
        return True

    store = Confirmations(database, lambda: 0.0)
    gatekeeper = Gatekeeper(store, noted)
    error = await refused(gatekeeper)
    (id_, state, about) = notes[0]
    assert (error.reason, error.data) == ("confirmation_required", {"confirmation": id_, "expires_in": 600})
    assert (state, about) == (
        "asked",
        {"caller": "phone", "tenant": "acme", "agent": "home-tools", "name": "delete_task"},
    )
    assert await store.decide(id_, "parent", "approved")
    assert await gatekeeper.let_through(WANTED) == id_
    assert (await refused(gatekeeper)).reason == "confirmation_required"


async def test_a_question_that_cannot_be_recorded_is_not_asked(database: Database) -> None:
    async def noted(id_: str, state: str, about: Mapping[str, Any]) -> bool:
        return False

    assert (await refused(Gatekeeper(Confirmations(database), noted))).reason == "confirmation_unavailable"


async def test_a_refusal_is_said(database: Database) -> None:
    store = Confirmations(database)
    gatekeeper = Gatekeeper(store)
    error = await refused(gatekeeper)
    assert await store.decide(str(error.data["confirmation"]), "parent", "refused")
    assert (await refused(gatekeeper)).reason == "confirmation_refused"


async def test_what_nobody_can_confirm_is_refused(database: Database) -> None:
    gatekeeper = Gatekeeper(Confirmations(database))
    assert (await refused(gatekeeper, by=frozenset())).reason == "confirmation_refused"
    assert (await refused(gatekeeper, asked=Asked({"id": float("inf")}))).reason == "confirmation_unavailable"


async def test_a_store_that_is_down_lets_nothing_through(database: Database) -> None:
    store = Confirmations(database)
    gatekeeper = Gatekeeper(store)
    error = await refused(gatekeeper)
    assert await store.decide(str(error.data["confirmation"]), "parent", "approved")
    await database.run(lambda connection: connection.execute("ALTER TABLE confirmations RENAME TO away"))
    assert (await refused(gatekeeper)).reason == "confirmation_unavailable"
    assert "no such table" in database.problem
    await database.run(lambda connection: connection.execute("ALTER TABLE away RENAME TO confirmations"))
    assert await gatekeeper.let_through(WANTED)
