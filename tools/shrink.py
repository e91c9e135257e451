"""Make an image's virtual environment smaller without changing what runs: `shrink.py VENV`. Part of the image builds.

Removed, and why nothing misses it:
- test suites that packages ship in themselves: imported by their own test runs only;
- sources of compiled extensions (.c, .pyx, .pxd, .h): the compiled module is beside them;
- hf_xet: a transfer accelerator; huggingface_hub asks whether it is there before a download and does without. Some of
  its uploads may need it, and agents upload nothing;
- what follows the last loaded segment of a shared library: symbol tables and debug sections, which the dynamic linker
  never reads (it works from program headers; exported symbols are inside the segments).
"""

from __future__ import annotations

import shutil
import struct
import sys
from pathlib import Path

TESTS = ("google/genai/tests", "regex/tests", "jsonschema/tests", "jsonrpc/tests", "fsspec/tests", "referencing/tests")
UNUSED = ("hf_xet", "hf_xet-*.dist-info")
BUILD_INPUTS = ("*.c", "*.pyx", "*.pxd", "*.h")

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
    for pattern in BUILD_INPUTS:
        for path in site_packages.rglob(pattern):
            path.unlink()
    for library in site_packages.rglob("*.so*"):
        if library.is_file() and not library.is_symlink():
            strip(library)


if __name__ == "__main__":
    for found in Path(sys.argv[1]).glob("lib/python*/site-packages"):
        shrink(found)
