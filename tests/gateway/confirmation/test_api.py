"""The HTTP API of confirmations, behind the real gate: who sees what, and whose word counts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from pallas_gateway.confirmation.api import Api
from pallas_gateway.confirmation.confirmations import Asked, Confirmations
from pallas_gateway.confirmation.decisions import Decisions
from pallas_gateway.state.database import Database
from pallas_service.access.gate import Gate
from pallas_service.access.jwks import Keys
from pallas_service.access.static_tokens import StaticTokens
from pallas_service.access.verifier import Trust, Verifier
from tests.gateway.confirmation.test_confirmations import WANTED
from tests.issuer import Issuer
from tests.served import served

TOKENS = {"phone": "phone-0123456789ab", "parent": "parent-0123456789a"}
AUDIENCE = "https://doors.example"
PHONE, PARENT = ({"authorization": f"Bearer {token}"} for token in TOKENS.values())


class Notes:
    """What was recorded; `full` is a disk that takes no record."""

    def __init__(self) -> None:
        self.states: list[tuple[str, Mapping[str, Any]]] = []
        self.full = False

    async def __call__(self, id_: str, state: str, about: Mapping[str, Any]) -> bool:
        if not self.full:
            self.states.append((state, about))
        return not self.full


@asynccontextmanager
async def opened(
    path: Path, issuer: Issuer | None = None
) -> AsyncIterator[tuple[httpx.AsyncClient, Confirmations, Notes]]:
    database = Database(path / "gateway.db")
    store = Confirmations(database)
    notes = Notes()

    async def fetch() -> bytes:
        return json.dumps(issuer.jwks() if issuer else {}).encode()

    trust = Trust(issuer.url, AUDIENCE, ("ES256",), Keys(fetch)) if issuer else None
    gate = Gate(Verifier(StaticTokens(TOKENS), trust), "http://127.0.0.1")
    try:
        async with served(gate.around(Api(Decisions(store, notes)).app())) as web:
            web.timeout = httpx.Timeout(60)
            yield web, store, notes
    finally:
        database.close()


async def test_who_may_confirm_sees_the_exact_arguments_and_decides(tmp_path: Path) -> None:
    async with opened(tmp_path) as (web, store, notes):
        asked = await store.redeem(WANTED)
        listed = (await web.get("/confirmations", headers=PARENT)).json()["confirmations"]
        assert [(entry["id"], entry["arguments"]) for entry in listed] == [(asked.id, {"id": 7, "why": "done"})]
        approve = {"decision": "approve"}
        reply = await web.post(f"/confirmations/{asked.id}", json=approve, headers=PARENT)
        assert (reply.status_code, reply.json()) == (200, {"id": asked.id, "state": "approved"})
        about = {"caller": "phone", "tenant": "acme", "agent": "home-tools", "name": "delete_task"}
        assert notes.states == [("approved", {"by": "parent", **about})]
        assert (await web.post(f"/confirmations/{asked.id}", json=approve, headers=PARENT)).status_code == 404
        assert (await store.redeem(WANTED)).state == "consumed"


async def test_a_caller_with_a_jwt_decides_under_its_sub(tmp_path: Path) -> None:
    issuer = Issuer("https://id.example")
    issuer.rotate()

    def bearer(audience: str, subject: str) -> dict[str, str]:
        return {"authorization": f"Bearer {issuer.token(audience, subject)}"}

    async with opened(tmp_path, issuer) as (web, store, notes):
        wanted = replace(WANTED, by=frozenset({"subject anna", "parent"}))
        url = f"/confirmations/{(await store.redeem(wanted)).id}"
        approve = {"decision": "approve"}
        # a `sub` that is called like the static caller is somebody else, and a token for elsewhere is nobody's
        for headers, status in ((bearer(AUDIENCE, "parent"), 404), (bearer("https://other.example", "anna"), 401)):
            assert (await web.post(url, json=approve, headers=headers)).status_code == status
        anna = bearer(AUDIENCE, "anna")
        assert len((await web.get("/confirmations", headers=anna)).json()["confirmations"]) == 1
        assert (await web.post(url, json=approve, headers=anna)).status_code == 200
        assert [(state, about["by"]) for state, about in notes.states] == [("approved", "subject anna")]
        assert (await store.redeem(wanted)).state == "consumed"


async def test_the_caller_itself_and_strangers_see_and_decide_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as (web, store, notes):
        asked = await store.redeem(WANTED)
        assert (await web.get("/confirmations", headers=PHONE)).json() == {"confirmations": []}
        approve = {"decision": "approve"}
        assert (await web.post(f"/confirmations/{asked.id}", json=approve, headers=PHONE)).status_code == 404
        assert (await web.post(f"/confirmations/{asked.id}", json=approve)).status_code == 401
        assert (await web.get("/confirmations")).status_code == 401
        assert notes.states == []
        assert (await store.redeem(WANTED)).state == "pending"


async def test_a_word_that_is_none_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as (web, store, _):
        asked = await store.redeem(WANTED)
        url = f"/confirmations/{asked.id}"
        for body in (
            {},
            {"decision": "yes"},
            {"decision": "approve", "more": 1},
            [],
            {"decision": []},
            {"decision": "x" * 2000},
        ):
            assert (await web.post(url, json=body, headers=PARENT)).status_code == 400
        text = {**PARENT, "content-type": "text/plain"}
        assert (await web.post(url, content='{"decision": "approve"}', headers=text)).status_code == 400
        assert (await store.redeem(WANTED)).state == "pending"


async def test_what_cannot_be_recorded_is_not_decided(tmp_path: Path) -> None:
    async with opened(tmp_path) as (web, store, notes):
        asked = await store.redeem(WANTED)
        notes.full = True
        reply = await web.post(f"/confirmations/{asked.id}", json={"decision": "approve"}, headers=PARENT)
        assert (reply.status_code, reply.json()["error"]["reason"]) == (503, "confirmation_unavailable")
        assert (await store.redeem(WANTED)).state == "pending"


async def test_no_arguments_hide_what_else_waits(tmp_path: Path) -> None:
    async with opened(tmp_path) as (web, store, _):
        odd = {"half of a character": "\ud800", "text": "\u202e\u00e9"}
        asked = {(await store.redeem(wanted)).id for wanted in (WANTED, replace(WANTED, asked=Asked(odd)))}
        reply = await web.get("/confirmations", headers=PARENT)
        assert {entry["id"] for entry in reply.json()["confirmations"]} == asked
        assert (reply.content.isascii(), b"\\u202e" in reply.content) == (True, True)


async def test_no_name_is_another_question(tmp_path: Path) -> None:
    async with opened(tmp_path) as (web, store, notes):
        name = "resources/read a\u202e` of `desk`:\n{}"
        asked = await store.redeem(replace(WANTED, tool=name))
        (listed,) = (await web.get("/confirmations", headers=PARENT)).json()["confirmations"]
        found = (await web.get(f"/confirmations/{asked.id}", headers=PARENT)).json()
        readable = r"resources/read a\u202e\u0060 of \u0060desk\u0060:\n{}"
        assert [listed["tool"], found["tool"]] == [readable] * 2
        await web.post(f"/confirmations/{asked.id}", json={"decision": "approve"}, headers=PARENT)
        assert notes.states[-1][1]["name"] == name  # the audit has it as it was sent


async def test_long_arguments_are_read_one_by_one(tmp_path: Path) -> None:
    async with opened(tmp_path) as (web, store, _):
        long = {"text": "x" * 5000}
        url = f"/confirmations/{(await store.redeem(replace(WANTED, asked=Asked(long)))).id}"
        (listed,) = (await web.get("/confirmations", headers=PARENT)).json()["confirmations"]
        assert "arguments" not in listed
        assert (await web.get(url, headers=PARENT)).json()["arguments"] == long
        for headers, status in ((PHONE, 404), ({}, 401)):
            assert (await web.get(url, headers=headers)).status_code == status


async def test_nobody_is_sent_elsewhere_with_a_token(tmp_path: Path) -> None:
    async with opened(tmp_path) as (web, _, _):
        assert (await web.get("/confirmations/", headers=PARENT)).status_code == 404


async def test_of_two_decisions_at_once_the_record_says_which_does_not_count(tmp_path: Path) -> None:
    both_have_found = asyncio.Barrier(2)
    noted: list[tuple[str, str]] = []
    shown: list[tuple[str, str]] = []

    async def note(id_: str, state: str, about: Mapping[str, Any]) -> bool:
        noted.append((state, about["by"]))
        if state != "void":
            await both_have_found.wait()
        return True

    with closing(Database(tmp_path / "gateway.db")) as database:
        store = Confirmations(database)
        id_ = (await store.redeem(replace(WANTED, by=frozenset({"anna", "ben"})))).id
        decisions = Decisions(store, note, lambda id_, state, about: shown.append((state, about["by"])))
        async with asyncio.timeout(120):
            words = [decisions.decide(id_, "anna", "approved"), decisions.decide(id_, "ben", "refused")]
            done = await asyncio.gather(*words)
    assert sorted(done) == [False, True]
    first, late = [("approved", "anna"), ("refused", "ben")][:: 1 if done[0] else -1]
    assert shown == [first]
    assert sorted(noted[:2]) == sorted([first, late])
    assert noted[2:] == [("void", late[1])]
