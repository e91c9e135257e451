"""What the tests of pages share."""

from __future__ import annotations

from typing import Any

from tools.browser import CHANGED


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
