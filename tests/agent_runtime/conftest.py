"""A project on disk, a stand-in for the model's API, and agents as real processes."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
import yaml
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.installed import ROOT
from tests.ports import free_port
from tests.served import serving
from tests.warm_parent import Forked, WarmParent

ERAS = ("2026-07-28", "legacy")

READY = 90.0
"""Seconds to wait for a process; generous, for a machine that is busy with other things."""

HIDDEN = ("PALLAS_", "OPENAI_", "ANTHROPIC_", "PYTHONDONTWRITEBYTECODE")
"""How the variables of this process begin that no agent is to see."""

RUNTIME = (
    "pallas_agent_runtime.cli",
    "pallas_agent_runtime.preloaded",
    "fast_agent.llm.provider.openai.llm_openai",
)
"""What an agent imports, as for `pallas`, and the client of its model."""


def until[T](what: Callable[[], T | None], seconds: float = READY) -> T:
    """Ask again and again until there is an answer, less often the longer it takes: only to ask costs anything."""
    began = time.monotonic()
    while (found := what()) is None:
        waited = time.monotonic() - began
        assert waited < seconds, "nothing happened in time"
        time.sleep(min(0.05 + waited / 10, 0.25))
    return found


def write_files(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return folder


# --- the model's API ---


@dataclass
class Model:
    """A stand-in for an OpenAI-compatible API: `answer` maps a request's body to text and tool calls."""

    answer: Callable[[dict[str, Any]], dict[str, Any]]
    models: list[str]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    broken: bool = False
    entered: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    """A request whose text is `slow` sets the first and waits for the second ..."""
    abandoned: threading.Event = field(default_factory=threading.Event)
    """... or for its client to hang up, which sets this."""


