"""A forward by kubectl, here by a stand-in for it: its port, and its end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pallas_cli.running import kubernetes
from pallas_cli.trouble import Trouble

FORWARD = """\
#!/bin/sh
echo "$@" > "$LOG"
trap 'echo ended >> "$LOG"; exit' TERM
echo "Forwarding from 127.0.0.1:41234 -> 8080"
echo "Forwarding from [::1]:41234 -> 8080"
while :; do sleep 0.05; done
"""
REFUSE = '#!/bin/sh\necho "error: services \\"registry\\" not found" >&2\nexit 1\n'


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    path = tmp_path / "kubectl"
    path.touch(0o755)
    return path


def test_a_forward_stands_as_long_as_it_is_needed(kubectl: Path) -> None:
    kubectl.write_text(FORWARD)
    with kubernetes.forwarded("demo", "tech_research") as url:
        assert url == "http://127.0.0.1:41234"
    called, ended = kubectl.with_name("log").read_text().splitlines()
    assert called == "--namespace demo port-forward service/tech-research :8080"
    assert ended == "ended"


def test_what_kubectl_says_is_told(kubectl: Path) -> None:
    kubectl.write_text(REFUSE)
    said = r'no way to registry in namespace demo: error: services "registry" not found$'
    with pytest.raises(Trouble, match=said), kubernetes.forwarded("demo", "registry"):
        pass


def test_no_kubectl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Trouble, match="kubectl is not here"), kubernetes.forwarded("demo", "registry"):
        pass
