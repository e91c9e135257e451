"""The build that resolves servers: what its context holds."""

from __future__ import annotations

import json
from pathlib import Path

from pallas_gen.dependencies.launch import Package
from pallas_gen.images import server_lock


def test_the_context_has_all_that_the_build_reads_and_no_image_keeps_a_setting(tmp_path: Path) -> None:
    server_lock.write(tmp_path, [Package("python", "a", "")], "python@sha256:0")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "Dockerfile.lock",
        "bake.py",
        "servers.json",
        "tools.lock",
    ]
    assert [entry["key"] for entry in json.loads((tmp_path / "servers.json").read_text())["packages"]] == ["python a"]
    text = (tmp_path / "Dockerfile.lock").read_text()
    assert "--mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=npm" in text
    assert text.startswith("FROM python@sha256:0 AS resolved\n")
    assert text.endswith("FROM scratch\nCOPY --from=resolved /servers.lock.json /servers.failed.json /\n")


def test_what_the_build_left_is_read(tmp_path: Path) -> None:
    (tmp_path / "servers.lock.json").write_text('{"python a": {"requirements": ["a==1"]}}')
    (tmp_path / "servers.failed.json").write_text('{"npm b": "no such version"}')
    assert server_lock.read(tmp_path) == ({"python a": '{"requirements": ["a==1"]}'}, {"npm b": "no such version"})
