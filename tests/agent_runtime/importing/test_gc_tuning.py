"""Garbage is looked for seldom while an agent starts, and as usual from then on."""

from __future__ import annotations

import subprocess
import sys

SAID = """
import gc
from pallas_agent_runtime.importing import gc_tuning

usual = gc.get_threshold()
gc_tuning.seldom()
assert gc.get_threshold()[0] > 10 * usual[0]
kept = [[] for _ in range(1000)]
gc_tuning.as_usual()
assert gc.get_threshold() == usual
assert gc.get_freeze_count() > 1000
"""


def test_the_collector_rests_at_the_start_only() -> None:
    subprocess.run([sys.executable, "-c", SAID], check=True)
