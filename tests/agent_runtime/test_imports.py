"""What an agent does not use costs it neither start-up time nor memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT_ACCESS_OR_TELEMETRY = """
import sys
import pallas_agent_runtime.engine, pallas_agent_runtime.serve
print(*sorted({"jwt", "opentelemetry.sdk"} & sys.modules.keys()))
"""


@pytest.mark.slow
def test_tokens_and_traces_are_imported_by_those_who_have_them() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ACCESS_OR_TELEMETRY], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
