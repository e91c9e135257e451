"""Make an image's virtual environment smaller without changing what runs: `shrink.py [--closed] VENV`.

Part of the image builds. Prints the sources whose bytecode belongs into the image, sorted, each ended by a NUL.

Removed, and why nothing misses it:
- test suites and benchmarks that packages ship in themselves: imported by their own runs only;
- sources of compiled extensions (.c, .pyx, .pxd, .h): the compiled module is beside them;
- hf_xet: a transfer accelerator; huggingface_hub asks whether it is there before a download and does without. Some of
  its uploads may need it, and agents upload nothing;
- what wcwidth knows of single terminals, which it does without: a container has none;
- what follows the last loaded segment of a shared library: symbol tables and debug sections, which the dynamic linker
  never reads (it works from program headers; exported symbols are inside the segments);
- with `--closed`, for an image into which nobody's code comes: pygments' lexers but those for what a log shows. Rich
  asks it by name and shows plain text where there is none. In an agent's image a fleet may require pygments, which is
  then installed already, and has to be whole.

No bytecode: what only a command line, a terminal or another protocol's server imports. It works, read from its source.
"""

from __future__ import annotations

import re
import shutil
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = (
    "fsspec/tests",
    "google/genai/tests",
    "jsonrpc/tests",
    "jsonschema/benchmarks",
    "jsonschema/tests",
    "referencing/tests",
    "regex/tests",
)
UNUSED = ("hf_xet", "hf_xet-*.dist-info")
BUILD_INPUTS = ("*.c", "*.pyx", "*.pxd", "*.h")
TERMINALS = "wcwidth/table_grapheme_overrides/_known_*.py"
LEXERS = ("__init__", "_mapping", "data", "diff", "python", "shell", "special")
"""Modules of pygments.lexers that show what is in a log."""
NOT_COMPILED = (
    "a2a/compat",
    "a2a/server",
    "authlib",
    "cyclopts",
    "fast_agent/acp",
    "fastmcp/cli",
    "fsspec/implementations",
    "griffe",
    "huggingface_hub/cli",
    "pydantic/v1",
    "pygments/lexers",
    "rich_rst",
)
"""tests/e2e/test_images.py holds that no agent that serves imports any of them."""

ELF64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"
SECTION_OFFSET = slice(40, 48)
SECTION_COUNTS = slice(58, 64)


def loaded_size(image: bytes) -> int:
    """Bytes of an ELF file up to the end of the last thing its program headers name."""
    (table,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    ends = (sum(struct.unpack_from("<8xQ16xQ", image, table + i * size)) for i in range(count))
    return max(table + size * count, *ends)


def strip(library: Path) -> None:
    image = bytearray(library.read_bytes())
    if not image.startswith(ELF64_LITTLE_ENDIAN):
        return
    image[SECTION_OFFSET] = bytes(8)
    image[SECTION_COUNTS] = bytes(6)
    library.write_bytes(image[: loaded_size(bytes(image))])


def shrink(site_packages: Path) -> None:
    for pattern in (*TESTS, *UNUSED):
        for path in site_packages.glob(pattern):
            shutil.rmtree(path)
    for path in site_packages.glob(TERMINALS):
        path.unlink()
    for pattern in BUILD_INPUTS:
        for path in site_packages.rglob(pattern):
            path.unlink()
    for library in site_packages.rglob("*.so*"):
        if library.is_file() and not library.is_symlink():
            strip(library)


def thin_lexers(site_packages: Path) -> None:
    """Take most of pygments' lexers away, and out of the table by which it finds them."""
    folder = site_packages / "pygments" / "lexers"
    for path in folder.glob("*.py"):
        if path.stem not in LEXERS:
            path.unlink()
    table = folder / "_mapping.py"
    if table.is_file():
        lines = table.read_text("utf-8").splitlines(keepends=True)
        gone = re.compile(rf"    '\w+': \('pygments\.lexers\.(?!(?:{'|'.join(LEXERS)})')")
        table.write_text("".join(line for line in lines if not gone.match(line)), "utf-8")


def compiled(site_packages: Path) -> Iterator[Path]:
    """Yield the sources that are worth their bytecode, sorted."""
    folders = {site_packages / name for name in NOT_COMPILED}
    usual = {site_packages / "pygments" / "lexers" / f"{name}.py" for name in LEXERS}
    for path in sorted(site_packages.rglob("*.py")):
        if path in usual or folders.isdisjoint(path.parents):
            yield path


if __name__ == "__main__":
    *options, venv = sys.argv[1:]
    for folder in Path(venv).glob("lib/python*/site-packages"):
        shrink(folder)
        if "--closed" in options:
            thin_lexers(folder)
        for source in compiled(folder):
            sys.stdout.write(f"{source}\0")
