"""What packages have Python compile from text while they are imported, kept beside the bytecode.

Methods of dataclasses, annotations that are written as text and regular expressions are compiled anew by each process,
since no module holds their code: a fifth of an agent's start. They are kept by the text itself and the interpreter, as
bytecode is by its source: what is found is what compiling would give. Nothing is lost with the file but time.

It is written where bytecode is, and where Python would write that; an image has it from its build. What the standard
library looks up by name is replaced for as long as packages are imported: `exec` in dataclasses, `compile` in typing,
the function of `re` that compiles.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import marshal
import os
import re
import struct
import sys
import threading
import typing
import zlib
from _blake2 import blake2b  # hashlib's own, without OpenSSL's digests, which that brings along
from collections.abc import Callable, Iterator, Mapping
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

_MOST = 30_000
"""Texts in a file; an agent has some 3,000. One that would hold more begins anew with those of one process."""
_VERSION = 3
_HEAD = struct.Struct("<16sIII")
"""Interpreter, version of the format, bytes of the index, checksum of all that follows."""
_KNOWN = (3, 13)
"""The version of Python whose standard library looks them up as is said here; another compiles as usual."""


def file_path() -> Path:
    """Return where the texts of this interpreter are kept: beside the bytecode of this module."""
    return Path(cache_from_source(__file__)).with_suffix(".texts")


class Texts:
    """Compiled texts, by what they were compiled from: those of a file, and those that came since."""

    def __init__(self, places: Mapping[bytes, int], data: memoryview) -> None:
        """Take those of a file: where each is in its `data` (`_place`), as small objects would stay as holes."""
        self._places = places
        self._data = data
        self._lock = threading.Lock()
        self.added: dict[bytes, bytes] = {}

    def __len__(self) -> int:
        return len(self._places) + len(self.added)

    def code(self, text: str, mode: str, optimize: int = sys.flags.optimize) -> CodeType:
        """Return the code of `text`, as of `compile(text, "<string>", mode)` in a module without future statements.

        Raises:
            SyntaxError: it is no code.
        """
        key = _key(mode, optimize, text)
        if place := self._places.get(key):
            return typing.cast("CodeType", self._loaded(place))
        code = builtins.compile(text, "<string>", mode, dont_inherit=True)
        self.added[key] = marshal.dumps(code, 2)
        return code

    def pattern(self, text: str, flags: int, compiler: ModuleType, compiled: Callable[..., Any]) -> re.Pattern[str]:
        """Return the pattern of a regular expression, as of `compiled(text, flags)` of `compiler`.

        Raises:
            re.PatternError: it is none.
        """
        key = _key("re", flags, text)
        if place := self._places.get(key):
            return typing.cast("re.Pattern[str]", compiler._sre.compile(text, *self._loaded(place)))
        if not self._lock.acquire(blocking=False):  # another thread's, or one within this one: a warning may compile
            return typing.cast("re.Pattern[str]", compiled(text, flags))
        engine = compiler._sre
        compiler._sre = recorder = _Recorder(engine, text)  # type: ignore[attr-defined]
        try:
            pattern = compiled(text, flags)
        finally:
            compiler._sre = engine  # type: ignore[attr-defined]
            self._lock.release()
        if recorder.arguments:
            _, final, program, groups, names, numbers = recorder.arguments
            kept = (int(final), [int(word) for word in program], groups, dict(names), numbers)
            self.added[key] = marshal.dumps(kept, 2)
        return typing.cast("re.Pattern[str]", pattern)

    def all(self) -> dict[bytes, bytes]:
        """Return what is worth keeping, sorted."""
        together = {key: bytes(self._data[_span(place)]) for key, place in self._places.items()} | self.added
        return dict(sorted((together if len(together) <= _MOST else self.added).items()))

    def _loaded(self, place: int) -> Any:
        return marshal.loads(self._data[_span(place)])  # noqa: S302 - as much to be trusted as bytecode


def _place(start: int, end: int) -> int:
    """Return where a text is, as one number: thousands of pairs would be a third of a megabyte more, left as holes."""
    return start << 32 | end


def _span(place: int) -> slice:
    return slice(place >> 32, place & 0xFFFFFFFF)


class _Recorder:
    """The engine of regular expressions, which remembers what this thread gives it to make the pattern of a text.

    Others compile with it meanwhile: bytes, and what there is no recorder for, of other threads the very same text.
    """

    def __init__(self, engine: Any, text: str) -> None:
        self._engine = engine
        self._text = text
        self._thread = threading.get_ident()
        self.arguments: tuple[Any, ...] = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def compile(self, *arguments: Any) -> Any:
        if arguments[0] is self._text and threading.get_ident() == self._thread:
            self.arguments = arguments
        return self._engine.compile(*arguments)


def _key(kind: str, flags: int, text: str) -> bytes:
    return blake2b(f"{kind} {flags} {text}".encode(errors="surrogatepass"), digest_size=16).digest()


def _stamp() -> bytes:
    """Return the interpreter as far as it decides what a text is compiled to."""
    return f"{MAGIC_NUMBER.hex()} {sys.hexversion:x}".encode()[:16]


def read(path: Path) -> Texts:
    """Return the texts that are kept in `path`: none where it is missing, of another interpreter, or damaged."""
    with contextlib.suppress(OSError, struct.error, ValueError, EOFError, TypeError):
        data = path.read_bytes()
        stamp, version, index, checksum = _HEAD.unpack_from(data)
        body = memoryview(data)[_HEAD.size :]
        if (stamp.rstrip(b"\0"), version) == (_stamp(), _VERSION) and checksum == zlib.crc32(body):
            return Texts(marshal.loads(body[:index]), body[index:])  # noqa: S302 - as much to be trusted as bytecode
    return Texts({}, memoryview(b""))


def write(path: Path, texts: Mapping[bytes, bytes]) -> None:
    """Write the file, whole or not at all.

    Raises:
        OSError: nothing can be written there.
    """
    places, end = {}, 0
    for key, text in texts.items():
        places[key] = _place(end, end := end + len(text))
    index = marshal.dumps(places, 2)
    body = b"".join((index, *texts.values()))
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(_HEAD.pack(_stamp(), _VERSION, len(index), zlib.crc32(body)) + body)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


class _Use:
    """The standard library as it looks its texts up, for a time."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self._compiler: Any = getattr(re, "_compiler", None)
        self._compiled = getattr(self._compiler, "compile", None)

    def install(self) -> None:
        vars(dataclasses)["exec"] = self._execute
        vars(typing)["compile"] = self._compile
        if self._compiled and hasattr(self._compiler, "_sre"):
            self._compiler.compile = self._pattern

    def remove(self) -> None:
        vars(dataclasses).pop("exec", None)
        vars(typing).pop("compile", None)
        if self._compiled:
            self._compiler.compile = self._compiled

    def _execute(self, source: Any, /, *arguments: Any, **named: Any) -> None:
        exec(self.texts.code(source, "exec") if isinstance(source, str) else source, *arguments, **named)  # noqa: S102

    def _compile(self, source: Any, name: str, mode: str, **named: Any) -> Any:
        if not isinstance(source, str) or name != "<string>" or named:
            return builtins.compile(source, name, mode, dont_inherit=True, **named)
        return self.texts.code(source, mode)

    def _pattern(self, pattern: Any, flags: int = 0) -> Any:
        if not isinstance(pattern, str) or flags & re.DEBUG or self._compiled is None:
            return self._compiled(pattern, flags)  # type: ignore[misc]
        return self.texts.pattern(pattern, flags, self._compiler, self._compiled)


_use: _Use | None = None
_used = False


def begin(*, always: bool = False) -> None:
    """Look texts up from now on, unless this process, or the one it was forked from, has done so before.

    Where none are kept and none will be, as Python writes no bytecode, that happens `always` only.
    """
    global _use, _used  # noqa: PLW0603 - there is one standard library
    if not _used and sys.version_info[:2] == _KNOWN:
        _used = True
        texts = read(file_path())
        if texts or always or not sys.dont_write_bytecode:
            _use = _Use(texts)
            _use.install()


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """Compile as usual for a time: what code of a project has compiled is not kept."""
    if _use is None:
        yield
        return
    _use.remove()
    try:
        yield
    finally:
        _use.install()


def end(*, always: bool = False) -> None:
    """Compile as usual from now on, and keep what was new, where Python would write bytecode, or `always`."""
    global _use  # noqa: PLW0603 - there is one standard library
    if _use is None:
        return
    _use.remove()
    texts = _use.texts
    _use = None
    if texts.added and (always or not sys.dont_write_bytecode):
        with contextlib.suppress(OSError):  # an installation that belongs to somebody else
            write(file_path(), texts.all())
