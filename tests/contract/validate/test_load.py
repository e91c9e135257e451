"""The shape of agents.yaml: whatever stands there is a problem with a place, and costs no more than reading it."""

from __future__ import annotations

import pytest

from pallas_contract.fleet import source
from pallas_contract.problems import Refused
from pallas_contract.validate import load


def refusals(agent: str) -> list[str]:
    text = f"name: x\nagents:\n  scout: {{module: agents.scout, {agent}}}\n"
    with pytest.raises(Refused) as refused:
        load.parse(source.parse(text, name="agents.yaml"))
    return list(map(str, refused.value.problems))


def test_of_very_many_deviations_the_first_are_named() -> None:
    said = refusals(", ".join(f"a{index}: 1" for index in range(3000)))
    assert len(said) == 101
    # with `port`, which is not there
    assert said[-1].partition(": ")[2] == "and 2901 more problems [PAL012]\n    mend those above, then look again"
    assert sum(map(len, said)) < 50_000


@pytest.mark.parametrize(
    "text", ["[" * 6000, "!!int 3K", "{a0: &a0 {k: v}, a1: {<<: [*a0, *a0]}}", "&a [*a]", "8101 # x"]
)
def test_the_text_of_a_number_is_never_parsed_as_yaml(text: str) -> None:
    (problem,) = refusals(f'port: "{text}"')
    assert problem.startswith("agents.yaml:3:33 agents.scout.port: must be a whole number, not '")
    assert "without quotes" not in problem


@pytest.mark.parametrize(
    "text", ["8101", "-1", "+8_101", "0x1F", "0o17", "017", "1.5", "1.", ".5", "2e+3", ".inf", "yes", "off"]
)
def test_a_number_in_quotes_is_recognised(text: str) -> None:
    (problem,) = refusals(f'port: "{text}"')
    assert problem.endswith("write it without quotes") == (text != "0o17")  # which YAML 1.1 takes for text


@pytest.mark.parametrize("key", ["[", "[a]", "dict[str,Need]", "function-after[_inside(), str]", "a]["])
def test_an_unknown_key_may_look_like_a_branch_of_pydantics(key: str) -> None:
    (problem,) = refusals(f'port: 8101, "{key}": 1')
    assert problem.startswith(f"agents.yaml:3:45 agents.scout.{key}: unknown key")


def test_a_required_key_that_was_mistyped_is_one_problem() -> None:
    text = "name: x\nagents:\n  one: {card: a.md, prot: 8101}\n  two: {card: a.md, prots: 8102, zzz: 1}\n"
    with pytest.raises(Refused) as refused:
        load.parse(source.parse(text, name="agents.yaml"))
    problems = {problem.where.field: problem.hint for problem in refused.value.problems}
    assert problems["agents.one.prot"] == "did you mean `port`?"
    assert "agents.one.port" not in problems
    with pytest.raises(Refused) as refused:
        load.parse(source.parse("nam: x\nagents: {a: {card: a.md, zzz: 1}}\n", name="agents.yaml"))
    assert sorted(problem.where.field for problem in refused.value.problems) == ["agents.a.port", "agents.a.zzz", "nam"]
