"""Bytecode that outlives a clone: `take` gives this one what others have compiled, `keep` keeps what this one has.

In a fresh clone all is compiled anew by the first test run: the packages of `.venv`, which come from uv's cache as
sources, the kit, and 700 modules of tests, whose assertions pytest rewrites. Python and pytest find it where they would
write it themselves, and use it only if it names the source: Python by its time and size, pytest by its hash. What is of
a package is linked if it does; what is of this repository is known by the content of its source, and gets the time of
this one.
"""

from __future__ import annotations

import _imp
import hashlib
import importlib.util
import marshal
import os
import shutil
import struct
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pallas-bytecode"
HEAD = struct.Struct("<4sI8s")
"""Of a file: the interpreter's number, how it names its source, and time and size of that, or its hash."""
BY_TIME, BY_HASH = 0, 3
UNUSED = 30 * 86400
"""Seconds after which what nobody has taken is removed."""


def head(pyc: Path) -> tuple[int, bytes] | None:
    """How a file names its source, and the name; None where it is no such file."""
    with suppress(OSError, struct.error), pyc.open("rb") as file:
        return HEAD.unpack(file.read(HEAD.size))[1:]
    return None


def name_of(source: Path, way: int) -> bytes:
    """What a file has to name this source by."""
    if way == BY_HASH:
        return importlib.util.source_hash(source.read_bytes())
    found = source.stat()
    return struct.pack("<II", int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF)


def valid(pyc: Path, source: Path) -> bool:
    with suppress(OSError):
        return (top := head(pyc)) is not None and top[1] == name_of(source, top[0])
    return False


def later(pyc: Path, source: Path) -> bool:
    """Whether a file was written after its source: an edit within the second shows in nothing else."""
    return pyc.stat().st_mtime_ns > source.stat().st_mtime_ns


def link(source: Path, target: Path) -> None:
    """Make `target` the same file, or a copy where it is on another disk; whoever writes bytecode replaces the file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileExistsError:
        pass
    except OSError:
        shutil.copyfile(source, target)


def packages() -> Path:
    return Path(sysconfig.get_path("purelib"))


def source_of(pyc: Path) -> Path:
    return pyc.parent.parent / f"{pyc.name.partition('.')[0]}.py"


def own_sources() -> Iterator[tuple[Path, Path]]:
    """Yield each module of this repository, and the folder of what was compiled of its content."""
    listed = subprocess.run(["git", "ls-files", "-z", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split("\0")[:-1]:
        with suppress(OSError):
            digest = hashlib.blake2b((ROOT / name).read_bytes(), digest_size=20).hexdigest()
            yield ROOT / name, CACHE / "own" / digest


def take() -> None:
    kept, here = CACHE / "packages", packages()
    for folder, _, names in os.walk(kept):
        place = here / Path(folder).relative_to(kept)
        for name in names:
            if not (place / name).exists() and valid(Path(folder, name), source_of(place / name)):
                link(Path(folder, name), place / name)
    for source, folder in own_sources():
        for pyc in folder.glob("*.pyc"):
            target = source.parent / "__pycache__" / f"{source.stem}.{pyc.name}"
            if not (target.exists() and valid(target, source)):
                write(target, source, pyc.read_bytes())
        with suppress(OSError):
            os.utime(folder)


def write(target: Path, source: Path, content: bytes) -> None:
    """Write what another clone has compiled of the same text, as Python would have compiled it of `source`."""
    number, way, _ = HEAD.unpack(content[: HEAD.size])
    code = marshal.loads(content[HEAD.size :])
    _imp._fix_co_filename(code, str(source))  # type: ignore[attr-defined] # what imports do, and pytest does not
    top = HEAD.pack(number, way, name_of(source, way))
    target.parent.mkdir(exist_ok=True)
    new = target.with_name(f"{target.name}.{os.getpid()}")
    new.write_bytes(top + marshal.dumps(code))
    new.replace(target)


def keep() -> None:
    kept, here = CACHE / "packages", packages()
    for folder, _, names in os.walk(here):
        if folder.endswith("__pycache__"):
            place = kept / Path(folder).relative_to(here)
            for pyc in (Path(folder, name) for name in names if name.endswith(".pyc")):
                if head(pyc) != head(place / pyc.name) and valid(pyc, source_of(pyc)):
                    (place / pyc.name).unlink(missing_ok=True)
                    link(pyc, place / pyc.name)
    for source, folder in own_sources():
        for pyc in (source.parent / "__pycache__").glob(f"{source.stem}.*.pyc"):
            target = folder / pyc.name.removeprefix(f"{source.stem}.")
            if not target.exists() and valid(pyc, source) and later(pyc, source):
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(pyc, target)
    for folder in (CACHE / "own").glob("*"):
        if folder.stat().st_mtime < time.time() - UNUSED:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    {"take": take, "keep": keep}[sys.argv[1]]()
