"""The memory of examples/04-percolate, which is no package of the kit's: its folder is looked into last."""

from __future__ import annotations

import sys

from tests.installed import ROOT

EXAMPLE = ROOT / "examples" / "04-percolate"
sys.path.append(str(EXAMPLE))
