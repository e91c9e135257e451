"""The script that stands in the pages: the policy names it, and comes to no other one. What it does: in a browser,
`tests/registry/status_page/test_browser.py` and `tests/gateway/test_console_page.py`."""

from __future__ import annotations

import base64
import hashlib
import re

from starlette.applications import Starlette
from starlette.testclient import TestClient

from pallas_registry.status_page import page
from pallas_service.console import pages, reload


def test_the_policy_of_both_pages_names_the_script_that_stands_in_them() -> None:
    answer = TestClient(Starlette(routes=pages.routes())).get(pages.PATH)
    (script,) = re.findall(r"<script>(.*?)</script>", answer.text)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    for policy in (answer.headers["content-security-policy"], page.HEADERS["content-security-policy"]):
        assert f"script-src 'self' 'sha256-{digest}';" in policy


def test_it_stands_before_all_that_the_page_loads() -> None:
    text = TestClient(Starlette(routes=pages.routes())).get(pages.PATH).text
    assert text.index(reload.ELEMENT) < text.index("<link") < text.index('<script type="module"')