class _Handler(BaseHTTPRequestHandler):
    """What the stand-in answers; `model` is set by a subclass."""

    model: Model

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._json(500 if self.model.broken else 200, {"data": [{"id": name} for name in self.model.models]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.model.requests.append(body)
        self.model.headers.append(dict(self.headers))
        if body["messages"][-1]["content"] == "slow" and not self._waited():
            return
        if self.model.broken:
            self._json(500, {"error": {"message": "the stand-in is broken"}})
            return
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._stream(body["model"], self.model.answer(body))

    def _waited(self) -> bool:
        self.model.entered.set()
        self.connection.settimeout(0.05)
        while not self.model.released.is_set():
            with contextlib.suppress(TimeoutError):
                if not self.connection.recv(1, socket.MSG_PEEK):
                    self.model.abandoned.set()
                    return False
        self.connection.settimeout(None)
        return True

    def _json(self, status: int, data: dict[str, Any]) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, name: str, delta: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        finish = "tool_calls" if "tool_calls" in delta else "stop"
        for part, reason in (({"role": "assistant", **delta}, None), ({}, finish)):
            choice = {"index": 0, "delta": part, "finish_reason": reason}
            chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": name, "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")


def said(message: dict[str, Any]) -> str:
    """The text of a message that the API was sent."""
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def tool_call(name: str, text: str = "", **arguments: Any) -> dict[str, Any]:
    """An answer that calls one tool, after a few words if you like."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"content": text, "tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}


def serve_model(model: Model) -> Iterator[Model]:
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": model})) as server:
        model.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield model
        finally:  # a thread that goes on would keep pytest from ending after a test that failed
            model.released.set()
            server.shutdown()
            thread.join()


# --- processes ---


def environment() -> dict[str, str]:
    """Return what every agent is given of this process's environment."""
    known = {key: value for key, value in os.environ.items() if not key.startswith(HIDDEN)}
    patient = {"PALLAS_CONNECT_TIMEOUT": "30"}  # a busy machine takes long to connect, and no server here hangs
    return known | patient


@dataclass
class Agents:
    """Agents of one project as processes; `env` is added to each one's environment.

    With a `parent` they are forked from it, else each is the command that a user runs.
    """

    folder: Path
    env: dict[str, str] = field(default_factory=dict)
    parent: WarmParent | None = None
    running: dict[str, subprocess.Popen[bytes] | Forked] = field(default_factory=dict)

    def start(self, name: str, script: str = "") -> None:
        """`script` is Python that does what `pallas` does, in its place; it wants a parent."""
        if self.parent is not None:
            env = {**environment(), **self.env}
            self.running[name] = self.parent.start(
                ["--agent", name], cwd=self.folder, env=env, log=self.log(name), script=script
            )
            return
        assert not script
        with self.log(name).open("ab") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, "-m", "pallas_agent_runtime", "--agent", name],
                cwd=self.folder,
                env={**environment(), **self.env},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait(self, *names: str) -> None:
        for name in names:
            until(lambda name=name: self._ready(name))

    def port(self, name: str) -> int:
        return int(yaml.safe_load((self.folder / "agents.yaml").read_text())["agents"][name]["port"])

    def url(self, name: str, path: str = "/mcp") -> str:
        return f"http://127.0.0.1:{self.port(name)}{path}"

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def get(self, name: str, path: str) -> tuple[int, str]:
        """Status and body of a plain page; status 0 when nobody answers."""
        try:
            with urllib.request.urlopen(self.url(name, path), timeout=60) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    @contextlib.asynccontextmanager
    async def client(self, name: str, era: str, token: str) -> AsyncIterator[Client]:
        """The SDK's own client, with a token."""
        headers = {"authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(self.url(name), http_client=http), mode=era) as made,
        ):
            yield made

    def end(self, name: str, seconds: float = READY) -> int:
        """SIGTERM; the exit code."""
        process = self.running.pop(name)
        process.terminate()
        return process.wait(seconds)

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def close(self) -> None:
        for name in list(self.running):
            self.kill(name)

    def _ready(self, name: str) -> bool | None:
        assert self.running[name].poll() is None, self.log(name).read_text()
        return True if self.get(name, "/readyz")[0] == 200 else None


@contextlib.contextmanager
def running(
    parent: WarmParent | None, folder: Path, *names: str, one_by_one: bool = False, **env: str
) -> Iterator[Agents]:
    """The agents `names` of the project at `folder`, ready. An agent that starts looks at those it calls once, and then
    not for a while: `one_by_one` has them there.
    """
    started = Agents(folder, env, parent)
    try:
        for name in names:
            started.start(name)
            if one_by_one:
                started.wait(name)
        started.wait(*names)
        yield started
    except AssertionError as error:
        for name in started.running:
            error.add_note(f"{name} said at the end:\n{started.log(name).read_text()[-2000:]}")
        raise
    finally:
        started.close()


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    """A test that asks for it runs once as a stateless client and once in the handshake era."""
    return str(request.param)


@pytest.fixture(scope="session")
def warm_parent() -> Iterator[WarmParent]:
    """What agents are forked from; it imports the runtime for the first of them, in all rounds of `make test`."""
    parent = WarmParent(RUNTIME, environment(), shared=os.environ.get("PALLAS_TEST_PARENT", ""))
    yield parent
    parent.close()


def parent_of(program: str, more: Sequence[str]) -> WarmParent:
    """What a program of the tests is forked from, a module of theirs; it imports the runtime, and `more`."""
    return WarmParent((program, *RUNTIME, *more), {**environment(), "PYTHONPATH": str(ROOT)})


@pytest.fixture(scope="session")
def toolkit(warm_parent: WarmParent) -> SimpleNamespace:
    """The helpers of this file, for test modules: none of them can import it.

    `running` forks agents; those of `running_commands` and of `Agents` are the command that a user runs.
    """
    return SimpleNamespace(
        Model=Model,
        Agents=Agents,
        until=until,
        free_port=free_port,
        write_files=write_files,
        serve_model=serve_model,
        said=said,
        tool_call=tool_call,
        running=partial(running, warm_parent),
        running_commands=partial(running, None),
        warm_parent=warm_parent,
        parent_of=parent_of,
        serving=serving,
    )
