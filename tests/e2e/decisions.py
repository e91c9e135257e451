"""conformance/decisions.yaml, and what the suite found held against it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from .suite import Results

Server = Literal["agent", "stateless", "registry", "gateway"]
SERVERS: tuple[Server, ...] = ("agent", "stateless", "registry", "gateway")

PATH = Path(__file__).parent / "conformance" / "decisions.yaml"
_WIRE = "wire-schema-valid"
"""The check in every scenario that each message fits the official JSON schema of its era."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NotApplicable(_Part):
    """Scenarios that ask for what these servers do not have."""

    why: str = Field(min_length=1)
    only: tuple[Server, ...] = SERVERS
    scenarios: tuple[str, ...]


class Excused(_Part):
    """Single checks, as `scenario:check`, in scenarios that apply."""

    why: str = Field(min_length=1)
    only: tuple[Server, ...] = SERVERS
    checks: tuple[str, ...]


class Decisions(_Part):
    """The file."""

    run: tuple[str, ...]
    not_applicable: tuple[NotApplicable, ...]
    excused: tuple[Excused, ...]


def load() -> Decisions:
    """The file; raises pydantic.ValidationError for another shape."""
    return Decisions.model_validate(yaml.safe_load(PATH.read_text()))


def problems(decisions: Decisions, server: Server, results: Results) -> list[str]:
    """What is wrong with the server or with the file, a line each: a new scenario, a failed check, a stale excuse."""
    waived = {name for group in decisions.not_applicable if server in group.only for name in group.scenarios}
    excused = {check for group in decisions.excused if server in group.only for check in group.checks}
    lines = list(_undecided(decisions, waived, {scenario for _, scenario in results}))
    used = set()
    for (era, scenario), checks in sorted(results.items()):
        bad = {check: finding for check, finding in checks.items() if finding}
        if scenario in waived:
            if not bad.keys() - {_WIRE}:
                lines.append(f"{scenario} passes in {era}, and is listed as not applicable")
            bad = {_WIRE: bad[_WIRE]} if _WIRE in bad else {}
        for check, finding in bad.items():
            if f"{scenario}:{check}" in excused:
                used.add(f"{scenario}:{check}")
            else:
                lines.append(f"{scenario}:{check} in {era}: {finding}")
        lines += [
            f"{scenario}:{check} passes in {era}, and is excused"
            for check, finding in checks.items()
            if not finding and f"{scenario}:{check}" in excused
        ]
    return lines + [f"{check} is excused, but nothing of the kind is found" for check in sorted(excused - used)]


def _undecided(decisions: Decisions, waived: set[str], known: set[str]) -> Iterator[str]:
    every = {name for group in decisions.not_applicable for name in group.scenarios} | set(decisions.run)
    for scenario in sorted(known - waived - set(decisions.run)):
        yield f"{scenario} is in the suite, but not in decisions.yaml"
    for scenario in sorted(every - known):
        yield f"{scenario} is in decisions.yaml, but not in the suite"
