"""A page that the machine's networks disturb is loaded again; one that cannot be loaded is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tools.browser import CHANGED, load

URL = "http://127.0.0.1:1/"


def taken(by: str) -> RuntimeError:
    return RuntimeError(f'Page.goto: Navigation to "{URL}" is interrupted by another navigation to "{by}"\nCall log:\n')


class Page:
    """A page of playwright's that is disturbed: by an exception, or by a request that fails with what is said."""

    def __init__(self, *disturbances: Exception | str) -> None:
        self._left = list(disturbances)
        self.heard: list[Callable[[Any], None]] = []
        self.asked = 0

    def on(self, event: str, heard: Callable[[Any], None]) -> None:
        assert event == "requestfailed"
        self.heard.append(heard)

    def remove_listener(self, event: str, heard: Callable[[Any], None]) -> None:
        self.heard.remove(heard)

    async def goto(self, url: str) -> None:
        assert url == URL
        self.asked += 1
        disturbance = self._left.pop(0) if self._left else ""
        if isinstance(disturbance, Exception):
            raise disturbance
        if disturbance:
            self.heard[0](SimpleNamespace(failure=disturbance, url=f"{URL}app.js"))


async def test_a_page_is_loaded_until_no_network_changes_meanwhile() -> None:
    by_browser = (taken("chrome-error://chromewebdata/"), taken(URL))
    page = Page(RuntimeError(f"Page.goto: {CHANGED} at {URL}"), *by_browser, CHANGED, "net::ERR_ABORTED")
    await load(page, URL)
    assert (page.asked, page.heard) == (5, [])


@pytest.mark.parametrize(
    "failure", [RuntimeError("net::ERR_CONNECTION_REFUSED"), taken(f"{URL}login")], ids=["refused", "elsewhere"]
)
async def test_any_other_failure_is_told(failure: RuntimeError) -> None:
    page = Page(failure)
    with pytest.raises(RuntimeError, match=re.escape(str(failure))):
        await load(page, URL)
    assert (page.asked, page.heard) == (1, [])
