"""`python -m benchmarks [NAME ...]`: run the benchmarks one after the other, and tell all figures in one table.

A benchmark is a module of this folder: its docstring's first line says what, `measure(effort)` yields its figures.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from dataclasses import replace
from types import ModuleType

import benchmarks
from benchmarks.method import report
from benchmarks.method.load import Missing
from benchmarks.method.report import Figure
from benchmarks.method.side_by_side import FULL, QUICK, Effort


def main() -> int:
    known = [found.name for found in pkgutil.iter_modules(benchmarks.__path__) if found.name != "__main__"]
    names = sorted(name for name in known if name != "method")
    chosen = _parsed(names)
    effort = QUICK if chosen.quick else Effort(rounds=chosen.rounds, seconds=chosen.seconds)
    figures: list[Figure] = []
    for name in chosen.names or names:
        figures += run(importlib.import_module(f"benchmarks.{name}"), effort)
    print(f"\n{report.table(figures)}")
    return 0


def run(benchmark: ModuleType, effort: Effort) -> list[Figure]:
    """The figures of one benchmark, each told as soon as it is there; those so far when something is missing."""
    print(f"\n{benchmark.__name__.rpartition('.')[2]}: {(benchmark.__doc__ or '').partition('\n')[0]}", flush=True)
    figures: list[Figure] = []
    try:
        for figure in benchmark.measure(effort):
            figures.append(replace(figure, bar=None) if effort.quick else figure)
            print(f"  {report.line(figures[-1])}", flush=True)
    except Missing as missing:
        print(f"  NOT RUN: {missing}", flush=True)
    return figures


def _parsed(names: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description="Figures of the kit beside those of its peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(names)}; default: all")
    parser.add_argument("--rounds", type=int, default=FULL.rounds, help="that count, per figure")
    parser.add_argument("--seconds", type=float, default=FULL.seconds, help="of each measurement under load")
    parser.add_argument("--quick", action="store_true", help="only try whether they run: the figures mean nothing")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(names):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
