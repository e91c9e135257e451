"""A finding of `pallas-gen doctor`, and all of them for people and for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Where, printable

Topic = Literal["machine", "project", "keys", "ports", "images", "hosts", "fleet"]
State = Literal["ok", "note", "warning", "error"]
"""As it should be; not as it could be, and nothing here needs it; may stand in the way; stands in the way."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; all but `ok` have a hint that says what to do."""

    topic: Topic
    state: State
    subject: str
    message: str
    hint: str = ""
    code: Code | None = None
    where: Where | None = None
    """The place in a file, of a finding that has one."""

    @classmethod
    def of(cls, topic: Topic, problem: Problem) -> Finding:
        """Return a problem of another room as a finding."""
        where = problem.where
        return cls(topic, problem.level, str(where), problem.message, problem.hint, problem.code, where)


def text(findings: Sequence[Finding], *, quiet: bool = False, verbose: bool = False) -> str:
    """Return the findings under their topics, and their count.

    Where `quiet` only warnings and errors, where `verbose` each with the section that explains it.
    """
    shown = [finding for finding in findings if not quiet or finding.state in ("warning", "error")]
    lines: list[str] = []
    topics: list[Topic] = []
    for finding in shown:
        if finding.topic not in topics:
            topics.append(finding.topic)
            lines.append(finding.topic)
        code = f" [{finding.code}]" if finding.code else ""
        lines.append(f"  {finding.state:<7}  {finding.subject}: {finding.message}{code}")
        lines += [f"             {line}" for line in finding.hint.splitlines()]
        if verbose and finding.code:
            lines.append(f"             see {finding.code.section}")
    if not quiet:
        lines.append(_summary(findings))
    return "".join(f"{printable(line)}\n" for line in lines)


def _summary(findings: Iterable[Finding]) -> str:
    counts = _counts(findings)
    words = [f"{count} {word[:-1] if count == 1 else word}" for word, count in counts.items() if count]
    return " and ".join(words) if words else "nothing stands in the way"


def _counts(findings: Iterable[Finding]) -> dict[str, int]:
    states = [finding.state for finding in findings]
    return {"errors": states.count("error"), "warnings": states.count("warning")}


def document(findings: Sequence[Finding]) -> dict[str, object]:
    """Return the same for programs; keys that a finding has nothing for are left out."""
    entries = [
        {key: value for key, value in asdict(finding).items() if value and key != "where"} for finding in findings
    ]
    return {**_counts(findings), "findings": entries}


def problems(findings: Iterable[Finding]) -> list[Problem]:
    """Return what is an error or a warning as problems, for a log of an analysis; what is no place is a topic."""
    return [
        Problem(
            finding.where or Where(finding.topic, field=finding.subject),
            finding.message,
            finding.hint,
            "error" if finding.state == "error" else "warning",
            code=finding.code,
        )
        for finding in findings
        if finding.code and finding.state in ("error", "warning")
    ]
