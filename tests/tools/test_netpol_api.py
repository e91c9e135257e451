"""The enforcer of `tools/cluster` between an API and a kernel that are programs here: what it follows, what it sets."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

import pytest

from tools.netpol import __main__ as netpol
from tools.netpol.rules import TABLE

KUBECTL = """#!/bin/sh
path=${3%%\\?*}
case $3 in
  *watch=true*) exec cat "$API/${path##*/}.events" ;;
  *) exec cat "$API/${path##*/}.json" ;;
esac
"""
NFT = """#!/bin/sh
cat >> "$API/nft.log"
test ! -e "$API/refuses" || { echo 'syntax error' >&2; exit 1; }
"""
RESOURCES = ("pods", "namespaces", "networkpolicies")


@pytest.fixture(autouse=True)
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the API has, as the stand-ins for `kubectl` and `nft` find it."""
    for name, text in (("kubectl", KUBECTL), ("nft", NFT)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("API", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def has(api: Path, resource: str, *items: Any) -> None:
    (api / f"{resource}.json").write_text(json.dumps({"metadata": {"resourceVersion": "7"}, "items": items}))


def event(kind: str, item: Any) -> str:
    return json.dumps({"type": kind, "object": item}) + "\n"


def thing(uid: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"uid": uid, "name": uid, "namespace": "shop"}, **more}


def mirror() -> netpol.Mirror:
    return netpol.Mirror("/api/v1/pods", asyncio.Event())


async def test_what_is_listed_is_kept_up_to_date_until_the_api_ends_it(api: Path) -> None:
    has(api, "pods", thing("a"), thing("b"))
    events = [event("DELETED", thing("a")), event("MODIFIED", thing("b", x=1)), event("ADDED", thing("c"))]
    too_old = event("ERROR", {"code": 410})
    (api / "pods.events").write_text("".join([*events, too_old, event("ADDED", thing("late"))]))
    pods = mirror()
    assert await pods._round()
    assert pods.objects == [thing("b", x=1), thing("c")]
    has(api, "pods", thing("c"))
    (api / "pods.events").write_text("")
    assert await pods._round()
    assert pods.objects == [thing("c")], "what went meanwhile is in no event"


async def test_nothing_is_known_before_the_api_is_there() -> None:
    pods = mirror()
    assert not await pods._round()
    assert (pods.ready, pods.objects) == (False, [])


POD = thing("web", spec={"containers": [{}]}, status={"phase": "Running", "podIPs": [{"ip": "10.0.0.7"}]})
DENY = thing("deny", spec={"podSelector": {}})


@pytest.fixture
def started(api: Path, root: Path) -> Iterator[subprocess.Popen[str]]:
    for resource, items in zip(RESOURCES, ([POD], [], []), strict=True):
        has(api, resource, *items)
        os.mkfifo(api / f"{resource}.events")
    command = [sys.executable, "-m", "tools.netpol"]
    with subprocess.Popen(command, cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        yield process
        process.kill()


def watches(stack: ExitStack, api: Path) -> dict[str, TextIO]:
    """Return the ends of all watches to write events to; it takes until they are watched."""
    return {name: stack.enter_context((api / f"{name}.events").open("w")) for name in RESOURCES}


def test_each_change_is_enforced_and_nothing_is_left(api: Path, started: subprocess.Popen[str]) -> None:
    assert started.stdout is not None
    with ExitStack() as stack:
        watched = watches(stack, api)
        assert started.stdout.readline() == "applied 0 chains\n"
        assert "10.0.0.7" not in (api / "nft.log").read_text()
        watched["networkpolicies"].write(event("ADDED", DENY))
        watched["networkpolicies"].flush()
        assert started.stdout.readline() == "applied 1 chains\n"
        assert "ip daddr 10.0.0.7 jump ingress_0" in (api / "nft.log").read_text()
        started.terminate()
        assert started.wait(60) == 0
    assert (api / "nft.log").read_text().endswith(f"}}\ndelete table {TABLE}\n")


def test_rules_that_the_kernel_refuses_end_it(api: Path, started: subprocess.Popen[str]) -> None:
    assert started.stdout is not None
    assert started.stderr is not None
    with ExitStack() as stack:
        watched = watches(stack, api)
        assert started.stdout.readline() == "applied 0 chains\n"
        (api / "refuses").touch()  # not before: it would end with a watch that nobody opens, and this test never
        watched["networkpolicies"].write(event("ADDED", DENY))
        watched["networkpolicies"].flush()
        assert started.wait(60) == 1
    assert started.stderr.readline() == "nft: syntax error\n"
