"""argparse with a suggestion for a mistyped verb or option, which Python 3.13 does not make by itself.

What there is to choose from it writes in one way too: argparse's own words differ between releases of 3.13.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Sequence
from typing import Any


class ArgumentParser(argparse.ArgumentParser):
    """A parser that names the nearest verb or option where one is unknown; its verbs have such parsers too."""

    # typeshed gives parse_args overloads for namespaces of other types, which nobody here uses
    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Return the options.

        Raises:
            SystemExit: what is wrong was printed, with code 2.
        """
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self._of_verb(options)._refuse(unknown)
        return options

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        nearest = _nearest(str(value), choices)
        hint = f"did you mean `{nearest}`?" if nearest else f"choose from {', '.join(choices)}"
        raise argparse.ArgumentError(action, f"there is no `{value}`: {hint}")

    def _of_verb(self, options: argparse.Namespace) -> ArgumentParser:
        """Return the parser of the verb that was chosen, or of the verb's own; this one where there are no verbs."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction) and (verb := getattr(options, action.dest, None)):
                chosen: ArgumentParser = action.choices[verb]
                return chosen._of_verb(options)
        return self

    def _refuse(self, unknown: Collection[str]) -> None:
        options = [word.partition("=")[0] for word in unknown if word.startswith("--")]
        nearest = _nearest(options[0], self._option_string_actions) if options else ""
        hint = f": did you mean `{nearest}`?" if nearest else ""
        self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")


def _nearest(word: str, words: Iterable[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - no command that is right needs it

    return next(iter(get_close_matches(word, list(words), n=1)), "")
