"""A page that the machine's networks disturb is loaded again; one that cannot be loaded is told."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from tools.browser import CHANGED, follow, load

URL = "http://127.0.0.1:1/"


def taken(by: str) -> RuntimeError:
    return RuntimeError(f'Page.goto: Navigation to "{URL}" is interrupted by another navigation to "{by}"\nCall log:\n')


class Asked:
    """A request of playwright's for a page or for something on it, which fails with what is said, or does not."""

    url = URL

    def __init__(self, failure: str | None, for_page: bool = True) -> None:
        self.failure = failure
        self.is_navigation_request = lambda: for_page

    async def response(self) -> object | None:
        return None if self.failure else object()


class Page:
    """A page of playwright's that is disturbed: by an exception, or by a request that fails with what is said."""

    def __init__(self, *disturbances: Exception | str) -> None:
        self._left = list(disturbances)
        self.heard: list[Callable[[Any], None]] = []
        self.asked = self.clicks = 0

    async def click(self) -> None:
        self.clicks += 1

    @asynccontextmanager
    async def expect_request(self, wanted: Callable[[Any], bool]) -> AsyncIterator[Any]:
        failure = self._left.pop(0)
        asked = (Asked(CHANGED, for_page=False), Asked(str(failure)))

        async def value() -> Asked:
            assert self.clicks == 1
            return next(request for request in asked if wanted(request))

        yield SimpleNamespace(value=value())

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


@pytest.mark.parametrize(("failure", "loads"), [("", 0), (CHANGED, 1), ("net::ERR_CONNECTION_REFUSED", 0)])
async def test_where_a_link_leads_is_loaded_where_networks_changed(failure: str, loads: int) -> None:
    page = Page(failure)
    await follow(page, page)
    assert page.asked == loads
