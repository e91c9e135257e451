"""What was imported, and by which environment: a fork takes it over only where its own would have given the same."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import sys
from collections.abc import Iterator, Mapping
from typing import ClassVar

_BEGINNINGS = ("GLIBC_", "HOME", "LANG", "LC_", "LD_", "MALLOC_", "PYTHON", "TZ", "FASTMCP_")
"""How variables begin whose readers nobody sees: the interpreter and the C library as a process starts, and fastmcp's
settings, which go through the whole environment."""


class _Watched(os._Environ[str]):
    """The type of `os.environ` while it is watched: remembers the variables that somebody asked for."""

    asked: ClassVar[set[str]] = set()

    def __getitem__(self, key: str) -> str:
        if isinstance(key, str):  # subprocess asks for `PATH` in bytes too, and is told that there are none
            self.asked.add(key)
        return super().__getitem__(key)


class Imports:
    """Modules that were imported for several processes, and the environment that made them what they are."""

    def __init__(self) -> None:
        self._before = dict(os.environ)
        self._asked: set[str] = set()
        self._added: dict[str, str] = {}
        self._generators: list[random.Random] = []

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Have modules imported meanwhile; notes what their code asks of `os.environ`, and sets in it."""
        usual = os.environ.__class__
        os.environ.__class__ = _Watched
        try:
            yield
        finally:
            os.environ.__class__ = usual
        self._asked = set(_Watched.asked)
        self._added = {key: value for key, value in os.environ.items() if self._before.get(key) != value}
        self._generators = [thing for thing in gc.get_objects() if type(thing) is random.Random]

    def suit(self, environ: Mapping[str, str]) -> bool:
        """Return whether a process with `environ` would have imported the same."""
        unseen = {key for key in {*environ, *self._before} if key.startswith(_BEGINNINGS)}
        return all(environ.get(key) == self._before.get(key) for key in unseen | self._asked | self._added.keys())

    def take_over(self) -> None:
        """Do to this process what else the imports would have done: set variables, draw seeds and keys."""
        os.environ.update(self._added)
        for generator in self._generators:
            generator.seed()
        if multiprocessing := sys.modules.get("multiprocessing"):
            multiprocessing.current_process().authkey = os.urandom(32)
