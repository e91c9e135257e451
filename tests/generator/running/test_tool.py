"""A tool that is asked."""

from __future__ import annotations

import sys

from pallas_gen.running import tool
from pallas_gen.running.tool import Done, run


def test_a_program_is_run_or_is_not_here(monkeypatch) -> None:
    program = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    assert run([sys.executable, "-c", program]) == Done(3, "out\n", "err\n")
    assert run(["pallas-no-such-program"]) is None
    monkeypatch.setattr(tool, "_PATIENCE", 0.01)
    assert run([sys.executable, "-c", "import time; time.sleep(60)"]) == Done(1, errors="no answer in 0.01 s")
    assert Done(1, errors="a\n b \n\n").reason == "b"
    assert Done(1).reason == ""
