"""`python -m proof [STEP ...]`: run the steps of the long form one after the other, then write the page.

A step leaves its results in .proof/, so that steps may be run one by one; the page has what is there. `page` alone only
writes it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from proof import faults, load, page, picture, results, tests
from proof.results import Measure
from proof.rows import FAULTS, INPUTS, LOAD, OTHERS, Row

DOCS = Path("docs")
TIMES, TURNS = 20, 1000
CLIENTS, HUNDREDS = 300.0, 600.0
"""Seconds."""
WITHOUT_CONTAINERS = "--without-containers"
QUICK = ("-m", "not docker and not cluster and not policy and not helm and not conformance")
Scaled = Callable[[float, int], Iterator[Measure]]


def _tests(*rows: Row) -> Scaled:
    return lambda scale, seed: tests.run(rows, QUICK if WITHOUT_CONTAINERS in sys.argv else ())


def _fuzz(scale: float, seed: int) -> Iterator[Measure]:
    examples = "fuzz" if scale >= 1 else "all"
    for measure in tests.run(INPUTS, [f"--hypothesis-seed={seed}"], examples):
        amount = "the long form" if examples == "fuzz" else "the amount of `make test`"
        yield replace(measure, text=f"{measure.text}, {amount}") if measure.text.endswith("passed") else measure


STEPS: Mapping[str, Scaled] = {
    "tests-faults": _tests(*FAULTS),
    "tests-rest": _tests(*LOAD, *OTHERS),
    "fuzz": _fuzz,
    "hundreds": lambda scale, seed: load.hundreds(HUNDREDS * scale),
    "clients": lambda scale, seed: load.clients(CLIENTS * scale),
    "turns": lambda scale, seed: load.turns(round(TURNS * scale)),
    **{
        f"faults-{target}": lambda scale, seed, target=target: faults.measure(target, round(TIMES * scale), seed)
        for target in faults.VERBS
    },
}
"""Step -> what measures it, by scale and seed."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="proof", description="Put the kit to the proof, and write docs/proof.md.")
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"one of page, {', '.join(STEPS)}; default: all")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the durations and counts; default 1")
    parser.add_argument("--seed", type=int, default=20261123, help="of the moments and choices of faults, and inputs")
    parser.add_argument(WITHOUT_CONTAINERS, action="store_true", help="leave out the tests that need Docker or helm")
    chosen = parser.parse_args()
    if unknown := set(chosen.steps) - {*STEPS, "page"}:
        parser.error(f"no step {', '.join(sorted(unknown))}; there are page, {', '.join(STEPS)}")
    for name in [name for name in chosen.steps or STEPS if name != "page"]:
        print(f"proof: {name}", flush=True)
        step = results.begun(name, chosen.scale, chosen.seed)
        step = replace(step, measures=list(STEPS[name](chosen.scale, chosen.seed)))
        for measure in step.measures:
            print(f"  {measure.row} {page.line(measure)}", flush=True)
        results.write(step)
    steps = results.read(results.FOLDER)
    (DOCS / "proof.json").write_text(results.together(steps), "utf-8")
    (DOCS / "proof.md").write_text(page.render(steps), "utf-8")
    (DOCS / "pictures" / "proof.svg").write_text(picture.render(steps), "utf-8")
    return 1 if any(not measure.held or "FAILED" in measure.text for step in steps for measure in step.measures) else 0


if __name__ == "__main__":
    sys.exit(main())
