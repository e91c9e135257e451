"""Two models that need no key: the kit's scripted model, which answers by model.yaml, or the file named."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pallas_testing.model import serve

if __name__ == "__main__":
    sys.exit(
        serve(Path(__file__).with_name(sys.argv[1] if len(sys.argv) > 1 else "model.yaml"), os.environ["PALLAS_BIND"])
    )
