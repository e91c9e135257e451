"""The two pages by which a kubelet or a supervisor sees that a program lives, and that it takes requests."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from pallas_contract import names


class Readiness:
    """`/livez` and `/readyz` of one program, open to everybody; nothing behind it has a say in them."""

    def __init__(self) -> None:
        self.ready = False
        """Set once requests are taken, unset when the process drains."""

    def routes(self) -> list[Route]:
        """Return the routes of both."""
        return [Route(names.LIVE_PATH, self._livez), Route(names.READY_PATH, self._readyz)]

    async def _livez(self, request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _readyz(self, request: Request) -> Response:
        return PlainTextResponse("ok\n") if self.ready else PlainTextResponse("not ready\n", status_code=503)
