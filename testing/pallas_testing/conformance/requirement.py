"""A row of the table, and how it is judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Literal, NoReturn

from pallas_testing.conformance.wire import Exchange, printable

Verdict = Literal["held", "broken", "not asked"]


class Broken(Exception):
    """A requirement that does not hold: `right` says what would be, `received` what came, in the exchange if empty."""

    def __init__(self, exchange: Exchange, right: str, received: str = "") -> None:
        super().__init__(right)
        self.sent = exchange.sent
        self.received = received or exchange.received
        self.right = right


class NotAsked(Exception):
    """A requirement that nobody could judge this time; the text says what it would take."""


@dataclass(frozen=True, slots=True)
class Requirement[Evidence]:
    """One requirement: where it stands in a seed, in our own short words, and its check.

    `check` returns a remark, empty for none, and raises `Broken` or `NotAsked`. `after` is a row that has to hold
    first. `decision` numbers the page in docs/decisions by which the kit differs; both behaviours hold then.
    """

    id: str
    source: str
    sentence: str
    check: Callable[[Evidence], str]
    after: str = ""
    decision: str = ""


class Table[Evidence]:
    """Requirements in the order in which they are judged."""

    def __init__(self) -> None:
        self.rows: list[Requirement[Evidence]] = []

    def row(
        self, requirement: str, source: str, sentence: str, *, after: str = "", decision: str = ""
    ) -> Callable[[Callable[[Evidence], str]], Callable[[Evidence], str]]:
        """Make a row of the function beneath; `source` is the seed's number and the section."""

        def add(check: Callable[[Evidence], str]) -> Callable[[Evidence], str]:
            self.rows.append(Requirement(requirement, f"seed {source}", sentence, check, after, decision))
            return check

        return add


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one requirement in one era; `era` is empty where MCP is not involved.

    Texts may quote the server: all that is not printable is escaped, whatever form the report has.
    """

    id: str
    source: str
    sentence: str
    era: str
    verdict: Verdict
    remark: str = ""
    decision: str = ""
    sent: str = ""
    received: str = ""
    right: str = ""

    def __post_init__(self) -> None:
        for entry in fields(self):
            object.__setattr__(self, entry.name, printable(getattr(self, entry.name)))


def judge[Evidence](rows: Sequence[Requirement[Evidence]], evidence: Evidence, era: str = "") -> list[Finding]:
    """Return a finding for each row, in their order."""
    findings: dict[str, Finding] = {}
    for row in rows:
        findings[row.id] = _judge(row, evidence, era, findings.get(row.after))
    return list(findings.values())


def _judge[Evidence](row: Requirement[Evidence], evidence: Evidence, era: str, before: Finding | None) -> Finding:
    def finding(verdict: Verdict, remark: str = "", broken: Broken | None = None) -> Finding:
        parts = (broken.sent, broken.received, broken.right) if broken else ()
        return Finding(row.id, row.source, row.sentence, era, verdict, remark, row.decision, *parts)

    if before is not None and before.verdict != "held":
        return finding("not asked", before.remark or f"only where {row.after} holds")
    try:
        return finding("held", row.check(evidence))
    except NotAsked as reason:
        return finding("not asked", str(reason))
    except Broken as broken:
        return finding("broken", "", broken)


def demand(holds: object, exchange: Exchange, right: str, received: str = "") -> None:
    """Return where it holds.

    Raises:
        Broken: it does not.
    """
    if not holds:
        raise Broken(exchange, right, received)


def not_asked(reason: str) -> NoReturn:
    """Leave a requirement unjudged.

    Raises:
        NotAsked: always.
    """
    raise NotAsked(reason)
