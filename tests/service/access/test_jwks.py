"""The issuer's keys: fetched, kept, looked for again within bounds."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from pallas_contract import limited_file
from pallas_service.access import jwks
from pallas_service.access.jwks import Keys


class Source:
    """A key set that changes; `now` is the clock of whoever asks for it."""

    def __init__(self, issuer: Any) -> None:
        self.issuer, self.now, self.asked, self.fails = issuer, 1000.0, 0, False
        self.answer: dict[str, Any] | None = None
        self.error: Exception | None = None
        issuer.rotate()

    async def __call__(self) -> bytes:
        self.asked += 1
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        if self.fails:
            raise OSError("connection refused")
        return json.dumps(self.answer or self.issuer.jwks()).encode()

    def keys(self) -> Keys:
        return Keys(self, clock=lambda: self.now)

    @property
    def newest(self) -> str:
        return next(iter(self.issuer.keys))


@pytest.fixture
def source(issuer: Any) -> Source:
    return Source(issuer)


async def test_a_known_key_is_not_fetched_again(source: Source) -> None:
    known = source.keys()
    for _ in range(3):
        found = await known.find(source.newest)
        assert found is not None
        assert found.alg == "ES256"
    assert source.asked == 1


async def test_a_new_key_is_found_after_the_pause_and_made_up_ones_are_no_flood(source: Source) -> None:
    known = source.keys()
    old = source.newest
    await known.find(old)
    source.issuer.rotate()
    assert await asyncio.gather(*(known.find(f"made-up-{i}") for i in range(50))) == [None] * 50
    assert source.asked == 1
    source.now += jwks.PAUSE
    found = await asyncio.gather(*(known.find(source.newest) for _ in range(50)))
    assert all(found)
    assert source.asked == 2
    assert await known.find(old) is None


async def test_keys_outlive_a_source_that_is_away_for_an_hour_at_most(source: Source) -> None:
    known = source.keys()
    await known.find(source.newest)
    source.fails = True
    source.now += jwks.TRUSTED
    assert await known.find(source.newest)
    assert known.problem == ""
    source.now += 1
    assert await known.find(source.newest) is None
    assert known.problem == "connection refused"


async def test_a_token_without_a_key_id_means_the_only_key(source: Source) -> None:
    assert await source.keys().find(None)
    source.issuer.keys["second"] = source.issuer.keys[source.newest]
    assert await source.keys().find(None) is None


async def test_over_http_only_200_is_an_answer(issuer: Any) -> None:
    fetch = jwks.from_url(f"{issuer.url}/jwks")
    assert [key.id for key in jwks.parse(await fetch())] == list(issuer.keys)
    issuer.broken = True
    with pytest.raises(ValueError, match="HTTP 500"):
        await fetch()
    issuer.broken = False


@pytest.mark.parametrize(
    "document",
    [b"", b"[]", b"{}", b'{"keys": 1}', b'{"keys": {}}', b'{"keys": "none"}', b"[" * 9999],
)
def test_what_is_no_key_set_is_refused(document: bytes) -> None:
    with pytest.raises(ValueError, match="not a JWK set"):
        jwks.parse(document)


@pytest.mark.parametrize("left", [[], [{"kty": "oct", "k": "c2VjcmV0"}]], ids=["none", "none that is usable"])
async def test_a_set_without_a_usable_key_takes_the_old_ones_back_at_once(source: Source, left: list[Any]) -> None:
    known = source.keys()
    old = source.newest
    assert await known.find(old)
    source.now += jwks.PAUSE
    source.answer = {"keys": left}
    assert await known.find("made-up") is None  # makes it look
    assert await known.find(old) is None
    assert known.problem == "no key that can check a signature"


async def test_what_is_no_key_set_leaves_the_old_ones(source: Source) -> None:
    known = source.keys()
    await known.find(source.newest)
    source.now += jwks.PAUSE
    source.answer = {"error": "try later"}
    assert await known.find("made-up") is None
    assert await known.find(source.newest)
    assert known.problem == "not a JWK set"


RSA = {"kty": "RSA", "n": "A" * 342, "e": "AQAB", "kid": "rsa"}
ODD = {
    "no algorithm": {"alg": "none"},
    "a list for the algorithm": {"alg": ["ES256"]},
    "an object for the algorithm": {"alg": {"ES256": 1}},
    "an object for the id": {"kid": {}},
    "a list for the kind": {"kty": []},
    "a number for a coordinate": {"x": 5},
    "a private member": {"d": "AQAB"},
    "a list for the use": {"use": []},
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_an_odd_key_takes_no_other_with_it(issuer: Any, odd: dict[str, Any]) -> None:
    issuer.rotate()
    (data,) = issuer.jwks()["keys"]
    found = jwks.parse(json.dumps({"keys": [{**data, **odd}, data]}).encode())
    assert [key.id for key in found] == [data["kid"]]


@pytest.mark.parametrize(
    "large",
    [
        {"n": "A" * 2732},
        {"e": "A" * 12},
        {"d": "0" * 5000, "p": "AQ"},
        *({name: "AQ"} for name in sorted(jwks._PRIVATE)),
    ],
)
def test_keys_that_take_long_to_check_are_not_even_read(large: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    monkeypatch.setattr(jwks.PyJWK, "from_dict", read.append)  # what it raises would be heard of by nobody
    assert jwks.parse(json.dumps({"keys": [RSA | large]}).encode()) == []
    assert read == []


@pytest.mark.parametrize("error", [NotImplementedError(), AttributeError("x"), RecursionError(), UnicodeError("x")])
async def test_no_answer_of_an_issuer_ends_the_agent(source: Source, error: Exception) -> None:
    known = source.keys()
    await known.find(source.newest)
    source.error = error
    source.now += jwks.PAUSE
    looking = asyncio.create_task(known.run())
    while not (known.problem or looking.done()):
        await asyncio.sleep(0)
    assert not looking.done()
    assert await known.find(source.newest)
    looking.cancel()


async def test_a_file_of_keys_whose_reading_fails_leaves_the_earlier_ones(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> bytes:
        raise RuntimeError(path)

    file = tmp_path / "keys.json"
    file.write_text(json.dumps(source.issuer.jwks()))
    keys = Keys(jwks.from_file(file), clock=lambda: source.now)
    assert await keys.find(source.newest)
    source.now += jwks.PAUSE
    with monkeypatch.context() as patch, capture_logs() as lines:
        patch.setattr(limited_file, "read", fail)
        assert await keys.find("made-up") is None
    assert keys.problem == "the look at the keys failed: RuntimeError"
    assert [line["event"] for line in lines if line.get("exc_info")] == ["issuer_keys_failed"]
    assert await keys.find(source.newest)
    source.now += jwks.PAUSE
    assert await keys.find("made-up") is None
    assert keys.problem == ""


async def test_a_file_that_is_no_set_of_keys_is_not_read_to_its_end(source: Source, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 1 << 30)
    for name, problem in (("pipe", "Not a regular file"), ("huge", "Larger than 1 MiB")):
        keys = Keys(jwks.from_file(tmp_path / name), clock=lambda: source.now)
        assert await keys.find("made-up") is None
        assert problem in keys.problem


def test_keys_for_other_uses_are_left_out(issuer: Any) -> None:
    issuer.rotate()
    (data,) = issuer.jwks()["keys"]
    others = [{**data, "use": "enc"}, {"kty": "oct", "k": "c2VjcmV0"}, {"kty": "made-up"}, 7]
    assert len(jwks.parse(json.dumps({"keys": [*others, data]}).encode())) == 1


async def test_a_source_that_fails_is_logged_when_it_begins_and_when_it_ends(source: Source) -> None:
    known = source.keys()
    with capture_logs() as lines:
        for fails in (False, True, True, False, False):
            source.fails = fails
            source.now += jwks.PAUSE
            await known.find("made-up")
    logged = [(line["keys"], line["problem"]) for line in lines if line["event"] == "issuer_keys"]
    assert logged == [(1, "connection refused"), (1, None)]
