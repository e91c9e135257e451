"""agents.lock: the same bytes for the same fleet, read with distrust."""

from __future__ import annotations

import re
import subprocess
import sys

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
    nothing = text.replace('"facts"', '"registry": null, "gateway": null, "facts"')
    assert locks.parse(nothing.encode()) == LOCK
    assert locks.parse(text.encode()).agents["b"].tools == {}, "no tools are known, and not nothing of them"


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"\xff", b'{"lock": 2, "name": "x", "version": "1", "agents": {}}', b'{"a": 1}', b" " * 9_000_000],
    ids=["empty", "a list", "no text", "a later format", "other keys", "too large"],
)
def test_what_is_no_lock_is_refused(data: bytes) -> None:
    with pytest.raises(Refused, match="is no lock of a fleet"):
        locks.parse(data)


MEMBER = '{"image": {"name": "i"}%s}'
START = '{"name": "x", "version": "1", "agents": {%s}, "facts": {%s}%s}'


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (START % ("", "", ', "more": 1'), "more"),
        (START % ('"a": 1', "", ""), "agents.a"),
        (START % ('"a": ' + MEMBER % "" + ', "b": ' + MEMBER % ', "more": 1', "", ""), "agents.b.more"),
        (START % ('"a": {"image": {}}', "", ""), "agents.a.image.name"),
        (START % ('"a": ' + MEMBER % ', "tools": {"t": {"input": 1}}', "", ""), "agents.a.tools.t.input"),
        (START % ('"a": ' + MEMBER % ', "tools": [1]', "", ""), "agents.a.tools"),
        (START % (f'"{"a" * 4097}": ' + MEMBER % "", "", ""), f"agents.{'a' * 200}"),
        (START % ("", '"a": 1, "b": null', ""), "facts.b"),
        (START % ("", f'"a": "{"b" * 4097}"', ""), "facts.a"),
        (START % ("", "", ', "services": {"a": {}}'), "services.a.image"),
        (START % ("", "", ', "services": null'), "services"),
        (START % ("", "", ', "registry": {"image": {"name": "i"}, "more": 1}'), "registry.more"),
        (START % ("", "", ', "gateway": {"image": {"name": "i", "more": 1}}'), "gateway.image.more"),
        (START % ("", "", ', "registry": {"image": {"name": 1}}'), "registry.image.name"),
        ('{"name": "x", "version": "1", "agents": null}', "agents"),
        ('{"name": "x", "version": "1", "agents": {}, "facts": null}', "facts"),
    ],
)
def test_the_first_place_that_is_wrong_is_named(text: str, place: str) -> None:
    with pytest.raises(Refused) as refused:
        locks.parse(text.encode())
    assert [problem.where.field for problem in refused.value.problems] == [place]


def test_as_many_values_are_read_as_a_lock_can_have() -> None:
    facts = ", ".join(f'"{number}": 1' for number in range(locks.MOST_VALUES - 5))
    read = locks.parse((START % ("", facts, "")).encode())
    assert len(read.facts) == locks.MOST_VALUES - 5
    with pytest.raises(Refused, match="is no lock of a fleet"):
        locks.parse((START % ("", facts, ', "services": {}')).encode())


@pytest.mark.parametrize(
    "text",
    [
        START % ("", ", ".join(f'"{number}": []' for number in range(100_000)), ""),
        START % (", ".join(f'"{number}": {{"more": 1}}' for number in range(100_000)), "", ""),
    ],
    ids=["facts", "agents"],
)
def test_what_is_wrong_everywhere_takes_no_memory_for_each(text: str) -> None:
    """300 to 520 MB where all of it was collected, twice what a registry's container has."""
    code = "import sys; from pallas_contract.documents import lock; data = sys.stdin.buffer.read()\n"
    code += "try: lock.parse(data)\nexcept lock.Refused: print(open('/proc/self/status').read())"
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, check=True, text=True)
    (most,) = re.findall(r"VmHWM:\s+(\d+) kB", done.stdout)
    assert int(most) < 150_000


def configuration(agent: str, top: str = "") -> str:
    text = f"name: x\n{top}agents:\n  a: {{module: agents.a, port: 1{agent}}}\n  b: {{module: agents.b, port: 2}}\n"
    return locks.configuration(load.parse(source.parse(text, name="agents.yaml")), "a")


def test_the_configuration_is_what_the_fleet_file_says_of_one_agent() -> None:
    assert configuration("") == configuration(", replicas: 1") == configuration("", "registry_port: 24999\n")
    assert configuration("") != configuration(", title: Other")
    assert configuration("") != configuration("", "version: 9.0.0\n")
    assert configuration("") != configuration("", "defaults: {env: {A: b}}\n")
