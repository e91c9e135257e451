"""Faults as verbs: what the target is told, what undoes it, and who is waited for afterwards."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from pallas_testing.fleet.faults import Faults
from pallas_testing.model import ScriptedModel, serving
from pallas_testing.model.exchange import CannotFail
from pallas_testing.model.server import Scripted
from pallas_testing.project import fleet_file
from pallas_testing.targets import table
from pallas_testing.targets.base import CannotDisturb, Order, Undo, undone
from pallas_testing.targets.relay import Course

from .registry_stub import Stub

FILE = """\
agents:
  harper: {module: a, port: 1, depends_on: [research]}
  research: {module: b, port: 2}
services:
  model: {module: m, port: 3, provides: openai}
  tools: {module: t, port: 4}
"""


class Able(Stub):
    """A target with every fault, which notes what it is told."""

    def _note(self, *words: object) -> Undo:
        self.done.append(" ".join(map(str, words)))
        return partial(self.done.append, f"undo {words[0]}")

    def scale(self, agent: str, count: int) -> Undo:
        return self._note("scale", agent, count)

    def partition(self, one: str, other: str) -> Undo:
        return self._note("partition", one, other)

    def lead(self, fault: str, caller: str, callee: str, course: Course) -> Undo:
        return self._note(fault, caller, callee, course["latency"], course["jitter"], course["cut_after"])

    def rotate_secret(self, name: str, content: str) -> Undo:
        return self._note("rotate_secret", name, content)

    def fill_disk(self, agent: str) -> Undo:
        return self._note("fill_disk", agent)

    def execute(self, member: str, code: str) -> str:
        self.done.append(f"in {member}")
        subprocess.run([sys.executable, "-I", "-c", code], check=True)
        return ""


@pytest.fixture
def target(tmp_path: Path) -> Able:
    (tmp_path / "agents.yaml").write_text(FILE)
    target = Able(Order(tmp_path / "agents.yaml", tmp_path))
    target.file = fleet_file.read(tmp_path / "agents.yaml")
    return target


def test_each_verb_is_told_and_undone_the_last_one_first(target: Able) -> None:
    faults = Faults(target)
    faults.scale("research", 3)
    faults.partition("harper", "registry")
    faults.slow("harper", "research", 0.5, jitter=0.1)
    faults.cut("harper", "research", after_bytes=10)
    faults.rotate_secret("key.txt", "new")
    faults.fill_disk("research")
    done = [
        "scale research 3",
        "partition harper registry",
        "slow harper research 0.5 0.1 None",
        "cut harper research 0.0 0.0 10",
        "rotate_secret key.txt new",
        "fill_disk research",
    ]
    assert target.done == done
    assert list(faults.members) == ["research", "harper", "registry"]
    assert faults.done[1:4] == ["partition harper, registry", "slow harper -> research", "cut harper -> research"]
    faults.undo()
    assert target.done[6:] == [f"undo {line.partition(' ')[0]}" for line in reversed(done)]


def test_the_provider_is_down_or_limits_until_the_end_of_the_test(
    target: Able, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(ScriptedModel()) as model:
        monkeypatch.setattr(target, "own_url", lambda _: model.url)
        faults = Faults(target)
        faults.provider.rate_limit(retry_after=7)
        answer = httpx.get(f"{model.url}/v1/models", trust_env=False, timeout=60)
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
        faults.provider.down()
        body = {"model": "scripted", "messages": [{"role": "user", "content": "hello"}]}
        answer = httpx.post(f"{model.url}/v1/chat/completions", json=body, trust_env=False, timeout=60)
        assert (answer.status_code, answer.json()["error"]["message"]) == (503, "the provider is down")
        faults.undo()
        assert httpx.get(f"{model.url}/v1/models", trust_env=False, timeout=60).status_code == 200
    assert set(target.done) == {"in model"}
    assert model.problems() == []


def test_a_model_that_cannot_fail_says_why(target: Able, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise CannotFail("it records a provider")

    def execute(_: str, code: str) -> str:
        done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
        raise CannotDisturb(done.stderr)

    monkeypatch.setattr(Scripted, "fail", fail)
    monkeypatch.setattr(target, "execute", execute)
    with serving(ScriptedModel()) as model:
        monkeypatch.setattr(target, "own_url", lambda _: model.url)
        faults = Faults(target)
        with pytest.raises(
            CannotDisturb, match=r"^provider: model is .* or one that records: HTTP Error 409: .*records a"
        ):
            faults.provider.down()
    assert faults.done == []


def test_a_fleet_without_a_model_of_its_own_has_no_provider(target: Able, tmp_path: Path) -> None:
    (tmp_path / "agents.yaml").write_text("agents: {harper: {module: a, port: 1}}")
    target.file = fleet_file.read(tmp_path / "agents.yaml")
    with pytest.raises(CannotDisturb, match=r"provider: agents\.yaml has no service that provides a model"):
        Faults(target).provider.down()


def test_a_model_that_is_none_of_the_kit_cannot_be_had_to_fail(target: Able, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(member: str, code: str) -> str:
        raise CannotDisturb(f"in {member}: HTTP Error 404: Not Found")

    monkeypatch.setattr(target, "execute", fail)
    faults = Faults(target)
    with pytest.raises(CannotDisturb, match=r"^provider: model is no scripted model of the kit, .*: in model: HTTP"):
        faults.provider.down()
    assert faults.done == []


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("scale", ("harper", 2)),
        ("partition", ("harper", "research")),
        ("slow", ("harper", "research", 1.0)),
        ("cut", ("harper", "research", 1)),
        ("rotate_secret", ("key.txt", "new")),
        ("fill_disk", ("harper",)),
        ("remove", ("harper",)),
    ],
)
def test_processes_refuse_what_they_have_not_by_name(tmp_path: Path, verb: str, arguments: tuple[Any, ...]) -> None:
    target = table.target("processes", Order(tmp_path / "agents.yaml", tmp_path))
    target.file = SimpleNamespace(agents=("harper",))  # type: ignore[assignment]
    faults = Faults(target)
    with pytest.raises(CannotDisturb, match=f"^{verb}: not on processes"):
        getattr(faults, verb)(*arguments)
    assert faults.done == []
    assert not faults.members


@pytest.mark.parametrize("error", [CannotDisturb("no way"), KeyboardInterrupt()])
def test_who_had_a_fault_that_failed_half_way_is_waited_for(
    error: BaseException, target: Able, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Ctrl-C too."""

    def partition(one: str, other: str) -> Undo:
        with undone(target._note("partition", one, other)):
            raise error

    monkeypatch.setattr(target, "partition", partition)
    faults = Faults(target)
    with pytest.raises(type(error)):
        faults.partition("harper", "research")
    assert target.done == ["partition harper research", "undo partition"]
    assert faults.done == ["partition harper, research (failed half way)"]
    assert list(faults.members) == ["harper", "research"]
    faults.undo()
    assert target.done[2:] == []
