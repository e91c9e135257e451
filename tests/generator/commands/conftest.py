"""What the commands ask of this machine."""

from __future__ import annotations

import os
from functools import cache

import pytest

from pallas_gen.images import pip_settings

_read = pip_settings.read


@pytest.fixture(autouse=True)
def pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask pip for its settings once in each environment, not in each build: it takes 0.2 s of processor time."""

    def read() -> dict[str, str]:
        names = ("PIP_", "UV_", "XDG_", "HOME")
        return dict(_settings(frozenset(entry for entry in os.environ.items() if entry[0].startswith(names))))

    monkeypatch.setattr(pip_settings, "read", read)


@cache
def _settings(_environment: frozenset[tuple[str, str]]) -> dict[str, str]:
    return _read()
