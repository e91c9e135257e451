"""The limit of file descriptors, in a process of its own for each case."""

from __future__ import annotations

import subprocess
import sys

import pytest

ASK = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from pallas_registry.prebuilt.fd_limit import affordable
print(affordable(1024), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("soft", "hard", "probes"), [(64, 64, 32), (64, 1000, 500), (1024, 4096, 1024)], ids=["few", "raised", "enough"]
)
def test_half_of_what_there_is_and_no_more_than_wanted(soft: int, hard: int, probes: int) -> None:
    asked = [sys.executable, "-c", ASK.format(soft=soft, hard=hard)]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert said.split() == [str(probes), str(hard)]
