"""That the benchmarks still run; their figures are for `make bench`."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import benchmarks
from benchmarks import generator_scale

NAMES = sorted({found.name for found in pkgutil.iter_modules(benchmarks.__path__)} - {"__main__", "method"})


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=root, check=False, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_says_what_it_measures_and_is_in_the_readme(root: Path, name: str) -> None:
    found = importlib.import_module(f"benchmarks.{name}")
    assert found.__doc__
    assert callable(found.measure)
    assert f"| `{name}` |" in (root / "benchmarks/README.md").read_text()


@pytest.mark.parametrize("shape", generator_scale.SHAPES)
def test_each_stage_of_the_compiler_takes_a_fleet_of_each_shape(tmp_path: Path, shape: str) -> None:
    folder = generator_scale.fleet(tmp_path, generator_scale.SHAPES[shape][0], 4)
    for prepare in generator_scale.STAGES.values():
        assert prepare(folder)()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("agent_conversations", ["new downstream connections per 100 conversations", "memory per new conversation"]),
        pytest.param("generator", ["40 agents / 20"], marks=[pytest.mark.docker, pytest.mark.helm]),
    ],
)
def test_a_quick_run_ends_with_a_table_of_its_figures(root: Path, name: str, figures: list[str]) -> None:
    done = run(root, name, "--quick")
    assert done.returncode == 0, done.stderr
    table = done.stdout.rpartition("\n\n")[2]
    assert "NOT RUN" not in done.stdout
    assert all(figure in table for figure in figures)


def test_an_unknown_name_is_told_with_the_known_ones(root: Path) -> None:
    done = run(root, "made_up")
    assert done.returncode == 2
    assert f"no benchmark made_up; there are {', '.join(NAMES)}" in done.stderr
