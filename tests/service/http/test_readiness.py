"""`/livez` and `/readyz`."""

from __future__ import annotations

from starlette.applications import Starlette

from pallas_service.http.readiness import Readiness
from tests.served import served


async def test_a_program_lives_before_it_is_ready_and_while_it_drains() -> None:
    readiness = Readiness()
    async with served(Starlette(routes=readiness.routes())) as web:
        for ready, status in ((False, 503), (True, 200), (False, 503)):
            readiness.ready = ready
            assert (await web.get("/readyz")).status_code == status
            assert (await web.get("/livez")).text == "ok\n"
