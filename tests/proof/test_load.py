"""The load of the proof in its short form: the measures are made, and what must be 0 is."""

from __future__ import annotations

import pytest

from proof import load

pytestmark = pytest.mark.slow


def test_clients_and_hundreds_of_agents() -> None:
    measures = {measure.what.partition(",")[0]: measure for measure in load.clients(1.0, agents=5)}
    assert measures["answers that are no 200"].held
    assert measures["requests per second"].values[0] > 0
    measures = {measure.what.partition(" ")[0]: measure for measure in load.hundreds(1.0, agents=5)}
    assert measures["rounds"].held
    assert measures["states"].text == '{"ok": 5}'
