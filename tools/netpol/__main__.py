"""Enforce every NetworkPolicy of the cluster of `kubectl` on this machine, which is its only node, until ended.

For tests: `python -m tools.netpol`, from the project's root and as root. It follows the API by list and watch.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE
from typing import Any

from tools.netpol.rules import TABLE, Object, ruleset

RESOURCES = {
    "pods": "/api/v1/pods",
    "namespaces": "/api/v1/namespaces",
    "policies": "/apis/networking.k8s.io/v1/networkpolicies",
}
PAUSE = 0.5
"""Seconds before the API is asked again after it was not there."""
LINE = 2**24
"""Bytes of the largest object; one line is one event."""


class Mirror:
    """All objects of one resource, by UID."""

    def __init__(self, path: str, changed: asyncio.Event) -> None:
        self._path, self._changed = path, changed
        self._objects: dict[str, Object] | None = None

    @property
    def ready(self) -> bool:
        return self._objects is not None

    @property
    def objects(self) -> list[Object]:
        return list((self._objects or {}).values())

    async def follow(self) -> None:
        """List, then watch; begin anew whenever the API ends that."""
        while True:
            if not await self._round():
                await asyncio.sleep(PAUSE)

    async def _round(self) -> bool:
        listed = await kubectl(self._path)
        if listed is None:
            return False
        self._objects = {item["metadata"]["uid"]: item for item in listed["items"]}
        self._changed.set()
        options = f"watch=true&resourceVersion={listed['metadata']['resourceVersion']}"
        process = await asyncio.create_subprocess_exec(
            "kubectl", "get", "--raw", f"{self._path}?{options}", stdout=PIPE, limit=LINE
        )
        try:
            assert process.stdout is not None
            async for line in process.stdout:
                if not self._take(json.loads(line)):
                    break
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
        return True

    def _take(self, event: dict[str, Any]) -> bool:
        """Return False for what only a new list repairs, such as a version that is too old."""
        assert self._objects is not None
        if event["type"] == "ERROR":
            return False
        item = event["object"]
        if event["type"] == "DELETED":
            self._objects.pop(item["metadata"]["uid"], None)
        else:
            self._objects[item["metadata"]["uid"]] = item
        self._changed.set()
        return True


async def kubectl(path: str) -> dict[str, Any] | None:
    process = await asyncio.create_subprocess_exec("kubectl", "get", "--raw", path, stdout=PIPE)
    out, _ = await process.communicate()
    return json.loads(out) if process.returncode == 0 else None


async def nft(text: str) -> None:
    """Hand a ruleset to the kernel; one it refuses ends the program, which then is seen."""
    process = await asyncio.create_subprocess_exec("nft", "-f", "-", stdin=PIPE, stderr=PIPE)
    _, problems = await process.communicate(text.encode())
    if process.returncode:
        sys.exit(f"nft: {problems.decode()}\n{text}")


async def enforce() -> None:
    changed = asyncio.Event()
    mirrors = {name: Mirror(path, changed) for name, path in RESOURCES.items()}
    applied = ""
    async with asyncio.TaskGroup() as group:
        for mirror in mirrors.values():
            group.create_task(mirror.follow())
        while True:
            await changed.wait()
            changed.clear()
            if all(mirror.ready for mirror in mirrors.values()):
                text = ruleset(**{name: mirror.objects for name, mirror in mirrors.items()})
                if text != applied:
                    await nft(text)
                    print(f"applied {text.count('chain ') - 1} chains", flush=True)
                    applied = text


async def main() -> None:
    task = asyncio.create_task(enforce())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        await nft(f"delete table {TABLE}\n")


if __name__ == "__main__":
    asyncio.run(main())
