"""`python -m pallas_agent_runtime`: the same as `pallas`."""

from __future__ import annotations

import sys

from pallas_agent_runtime.importing import gc_tuning

if __name__ == "__main__":
    gc_tuning.seldom()

    from pallas_agent_runtime.cli import main

    sys.exit(main())
