"""Ways to the members of a fleet in Kubernetes, which end with the pods that they lead to."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from pallas_testing.targets.cluster.forwards import Forwards
from pallas_testing.targets.cluster.target import Cluster

from .conftest import Runner, pod

SELECTED = "--selector=app.kubernetes.io/name=registry"
ASKED = ["kubectl get pods --output=json"]


def test_a_forward_that_has_ended_is_made_anew_to_a_pod_that_stays(
    started: Cluster, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Forwards, "_until_there", lambda *_: None)
    url = started.url("registry")
    runner.lines.clear()
    assert started.url("registry") == url
    assert runner.lines == []
    assert started._forwards
    started._forwards._leashes["registry"].code = 1  # type: ignore[misc]
    runner.pods([pod("registry-2")])
    assert started.url("registry") == url
    assert runner.lines[0] == "leash: end"
    assert runner.lines[2:] == [f"leash: kubectl --namespace ns port-forward pod/registry-2 {url[17:]}:8080"]
    started._forwards.forget("registry", "nobody")
    assert runner.lines[3:] == ["leash: end"]


def test_a_member_that_is_not_there_is_not_reached(started: Cluster, runner: Runner) -> None:
    runner.pods([])
    with pytest.raises(ConnectionError, match="no way to registry now: it has no pod that runs"):
        started.url("registry")
    runner.failure = "get pods"
    with pytest.raises(ConnectionError, match="no way to registry now: kubectl get pods"):
        started.url("registry")


def test_pods_that_start_are_waited_for_by_a_watch(started: Cluster, runner: Runner) -> None:
    watch = "kubectl wait --for=jsonpath={.status.containerStatuses[0].started}=true pod --timeout=5s"
    waiting = [*ASKED, watch, *ASKED]
    runner.pods([pod("registry-1", phase="Pending", containerStatuses=[{"started": False}])])
    with pytest.raises(ConnectionError, match="it has no pod that runs"):
        started.url("registry")
    assert [line.replace(f"{SELECTED} ", "") for line in runner.lines] == waiting
    runner.failure = "kubectl wait"
    with pytest.raises(ConnectionError, match="it has no pod that runs"):
        started.url("registry")
    runner.lines.clear()
    runner.pods([])
    with pytest.raises(ConnectionError, match="it has no pod that runs"):
        started.url("registry")
    assert [line.replace(f"{SELECTED} ", "") for line in runner.lines] == ASKED


def test_a_forward_is_there_when_somebody_listens_and_says_why_it_has_ended(started: Cluster) -> None:
    assert started._forwards
    with socket.create_server(("127.0.0.1", 0)) as server:
        started._forwards._ports["registry"] = server.getsockname()[1]
        assert started.url("registry").endswith(f":{server.getsockname()[1]}")
    started._forwards._leashes["registry"].code = 1  # type: ignore[misc]
    Path(started.order.folder, "forward-registry.log").write_text("error: unable to forward")
    with pytest.raises(ConnectionError, match="no way to registry now: error: unable to forward"):
        started._forwards._until_there(started._forwards._leashes["registry"], "registry")
