"""Start a baked MCP server the way `uvx` or `npx` would: it stands in for them in an image, where nothing is fetched.

The generator reads command lines with `parse`, and the image with the same one, so that both mean the same package.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = "/opt/servers"
COMMANDS = f"{ROOT}/commands.json"
"""JSON object `{command's key: arguments of the program it starts}`, which the build writes."""

Kind = Literal["python", "npm"]
KINDS: Mapping[str, Kind] = {"uvx": "python", "uv": "python", "pipx": "python", "npx": "npm", "bunx": "npm"}
"""Programs that fetch a package and start it, each with where it fetches from."""

_PREFIXES = {"uv": (("tool", "run"),), "pipx": (("run",),)}
_FLAGS = frozenset(
    {
        "-y",
        "--yes",
        "-q",
        "--quiet",
        "-U",
        "--refresh",
        "--no-cache",
        "--isolated",
        "--offline",
        "--prefer-offline",
        "--",
    }
)
_SPECIFIERS = {"uvx": "--from", "uv": "--from", "pipx": "--spec", "npx": "--package", "bunx": "--package"}
_IGNORED = frozenset({"-p", "--python"})
"""Options of uvx with a value: the Python in the image is the one there is."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package to start a program of."""

    kind: Kind
    specifier: str
    """Name with version, as pip or npm take it."""
    program: str
    """Empty: the one that bears the package's name, or the only one."""
    extra: tuple[str, ...] = ()
    """Further packages beside it (`--with`)."""

    @property
    def key(self) -> str:
        """Return the name under which the image knows it."""
        return " ".join((self.kind, self.specifier, self.program, *self.extra)).strip()


def parse(program: str, arguments: Sequence[str]) -> tuple[Package, list[str]] | None:
    """Return the package that a command line starts and the arguments of its program; None for any other."""
    kind = KINDS.get(program)
    words = list(arguments)
    if kind is None or not _take_prefix(program, words):
        return None
    options = _take_options(program, words)
    if options is None or not words:
        return None
    specifier, extra = options
    command = words.pop(0)
    if specifier:
        return Package(kind, _plain(kind, specifier), command, extra), words
    return Package(kind, _plain(kind, command), "", extra), words


def _take_options(program: str, words: list[str]) -> tuple[str, tuple[str, ...]] | None:
    """Take the options away; returns the package that they name and those beside it, None for one nobody knows."""
    specifier = ""
    extra: list[str] = []
    while words and words[0].startswith("-"):
        option, equals, value = words.pop(0).partition("=")
        if option in _FLAGS:
            continue
        if not equals:
            if not words:
                return None
            value = words.pop(0)
        if option == _SPECIFIERS[program] or (program == "npx" and option == "-p"):
            specifier = value
        elif option == "--with":
            extra.append(value)
        elif option not in _IGNORED:
            return None
    return specifier, tuple(extra)


def _take_prefix(program: str, words: list[str]) -> bool:
    """Take `tool run` of `uv tool run` away; returns whether it was there where it has to be."""
    for prefix in _PREFIXES.get(program, ()):
        if tuple(words[: len(prefix)]) != prefix:
            return False
        del words[: len(prefix)]
    return True


def _plain(kind: Kind, specifier: str) -> str:
    """Return a specifier as pip takes it: uvx has `name@1.2` and `name@latest` for it."""
    name, at, version = specifier.rpartition("@")
    if kind == "npm" or not at or "/" in specifier:
        return specifier
    return name if version == "latest" else f"{name}=={version}"


def package_name(package: Package) -> str:
    """Return the name of a package without version and extras."""
    if package.kind == "npm":
        scope, slash, rest = package.specifier.rpartition("/")
        return f"{scope}{slash}{rest.partition('@')[0]}"
    end = next((index for index, char in enumerate(package.specifier) if char in "[=<>!~; @"), None)
    return package.specifier[:end]


def main(program: str, arguments: Sequence[str]) -> None:
    """Become the program of a baked server; exits with 127 where there is none."""
    found = parse(program, arguments)
    commands = json.loads(Path(COMMANDS).read_text("utf-8"))
    if found is None or found[0].key not in commands:
        line = " ".join([program, *arguments])
        sys.stderr.write(f"{program}: `{line}` is not in this image: run `pallas-gen build` for a new one\n")
        sys.exit(127)
    command = [*commands[found[0].key], *found[1]]
    os.execv(command[0], command)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main(Path(sys.argv[1]).name, sys.argv[2:])
