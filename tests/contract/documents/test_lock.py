"""agents.lock: the same bytes for the same fleet, read with distrust."""

from __future__ import annotations

import pytest

from pallas_contract.documents import lock as locks
from pallas_contract.documents.lock import Lock, LockedImage, LockedMember, LockedTool
from pallas_contract.fleet import source
from pallas_contract.problems import Refused
from pallas_contract.validate import load

LOCK = Lock(
    name="x",
    version="1.0",
    agents={
        "b": LockedMember(image=LockedImage(name="i:1"), configuration="c", tools={}),
        "a": LockedMember(image=LockedImage(name="i:1", digest="sha256:0"), tools={"t": LockedTool(input="1")}),
    },
    facts={"agents.b.url": "http://b/mcp", "agents.a.port": 1, "agents.a": True},
)


def test_it_is_sorted_and_read_back_as_it_was() -> None:
    text = locks.render(LOCK)
    assert locks.parse(text.encode()) == LOCK
    assert text.index('"a": {') < text.index('"b": {')
    again = LOCK.model_copy(update={"agents": dict(reversed(LOCK.agents.items()))})
    assert locks.render(again) == text
    assert locks.parse(text.encode()).agents["b"].tools == {}, "no tools are known, and not nothing of them"


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"\xff", b'{"lock": 2, "name": "x", "version": "1", "agents": {}}', b'{"a": 1}', b" " * 9_000_000],
    ids=["empty", "a list", "no text", "a later format", "other keys", "too large"],
)
def test_what_is_no_lock_is_refused(data: bytes) -> None:
    with pytest.raises(Refused, match="is no lock of a fleet"):
        locks.parse(data)


def configuration(agent: str, top: str = "") -> str:
    text = f"name: x\n{top}agents:\n  a: {{module: agents.a, port: 1{agent}}}\n  b: {{module: agents.b, port: 2}}\n"
    return locks.configuration(load.parse(source.parse(text, name="agents.yaml")), "a")


def test_the_configuration_is_what_the_fleet_file_says_of_one_agent() -> None:
    assert configuration("") == configuration(", replicas: 1") == configuration("", "registry_port: 24999\n")
    assert configuration("") != configuration(", title: Other")
    assert configuration("") != configuration("", "version: 9.0.0\n")
    assert configuration("") != configuration("", "defaults: {env: {A: b}}\n")
