"""`pallas completion`: what a shell needs to complete words of `pallas`, and the words that fit.

A shell asks by `pallas completion --words N WORD...`, with all words of the line and the place of the one to complete.
"""

from __future__ import annotations

import argparse
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from pallas_cli import arguments, runtime
from pallas_contract import names
from pallas_contract.fleet import source
from pallas_contract.problems import Refused

_ASK = "pallas completion --words"
SCRIPTS: Mapping[str, str] = {
    "bash": f"""\
_pallas() {{
    local IFS=$'\\n'
    COMPREPLY=($({_ASK} "$COMP_CWORD" "${{COMP_WORDS[@]}}" 2>/dev/null))
}}
complete -o default -F _pallas pallas
""",
    "zsh": f"""\
#compdef pallas
_pallas() {{
    local -a candidates
    candidates=("${{(@f)$({_ASK} $((CURRENT - 1)) "${{words[@]}}" 2>/dev/null)}}")
    if [[ -n "${{candidates[1]}}" ]]; then compadd -- "${{candidates[@]}}"; else _files; fi
}}
if [[ "${{funcstack[1]}}" == _pallas ]]; then _pallas "$@"; else compdef _pallas pallas; fi
""",
    "fish": f"""\
function __pallas_words
    set -l line (commandline --tokenize --cut-at-cursor --current-process)
    set -l current (commandline --cut-at-cursor --current-token)
    {_ASK} (count $line) $line "$current" 2>/dev/null | string match --entire ''
    or __fish_complete_path "$current"
end
complete --command pallas --no-files --arguments '(__pallas_words)'
""",
}
"""Shell -> what it runs to complete; where no word fits, it offers files as it does elsewhere."""


def run(options: Namespace) -> int:
    """Print the script of a shell, or the words that fit. Returns the exit code."""
    if options.shell:
        sys.stdout.write(SCRIPTS[options.shell])
    elif options.words:
        place, *line = options.words
        index = int(place) if place.isdecimal() else 0
        sys.stdout.writelines(f"{word}\n" for word in words(line[1:index], line[index] if index < len(line) else ""))
    else:
        sys.stderr.write(f"pallas completion: name a shell: {', '.join(SCRIPTS)}\n")
        return 2
    return 0


def words(before: Sequence[str], current: str) -> list[str]:
    """Return the words that fit at the cursor, sorted; `before` are those between `pallas` and it.

    None where a value is to be typed, or a path.
    """
    parser, rest = _verb(before, current)
    option = _option(parser, rest[-1]) if rest else None
    if option is not None and option.nargs != 0:
        candidates = [*(option.choices or ())]
    elif current.startswith("-"):
        candidates = [*_options(parser, rest)]
    else:
        candidates = [*_arguments(parser, rest, before)]
    return sorted({str(word) for word in candidates if str(word).startswith(current)})


def _verb(before: Sequence[str], current: str) -> tuple[argparse.ArgumentParser, list[str]]:
    """Return the parser of the verb that was typed, or of its own verb, and the words behind it.

    A line that begins with an option has no verb.
    """
    if (*before, current)[0].startswith("-"):
        return runtime.parser(), list(before)
    parser = arguments.parser()
    rest: list[str] = []
    for word in before:
        action = _subverbs(parser)
        if action and word in action.choices:
            parser, rest = action.choices[word], []
        else:
            rest.append(word)
    return parser, rest


def _subverbs(parser: argparse.ArgumentParser) -> Any:
    return next((action for action in parser._actions if isinstance(action, argparse._SubParsersAction)), None)


def _option(parser: argparse.ArgumentParser, word: str) -> argparse.Action | None:
    return next((action for action in parser._actions if word in action.option_strings), None)


def _options(parser: argparse.ArgumentParser, rest: Sequence[str]) -> Iterator[str]:
    """Yield the options that were not typed yet, and those that may be typed again."""
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            continue
        again = isinstance(action, argparse._AppendAction)
        if again or not set(action.option_strings) & set(rest):
            yield from action.option_strings


def _arguments(parser: argparse.ArgumentParser, rest: Sequence[str], before: Sequence[str]) -> Iterator[str]:
    """Yield what fits as the next plain word: a verb, or a name of the fleet."""
    if action := _subverbs(parser):
        yield from action.choices
        return
    positional = [action for action in parser._actions if not action.option_strings]
    typed = sum(1 for index, word in enumerate(rest) if not word.startswith("-") and not _is_value(parser, rest, index))
    if typed < len(positional):
        action = positional[typed]
        yield from map(str, action.choices or ())
        if action.metavar == "AGENT":
            yield from _members(before, "agents")
        elif before[0] == "logs":
            yield from (*_members(before, "agents"), *_members(before, "services"), names.REGISTRY)


def _is_value(parser: argparse.ArgumentParser, rest: Sequence[str], index: int) -> bool:
    option = _option(parser, rest[index - 1]) if index else None
    return option is not None and option.nargs != 0


def _members(before: Sequence[str], section: str) -> list[str]:
    """Return the names in a section of the fleet file, as the registry has them; none where there is no such file."""
    # `-f` of `logs` has no value
    spellings = ("--file",) if before[0] == "logs" else ("-f", "--file")
    paths = [Path(word) for option, word in pairwise(before) if option in spellings]
    try:
        data = source.read(names.fleet_file(paths[0] if paths else None, os.environ)).data
    except (Refused, OSError):
        return []
    members = data.get(section) if isinstance(data, dict) else None
    return [names.slug(str(name)) for name in members] if isinstance(members, dict) else []
