"""`tools/docs`: the sources of the site, in a folder that is replaced."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tools.site import sources

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Collect the sources of the site in the folder that is named."""
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    sources.collect(ROOT, folder)
    shutil.copyfile(Path(__file__).parent / "conf.py", folder / "conf.py")


if __name__ == "__main__":
    main()
