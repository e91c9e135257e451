"""The registry before the judge that `pallas-testing conformance` is."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from pallas_registry.http.app import create_app
from pallas_testing.conformance import run
from pallas_testing.conformance.run import Question
from tests.registry.fake_fleet import Fake, running

pytestmark = pytest.mark.usefixtures("no_threads")


class Network(httpx.AsyncBaseTransport):
    """The registry on its port, and nobody where its agents should be."""

    def __init__(self, app: httpx.ASGITransport) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.port != 8200:
            raise httpx.ConnectError("connection refused")
        return await self._app.handle_async_request(request)


async def test_it_keeps_every_sentence_that_can_be_judged(folder: Path, time, fake: Fake) -> None:
    async with running(folder, time, fake, fake) as service:
        await time.advance()
        network = Network(httpx.ASGITransport(create_app(service.backend(run="run"))))
        report = await run.check(Question("http://127.0.0.1:8200"), transport=network)
    assert report.kind == "registry"
    assert [finding.id for finding in report.findings if finding.verdict != "held"] == ["registry.endpoints"]
