"""The process around the service: how long it may take to be ready."""

from __future__ import annotations

from pathlib import Path

from pallas_registry.server import patience


def test_in_a_container_it_waits_for_the_fleet_only_at_its_first_start(tmp_path: Path) -> None:
    assert patience("container", tmp_path) == 120
    assert patience("container", tmp_path) == 5
    assert patience("container", tmp_path / "nowhere") == 120


def test_as_a_process_it_never_waits_for_the_fleet(tmp_path: Path) -> None:
    assert patience("local", tmp_path) == 5
    assert list(tmp_path.iterdir()) == []
