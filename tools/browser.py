"""Chromium of this machine, whose networks change while it loads pages.

It gives up what waits for a connection when an address comes or goes, be it that of a container which a test starts:
net::ERR_NETWORK_CHANGED. It shows a page of its own then, which it loads again when it likes.
"""

from __future__ import annotations

import re
import shutil
from typing import Any

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
"""The engine without windows takes half the processor time. Playwright itself starts it where none are wanted."""
CHANGED = "net::ERR_NETWORK_CHANGED"
INSTEAD = "chrome-error://"
"""The page of its own, which takes the place of one that was asked for meanwhile."""
_TAKEN = re.compile(rf'Navigation to "(.*)" is interrupted by another navigation to "(\1"|{re.escape(INSTEAD)})')
"""What playwright says where that page came, or was loaded again by the browser before it was by us."""


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
                if CHANGED not in str(failure) and not _TAKEN.search(str(failure)):
                    raise
            else:
                if not lost:
                    return
    finally:
        page.remove_listener("requestfailed", note)


async def follow(page: Any, link: Any) -> None:
    """Click what opens another page by GET, and open that, without its fragment, where networks changed meanwhile."""
    async with page.expect_request(lambda request: request.is_navigation_request()) as asked:
        await link.click()
    request = await asked.value
    response = await request.response()
    if response is None and request.failure == CHANGED:
        await load(page, request.url)
