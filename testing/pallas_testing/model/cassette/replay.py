"""A cassette as the answers of a scripted model."""

from __future__ import annotations

from collections import Counter

from pallas_testing.model.cassette import comparison, recorded
from pallas_testing.model.cassette.recorded import Cassette
from pallas_testing.model.cassette.secrets import Scrubber
from pallas_testing.model.exchange import Failure, Reply, Request
from pallas_testing.model.matching import Unscripted, describe


class Replay:
    """Called with a request, it returns what was recorded for one that means the same.

    What was asked several times is answered in the order of the recording; then by its last answer.
    """

    def __init__(self, cassette: Cassette, name: str) -> None:
        """`name` is what messages call the file."""
        self._name = name
        self._scrub = Scrubber().text
        self._recorded = [comparison.parts(cassette.request(entry), self._scrub) for entry in cassette.exchanges]
        self._replies = [recorded.result(entry.reply) for entry in cassette.exchanges]
        self._asked: Counter[int] = Counter()
        self.models = sorted({agent.model for agent in cassette.agents.values()})

    def __call__(self, request: Request) -> Reply | Failure:
        """Return the answer.

        Raises:
            Unscripted: nothing was recorded that means the same; the text says what differs from the nearest.
        """
        asked = comparison.parts(request, self._scrub)
        numbers = [number for number, parts in enumerate(self._recorded) if comparison.same(parts, asked)]
        if not numbers:
            raise Unscripted(self._explained(request, asked))
        turn = min(self._asked[numbers[0]], len(numbers) - 1)
        self._asked[numbers[0]] += 1
        return self._replies[numbers[turn]]

    def _explained(self, request: Request, asked: dict[str, str]) -> str:
        lines = [f"{self._name} has no recording of this call:", describe(request)]
        if self._recorded:
            distances = [comparison.distance(parts, asked) for parts in self._recorded]
            nearest = distances.index(min(distances))
            lines.append(f"  it differs from exchanges.{nearest}, the nearest, in")
            lines += (f"    {line}" for line in comparison.differences(self._recorded[nearest], asked))
        return "\n".join([*lines, "  record it again with --record if the change is meant"])
