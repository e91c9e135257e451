"""`python -m pallas_agent_runtime`: the same as `pallas`."""

from __future__ import annotations

import sys

from pallas_agent_runtime.cli import main

if __name__ == "__main__":
    sys.exit(main())
