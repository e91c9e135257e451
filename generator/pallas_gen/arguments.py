"""Words of a command line -> the same in the order that commands expect; a verb of `pallas` -> a hint that names it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_VALUES: Mapping[str, int] = {"-f": 1, "--file": 1, "--format": 1, "-q": 0, "--quiet": 0, "-v": 0, "--verbose": 0}
"""Options that people write before the verb, as kubectl and docker take theirs, and how many words follow each."""
OTHERS: Mapping[str, str] = {
    **{
        verb: f"did you mean `pallas {verb}`?"
        for verb in ("add", "call", "chat", "console", "init", "logs", "status", "stop", "up")
    },
    "ask": "did you mean `pallas call`?",
    "completion": "`pallas-gen --show-completion` prints its script, `pallas completion SHELL` that of `pallas`",
    "conformance": "did you mean `pallas-testing conformance`?",
    "down": "`pallas stop` ends a fleet; `docker compose down` takes its containers away too",
    "ps": "did you mean `pallas status`?",
    "run": "did you mean `pallas up`?",
    "start": "did you mean `pallas up`?",
}
"""Words in the place of a verb that are verbs elsewhere."""


def arranged(words: Sequence[str]) -> list[str]:
    """Return the words with the options before the verb put behind what follows it, as if they were written there."""
    index = 0
    while index < len(words) and (option := words[index].partition("=")[0]) in _VALUES:
        index += 1 if "=" in words[index] else 1 + _VALUES[option]
    before = list(words[:index])
    rest = list(words[index:])
    # `--` ends the options; and without a verb there is nothing to put them behind
    end = rest.index("--") if "--" in rest else len(rest)
    return [*rest[:end], *before, *rest[end:]] if rest and not rest[0].startswith("-") else list(words)
