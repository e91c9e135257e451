"""What everybody may read of a server's command line and output; `test_connect` has the whole reasons."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pallas_agent_runtime.health.program_reason import LONGEST, ProgramReasons
from pallas_contract.fleet.fastagent import Command
from pallas_contract.problems import Where


def words(*lines: str) -> Any:
    return SimpleNamespace(lines=lambda: list(lines), ending="exit code 1")


@pytest.mark.parametrize(
    ("file", "shown"),
    [("fastagent.config.yaml", "uvx x ${FLAG} --token=***"), ("fast-agent.secrets.yaml", "uvx")],
)
def test_a_command_line_is_shown_as_it_is_written(file: str, shown: str) -> None:
    command = Command("uvx", Where(file, 3, 5), ("x", "${FLAG}", "--token=hunter2hunter2"))
    assert ProgramReasons({"x": command}).command_line("x") == shown
    assert ProgramReasons().command_line("x") == "x"


def test_no_secret_is_in_the_output_and_a_long_line_is_cut_in_the_reason() -> None:
    reasons = ProgramReasons({"x": Command("uvx", Where("f"))}, frozenset({"hunter2hunter2"}))
    said = words("API_KEY=a1b2c3d4", f"hunter2hunter2 {'y' * 300}")
    assert reasons.output(said) == ["API_KEY=***", f"*** {'y' * 300}"]
    assert reasons.ended("x", said, "ended") == f"`uvx` ended (exit code 1): *** {'y' * (LONGEST - 7)}..."
    assert reasons.ended("x", None, "ended") == "`uvx` ended"
