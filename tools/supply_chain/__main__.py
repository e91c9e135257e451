"""`tools/release`: everything that a release consists of, into one folder, or a sentence why not."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

from pallas_contract import __version__

from . import release
from .documents import changelog
from .environment import ROOT
from .image import archive

WORLD = 1
INPUT = 2


def main() -> int:
    """Make the release; return 1 where the world is in the way, 2 where the checkout is not one to release."""
    parser = argparse.ArgumentParser(prog="tools/release", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder, which is replaced (dist)")
    parser.add_argument(
        "--twice",
        nargs="*",
        default=list(release.IMAGES),
        choices=release.IMAGES,
        metavar="IMAGE",
        help="images that are built a second time, without a cache, to compare their digests (all)",
    )
    parser.add_argument("--level", type=int, default=archive.LEVEL, help="of gzip, for the images (6)")
    parser.add_argument(
        "--prepare",
        action="store_true",
        help="release nothing: give what stands under [Unreleased] in CHANGELOG.md the kit's version and this day",
    )
    arguments = parser.parse_args()
    if arguments.prepare:
        return prepare(ROOT / "CHANGELOG.md", datetime.now(UTC).date())
    try:
        for line in release.make(arguments.out.resolve(), twice=arguments.twice, level=arguments.level):
            print(f"release: {line}", flush=True)
    except release.NotReleasable as error:
        for line in error.problems:
            print(line, file=sys.stderr)
        return INPUT if error.checkout else WORLD
    except subprocess.CalledProcessError as error:
        command = error.cmd if isinstance(error.cmd, str) else shlex.join(map(str, error.cmd))
        print(f"{command} ended with {error.returncode}; nothing was released", file=sys.stderr)
        return WORLD
    return 0


def prepare(file: Path, day: date) -> int:
    """Write the section of this version into the changelog; return 2 where there is nothing to write."""
    try:
        text = changelog.dated(file.read_text("utf-8"), __version__, day)
    except ValueError as error:
        print(error, file=sys.stderr)
        return INPUT
    file.write_text(text, "utf-8")
    print(f"{file.name} has `## [{__version__}] - {day}`: read it, commit it, and tag the commit v{__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
