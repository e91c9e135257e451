"""A later version of the kit: the same code and images under its number, as who upgrades has them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pallas_contract import __version__

IMAGES = ("pallas-agent", "pallas-registry")
_CODE = (
    "import runpy, pallas_contract; pallas_contract.__version__ = {version!r}; "
    "runpy.run_module('pallas_gen', run_name='__main__', alter_sys=True)"
)


def pallas_gen(version: str) -> list[str]:
    """Return the command that is `pallas-gen` in that version."""
    return [sys.executable, "-c", _CODE.format(version=version)]


@contextmanager
def images(version: str) -> Iterator[list[str]]:
    """Give the kit's images that version's tag, and take it away in the end."""
    names = [f"{image}:{version}" for image in IMAGES]
    for image, name in zip(IMAGES, names, strict=True):
        subprocess.run(["docker", "tag", f"{image}:{__version__}", name], check=True, timeout=60)
    try:
        yield names
    finally:
        subprocess.run(["docker", "rmi", *names], check=False, capture_output=True, timeout=60)
