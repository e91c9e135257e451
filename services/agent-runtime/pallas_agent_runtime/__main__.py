"""`python -m pallas_agent_runtime`: the same as `pallas`."""

from __future__ import annotations

import sys

from pallas_agent_runtime import collecting

if __name__ == "__main__":
    collecting.seldom()

    from pallas_agent_runtime.cli import main

    sys.exit(main())
