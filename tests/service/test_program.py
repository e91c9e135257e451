"""Programs as processes: arguments, exit codes, and what is said where."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from pallas_contract import __version__, names
from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Refused, Where
from pallas_service import program

STOPS = (signal.SIGTERM, signal.SIGINT)


@pytest.fixture(autouse=True)
def _handler() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in STOPS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def raising(error: Exception) -> int:
    raise error


def test_the_exit_code_is_that_of_what_was_served() -> None:
    assert [program.run("p", lambda code=code: code) for code in (0, 1)] == [0, 1]  # type: ignore[misc]


def test_garbage_is_looked_for_when_all_is_imported() -> None:
    usual, seen = gc.get_threshold(), []

    def serve() -> int:
        seen.append(gc.get_threshold()[0])
        program.collect_as_usual()
        seen.append(gc.get_threshold()[0])
        return 0

    assert program.run("p", serve) == 0
    assert seen == [1_000_000, usual[0]]
    with pytest.raises(ZeroDivisionError):
        program.run("p", lambda: raising(ZeroDivisionError()))
    assert gc.get_threshold() == usual


def test_what_the_user_wrote_is_2_with_every_problem(capsys: pytest.CaptureFixture[str]) -> None:
    problems = [Problem(Where("agents.yaml", 1, 1), text, code=Code.WRONG_VALUE) for text in ("one", "two")]
    assert program.run("p", lambda: raising(Refused(problems))) == 2
    assert capsys.readouterr().err == "agents.yaml:1:1: one [PAL103]\nagents.yaml:1:1: two [PAL103]\n"


def test_the_world_is_1_with_the_name_of_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.run("p", lambda: raising(program.Failure("no room"))) == 1
    assert capsys.readouterr().err == "p: no room\n"


@pytest.mark.parametrize("number", STOPS)
def test_a_stop_before_it_serves_is_quiet(number: signal.Signals) -> None:
    def stopped() -> int:
        signal.raise_signal(number)
        return 1

    with pytest.raises(SystemExit) as ended:
        program.run("p", stopped)
    assert ended.value.code == 0


def test_it_says_its_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    def code(*arguments: str) -> object:
        with pytest.raises(SystemExit) as ended:
            program.parse("p", arguments, description="Serve.", epilog="")
        return ended.value.code

    assert (code("--version"), code("--help"), code("one", "two")) == (0, 0, 2)
    assert f"p {__version__}\n" in capsys.readouterr().out


def test_the_fleet_file_is_an_argument_an_option_or_the_variable(tmp_path: Path) -> None:
    def config(*arguments: str, **environ: str) -> str:
        named = program.parse("p", arguments, description="Serve.", epilog="")
        return program.environment(named, environ)[names.ENV_AGENTS_CONFIG]

    folder = str(tmp_path / "agents.yaml")
    assert (config(str(tmp_path)), config("-f", str(tmp_path)), config("--file", "b.yaml")) == (
        folder,
        folder,
        "b.yaml",
    )
    assert (config(), config(PALLAS_AGENTS_CONFIG="c.yaml")) == ("agents.yaml", "c.yaml")
    with pytest.raises(SystemExit) as ended:
        config("a.yaml", "-f", "b.yaml")
    assert ended.value.code == 2
