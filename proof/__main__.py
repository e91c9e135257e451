"""`python -m proof [STEP ...]`: run the steps of the long form one after the other, then write the page.

A step leaves what it measures in .proof/ as it goes, so that steps may be run one by one and on different days; the
page has the newest of each, of steps without any here those that it had. `page` alone only writes it.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from proof import injection, load, page, picture, results, tests
from proof.faults import TARGETS
from proof.results import FOLDER, Measure, Step
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


def _faults(target: str, scale: float, seed: int) -> Iterator[Measure]:
    return injection.measure(target, round(TIMES * scale), seed)


STEPS: Mapping[str, Scaled] = {
    "tests-faults": _tests(*FAULTS),
    "tests-rest": _tests(*LOAD, *OTHERS),
    "fuzz": _fuzz,
    "hundreds": lambda scale, seed: load.hundreds(HUNDREDS * scale),
    "clients": lambda scale, seed: load.clients(CLIENTS * scale),
    "turns": lambda scale, seed: load.turns(max(1, round(TURNS * scale)), FOLDER / "turns"),
    **{f"faults-{target}": partial(_faults, target) for target in TARGETS},
}
"""Step -> what measures it, by scale and seed."""
PARTS: Mapping[str, Sequence[str]] = {
    "load": ("hundreds", "clients", "turns"),
    "faults": ("tests-faults", *(f"faults-{target}" for target in TARGETS)),
    "inputs": ("fuzz",),
    "rest": ("tests-rest",),
}
"""Part of the proof -> its steps."""


def main() -> int:
    """Run what was asked for; return 1 where anything on the page did not hold."""
    parser = argparse.ArgumentParser(prog="proof", description="Put the kit to the proof, and write docs/proof.md.")
    names = f"page, {', '.join((*PARTS, *STEPS))}"
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"parts or steps, of {names}; default: all")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the durations and counts; default 1")
    parser.add_argument("--seed", type=int, default=20261123, help="of the moments and choices of faults, and inputs")
    parser.add_argument("--resume", action="store_true", help="leave out what .proof/ has of this commit and scale")
    parser.add_argument(WITHOUT_CONTAINERS, action="store_true", help="leave out the tests that need Docker or helm")
    chosen = parser.parse_args()
    if unknown := set(chosen.steps) - {*STEPS, *PARTS, "page"}:
        parser.error(f"no step {', '.join(sorted(unknown))}; there are {names}")
    if chosen.scale <= 0:
        parser.error(f"--scale {chosen.scale:g}: more than 0, and 1 for all of it")
    for name in selected(chosen.steps):
        step = results.begun(name, chosen.scale, chosen.seed)
        if chosen.resume and results.has(step):
            print(f"proof: {name} is there", flush=True)
        else:
            _run(step, STEPS[name])
    steps = results.newest(DOCS / "proof.json")
    (DOCS / "proof.json").write_text(results.together(steps), "utf-8")
    (DOCS / "proof.md").write_text(page.render(steps), "utf-8")
    (DOCS / "pictures" / "proof.svg").write_text(picture.render(steps), "utf-8")
    return 0 if all(measure.held for step in steps for measure in step.measures) else 1


def selected(names: Sequence[str]) -> list[str]:
    """Return the steps behind names of parts and steps, each once; all of them for no name."""
    steps = [step for name in names for step in PARTS.get(name, (name,)) if step != "page"]
    return list(dict.fromkeys(steps if names else STEPS))


def _run(step: Step, measured: Scaled) -> None:
    """Run a step, and write each of its measures as it comes. One that fails is told as such, and the next follows."""
    print(f"proof: {step.name}", flush=True)
    measures: list[Measure] = []
    try:
        for measure in measured(step.scale, step.seed):
            print(f"  {measure.row} {page.line(measure)}", flush=True)
            measures.append(measure)
            results.write(replace(step, measures=measures))
    except Exception as error:  # a long run goes on; what was measured before stays
        traceback.print_exc()
        reason = load.reason_of(f"{type(error).__name__}: {error}")
        measures.append(Measure("", f"the step {step.name}", text=f"FAILED: {reason}"))
        results.write(replace(step, measures=measures))
    else:
        results.write(replace(step, measures=measures, whole=True))


if __name__ == "__main__":
    sys.exit(main())
