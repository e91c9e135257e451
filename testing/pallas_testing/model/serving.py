"""The scripted model on a port: in a thread beside a test, or as the whole of a process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from pallas_testing.model.prompt_server import PromptServer
from pallas_testing.model.scripted import ScriptedModel
from pallas_testing.model.server import Backend, Scripted, create_app

_log = logging.getLogger(__name__)
_log.setLevel(logging.CRITICAL)


class _Quiet(AutoHTTPProtocol):  # type: ignore[misc, valid-type] # a class, chosen by what is installed
    """uvicorn's protocol with a logger of its own: a cut answer is meant here, and there an error.

    The level of uvicorn's own logger is that of all servers in the process, which is somebody else's tests.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.logger = _log


class Server(PromptServer):
    """A server whose end ends answers that hang or are slow, too."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._closing = asyncio.Event()
        app = create_app(backend, self._closing)
        super().__init__(
            uvicorn.Config(
                app,
                http=_Quiet,
                log_config=None,
                access_log=False,
                ws="none",
                lifespan="off",
                timeout_graceful_shutdown=3,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take SIGINT and SIGTERM as the end, where uvicorn would raise them once more behind it."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.end)
        yield
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._closing.set()
        await super().shutdown(sockets)
        await self._backend.close()


@contextlib.contextmanager
def serving_backend(backend: Backend, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serve a backend in a thread, on a free port if none is named; yield the URL, without `/v1`."""
    server = Server(backend)
    with socket.create_server((host, port)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="scripted-model")
        thread.start()
        try:
            yield f"http://{host}:{listener.getsockname()[1]}"
        finally:
            server.end()
            thread.join()


@contextlib.contextmanager
def serving(model: ScriptedModel, host: str = "127.0.0.1", port: int = 0) -> Iterator[ScriptedModel]:
    """Serve a scripted model in a thread; its `url` says where."""
    with serving_backend(Scripted(model), host, port) as model.url:
        yield model
