"""A module with no more memory than it is given: `python -m agents.bounded MEGABYTES MODULE ARGUMENTS`."""

from __future__ import annotations

import resource
import runpy
import sys


def main() -> None:
    """Run the module as `python -m` would."""
    megabytes, module = sys.argv[1:3]
    sys.argv[:3] = [module]
    limit = int(megabytes) << 20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        runpy.run_module(module, run_name="__main__")
    except MemoryError:
        sys.exit(f"it needs more than {megabytes} MB")


if __name__ == "__main__":
    main()
