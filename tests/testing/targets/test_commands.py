"""The commands behind a target: what they say of a failure is what the user reads."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pallas_testing.project import fleet_file
from pallas_testing.targets import commands
from pallas_testing.targets.base import CannotStart, Order


@pytest.fixture
def order(tmp_path: Path) -> Order:
    (tmp_path / "agents.yaml").write_text("agents: {harper: {module: a, port: no}}\n")
    return Order(tmp_path / "agents.yaml", tmp_path, {"PLANTED": "yes"})


def test_a_command_runs_beside_the_copy_with_the_fleets_environment(order: Order) -> None:
    code = "import os, pathlib; print(pathlib.Path('agents.yaml').exists(), os.environ['PLANTED'])"
    file = fleet_file.read(order.file)
    assert commands.run([sys.executable, "-c", code], file, order) == "True yes\n"


def test_a_failure_has_what_the_command_said(order: Order) -> None:
    code = "import sys; print('out'); sys.exit('err')"
    with pytest.raises(CannotStart, match=r"ends with 1:\nout\nerr$"):
        commands.run([sys.executable, "-c", code], fleet_file.read(order.file), order)


def test_a_command_that_is_not_here_is_named(order: Order) -> None:
    with pytest.raises(CannotStart, match="no-such-command is not here, and this target needs it"):
        commands.run(["no-such-command"], fleet_file.read(order.file), order)


def test_a_refusal_of_the_generator_names_the_place_in_the_users_file(order: Order) -> None:
    with pytest.raises(CannotStart, match=r"agents\.yaml:1:\d+ agents\.harper\.port: "):
        commands.generate(fleet_file.read(order.file), order, "compose")
