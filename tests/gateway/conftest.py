"""What all tests of the gateway have."""

from __future__ import annotations

import pytest

from pallas_gateway.data_plane import upstream


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait a minute for a connection to an agent: it is in this process, which may not get its turn within 5 s."""
    monkeypatch.setattr(upstream, "CONNECT_SECONDS", 60.0)
