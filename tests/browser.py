"""Pages in Chromium, on a machine whose networks change while they are loaded.

Chromium gives up what waits for a connection when an address comes or goes, be it that of a container which a test
beside this one starts: net::ERR_NETWORK_CHANGED. That is no doing of the page that is tested.
"""

from __future__ import annotations

import shutil
from typing import Any

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
"""The engine without windows takes half the processor time. Playwright itself starts it where none are wanted."""
CHANGED = "net::ERR_NETWORK_CHANGED"


async def load(page: Any, url: str) -> None:
    """Open `url` with all that it loads, again where the machine's networks changed meanwhile."""
    lost: list[str] = []

    def note(request: Any) -> None:
        if request.failure == CHANGED:
            lost.append(request.url)

    page.on("requestfailed", note)
    try:
        while True:
            lost.clear()
            try:
                await page.goto(url)
            except Exception as failure:
                if CHANGED not in str(failure):
                    raise
            else:
                if not lost:
                    return
    finally:
        page.remove_listener("requestfailed", note)


def is_fault(message: Any) -> bool:
    """Tell whether a line of the console is an error that has to do with the page."""
    return message.type == "error" and CHANGED not in message.text


class Lost:
    """A route of playwright's to what does not come the first time, or with this HTTP status; it counts."""

    def __init__(self, status: int = 0) -> None:
        self.asked = 0
        self._status = status

    async def __call__(self, route: Any) -> None:
        self.asked += 1
        if self.asked > 1:
            await route.continue_()
        elif self._status:
            await route.fulfill(status=self._status)
        else:
            await route.abort("connectionreset")
