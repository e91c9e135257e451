"""A fleet as it is, locked; and what differs from that later, in the classes of `diff`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pallas_contract.documents import lock as locks
from pallas_contract.documents.lock import Lock
from pallas_contract.documents.tool_contract import ToolContract
from pallas_gen.comparison import changes
from pallas_gen.locking import members
from pallas_gen.plan import build_plan
from pallas_gen.project import contents, load

FLEET = """\
name: x
agents:
  scout: {module: agents.scout, port: 8101, env: {WORD: hush}}
  other: {module: agents.other, port: 8102}
services: {db: {image: redis:8, port: 6379, provides: other}}
"""
TOOLS = {"scout": {"scout": ToolContract("1", "2", "3")}}
DIGESTS = {"redis:8": "sha256:1"}


@pytest.fixture
def locked(make):
    """The lock of a fleet file's text."""

    def read(text: str = FLEET, digests=DIGESTS, tools=TOOLS) -> Lock:
        loaded = load.load(make(text), os.environ, allow_plain_secrets=True)
        plan = build_plan(loaded.fleet, loaded.config, loaded.project)
        files = contents.read_all(loaded.folder, plan)
        return members.lock(loaded.fleet, plan, files, digests=digests, tools=tools)

    return read


def differences(old: Lock, new: Lock) -> list[tuple[str, str, str]]:
    between = changes.between(members.facts_of(old), members.facts_of(new))
    return [(change.effect, change.key, change.what) for change in between]


def test_the_same_fleet_has_the_same_lock_without_any_value_that_may_be_secret(locked) -> None:
    lock = locked()
    assert locks.render(lock) == locks.render(locked())
    assert differences(lock, locked()) == []
    assert "hush" not in locks.render(lock)
    assert locks.parse(locks.render(lock).encode()) == lock
    assert lock.services["db"].image.digest == "sha256:1"
    assert (lock.agents["other"].tools, lock.agents["other"].image.digest) == (None, "")


@pytest.mark.parametrize(
    ("text", "difference"),
    [
        (FLEET.replace("hush", "louder"), ("cosmetic", "agents.scout.env.WORD", "changed")),
        (FLEET.replace("8102", "8103"), ("breaking", "agents.other.url", "changed")),
        (FLEET.replace("  other: {module: agents.other, port: 8102}\n", ""), ("breaking", "agents.other", "gone")),
    ],
    ids=["variable", "address", "agent"],
)
def test_an_edit_of_the_file_is_what_diff_says_of_it(locked, text: str, difference: tuple[str, str, str]) -> None:
    assert differences(locked(), locked(text)) == [difference]


def test_an_edit_of_the_code_concerns_the_agent_that_gets_it(locked, tmp_path: Path) -> None:
    lock = locked()
    (tmp_path / "agents" / "scout.py").write_text("fast = None  # edited\n")
    assert differences(lock, locked()) == [("cosmetic", "agents.scout.code_digest", "changed")]


@pytest.mark.parametrize(
    ("tools", "difference"),
    [
        ({}, ("breaking", "agents.scout.tools.scout", "gone")),
        ({"scout": ToolContract("x", "2", "3")}, ("breaking", "agents.scout.tools.scout.input", "changed")),
        ({"scout": ToolContract("1", "x", "3")}, ("breaking", "agents.scout.tools.scout.output", "changed")),
        ({"scout": ToolContract("1", "2", "x")}, ("cosmetic", "agents.scout.tools.scout.annotations", "changed")),
        (TOOLS["scout"] | {"a.b": ToolContract("1")}, ("additive", "agents.scout.tools.a:b", "new")),
    ],
    ids=["gone", "arguments", "results", "annotations", "new"],
)
def test_tools_break_their_callers_or_are_more(locked, tools, difference: tuple[str, str, str]) -> None:
    assert differences(locked(), locked(tools={"scout": tools})) == [difference]


def test_another_image_under_the_same_name_asks_nothing_of_anybody(locked) -> None:
    other = locked(digests={"redis:8": "sha256:2"})
    assert differences(locked(), other) == [("cosmetic", "services.db.image_digest", "changed")]


def test_what_nobody_can_tell_now_stays_as_it_was(locked) -> None:
    unknown = locked(digests={}, tools={})
    assert members.completed(unknown, None, lasting=True) == unknown
    assert members.completed(unknown, locked(), lasting=True) == locked()
    edited = locked(FLEET.replace("8101", "8109"), digests={}, tools={})
    assert members.completed(edited, locked(), lasting=True).agents["scout"].tools is None, (
        "nobody has seen the new ones"
    )
    assert members.completed(edited, locked(), lasting=False).agents["scout"].tools == locked().agents["scout"].tools
    other = locked(FLEET.replace("redis:8", "redis:9"), digests={}, tools={})
    assert members.completed(other, locked(), lasting=True).services["db"].image.digest == ""
