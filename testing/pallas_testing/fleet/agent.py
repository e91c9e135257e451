"""One agent of the fleet, asked as any MCP client would (seed 000 sections 2 and 4)."""

from __future__ import annotations

import asyncio
import base64
import mimetypes
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pallas_testing.answers.answer import AgentFailed, Answer
from pallas_testing.answers.calls import Progress, tree

Image = Path | Mapping[str, str]
"""A file whose suffix tells its type, or `{"data": base64, "mime_type": ...}` as it goes over the wire (seed 001)."""
TIMEOUT = 120.0
"""Seconds for an answer, the connection included."""


class Agent:
    """An agent at a URL. `name` is the one in agents.yaml, `may_call` tells who calls whom."""

    def __init__(
        self, name: str, url: str, may_call: Mapping[str, Sequence[str]], answered: Callable[[Answer], None]
    ) -> None:
        """`url` ends with /mcp; `answered` is told each answer, for the report of a test that fails."""
        self.name = name
        self.url = url
        self._may_call = may_call
        self._answered = answered

    async def send(
        self,
        message: str,
        *,
        images: Sequence[Image] = (),
        session: str | None = None,
        era: str = "auto",
        token: str | None = None,
        timeout: float = TIMEOUT,
    ) -> Answer:
        """Return the agent's answer.

        `session` names a conversation that goes on with the next message of the same name. `era` is a protocol version
        of MCP, `legacy` for the newest one with a handshake, `auto` for what the agent prefers. `token` is the bearer
        token of the caller, for an agent with `access`. `timeout` is in seconds.

        Raises:
            AgentFailed: the agent answers with an error.
            TimeoutError: it does not answer in time.
        """
        from pallas_testing.daedalus import chat  # noqa: PLC0415 - takes a second, which a test that asks nobody saves
        from pallas_testing.fleet.connection import connect  # noqa: PLC0415 - imports the same

        arguments: dict[str, Any] = {"message": message}
        if images:
            arguments["images"] = [_image(image) for image in images]
        if session is not None:
            arguments["session_id"] = session
        notifications: list[Progress] = []
        began = time.monotonic()

        async def note(progress: float, total: float | None, message: str | None) -> None:
            notifications.append(Progress(time.monotonic() - began, progress, total, message or ""))

        async with asyncio.timeout(timeout), connect(self.url, era=era, token=token) as client:
            tool = chat.choose(self.name, [tool.name for tool in (await client.list_tools()).tools])
            began = time.monotonic()
            result = await client.call_tool(tool, arguments, progress_callback=note)
        call = tree(self.name, notifications, self._may_call)
        call.seconds = time.monotonic() - began
        call.outcome = "failed" if result.is_error else "completed"
        text = "\n".join(block.text for block in result.content if block.type == "text")
        answer = Answer(text, tuple(notifications), call)
        self._answered(answer)
        if result.is_error:
            raise AgentFailed(answer)
        return answer

    def ask(
        self,
        message: str,
        *,
        images: Sequence[Image] = (),
        session: str | None = None,
        era: str = "auto",
        token: str | None = None,
        timeout: float = TIMEOUT,
    ) -> Answer:
        """Return the agent's answer: `send` for tests that are no coroutines."""
        answering = self.send(message, images=images, session=session, era=era, token=token, timeout=timeout)
        with ThreadPoolExecutor(1) as executor:  # the caller's thread may have a loop of its own
            return executor.submit(asyncio.run, answering).result()


def _image(image: Image) -> Mapping[str, str]:
    if isinstance(image, Mapping):
        return image
    mime_type, _ = mimetypes.guess_type(image.name)
    data = base64.b64encode(image.read_bytes()).decode()
    return {"data": data, "mime_type": mime_type or "application/octet-stream"}
