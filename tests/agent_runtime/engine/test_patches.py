"""A module that names a configuration of its own gets the kit's, and its author is told."""

from __future__ import annotations

import asyncio
import inspect
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx2
import openai
import pytest
from fast_agent import FastAgent
from fast_agent.core.logging.events import Event
from fast_agent.core.logging.listeners import EventListener
from fast_agent.core.logging.transport import AsyncEventBus
from mcp.client import stdio
from mcp.client.streamable_http import StreamableHTTPTransport
from structlog.testing import capture_logs

from pallas_agent_runtime import serve
from pallas_agent_runtime.config import fastagent_yaml
from pallas_agent_runtime.engine import patches
from pallas_agent_runtime.engine.patches import certificates_kept, hurried, kit_configured, overheard, resting
from pallas_agent_runtime.health.last_words import LastWords
from pallas_contract import names


@pytest.fixture
def _home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAST_AGENT_HOME", "")
    peers = {"research": "http://x/mcp"}
    with serve.home(fastagent_yaml.build(None, None, prefix="passthrough", peers=peers, environ={}).data):
        yield


@pytest.mark.usefixtures("_home")
@pytest.mark.parametrize("parameter", ["config_path", "home", "no_home"])
def test_another_configuration_is_left_out_and_told(tmp_path: Path, parameter: str) -> None:
    (tmp_path / "fast-agent.yaml").write_text("llm_retries: 9\nmcp: {servers: {mine: {url: 'http://mine/mcp'}}}\n")
    value = {"config_path": str(tmp_path / "fast-agent.yaml"), "home": str(tmp_path), "no_home": True}[parameter]
    with kit_configured("agents.scout"), capture_logs() as lines:
        app = FastAgent("x", parse_cli_args=False, quiet=True, **{parameter: value})
    assert list(app.config["mcp"]["servers"]) == ["research"]
    assert app.config["llm_retries"] == fastagent_yaml.DEFAULT_RETRIES
    assert [line for line in lines if line["log_level"] == "warning"] == [
        {
            "event": "configuration_not_used",
            "module": "agents.scout",
            "parameter": parameter,
            "path": str(value),
            "log_level": "warning",
        }
    ]


@pytest.mark.usefixtures("_home")
def test_the_path_may_stand_second_and_afterwards_all_is_as_it_was(tmp_path: Path) -> None:
    before = inspect.signature(FastAgent)
    with kit_configured("agents.scout"), capture_logs() as lines:
        FastAgent("x", "elsewhere.yaml", parse_cli_args=False, quiet=True)
        FastAgent("y", parse_cli_args=False, quiet=True)
    assert [line["path"] for line in lines] == ["elsewhere.yaml"]
    assert inspect.signature(FastAgent) == before
    assert FastAgent.__init__.__module__ == FastAgent.__module__
    assert not hasattr(FastAgent.__init__, "__wrapped__")


async def test_the_last_words_of_a_server_on_stdio_are_heard_by_its_name() -> None:
    original = stdio._create_platform_compatible_process
    programs: dict[str, LastWords] = {}
    log: Any = SimpleNamespace(server_name="notes")  # as fast-agent's own, which leads to /dev/null
    parameters = stdio.StdioServerParameters(command="sh", args=["-c", "echo no such file >&2; exit 3"])
    with overheard(programs):
        async with stdio.stdio_client(parameters, errlog=log) as (reading, _):
            assert [message async for message in reading] == []
    assert stdio._create_platform_compatible_process is original
    assert {name: (words.ending, words.lines()) for name, words in programs.items()} == {
        "notes": ("exit code 3", ["no such file"])
    }


STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(1000)"


async def test_a_server_on_stdio_that_still_runs_at_the_end_is_killed_and_named() -> None:
    log: Any = SimpleNamespace(server_name="notes")
    parameters = {"command": sys.executable, "args": ["-c", STUBBORN], "errlog": log}
    with capture_logs() as lines:
        with overheard({}):
            process: Any = await stdio._create_platform_compatible_process(**parameters)
            await process.stdout.receive()
        async with asyncio.timeout(60):
            assert await process.wait() == -signal.SIGKILL
    assert [(line["event"], line["server"]) for line in lines] == [("server_killed", "notes")]
    await process.aclose()


@pytest.mark.skipif(sys.platform != "linux", reason="a process tells its environment in /proc")
@pytest.mark.parametrize("run", ["", "test/it"])
async def test_a_server_on_stdio_is_found_by_the_run_of_its_agent(monkeypatch: pytest.MonkeyPatch, run: str) -> None:
    """The SDK hands it some variables of the agent's, and that of the run is none of them."""
    monkeypatch.setenv(names.ENV_RUN, run)
    show = f"import os; print(os.environ.get({names.ENV_RUN!r}, '')); raise SystemExit(os.environ['OWN'] != 'own')"
    parameters = stdio.StdioServerParameters(command=sys.executable, args=["-c", show], env={"OWN": "own"})
    log: Any = SimpleNamespace(server_name="notes")
    with overheard(programs := {}):
        async with stdio.stdio_client(parameters, errlog=log) as (reading, _):
            [message] = [message async for message in reading]
    assert f"input_value='{run}'" in str(message)
    assert programs["notes"].ending == "exit code 0"


async def test_a_server_on_stdio_that_has_ended_is_not_killed() -> None:
    log: Any = SimpleNamespace(server_name="notes")
    parameters = {"command": sys.executable, "args": ["-c", ""], "errlog": log}
    with capture_logs() as lines, overheard({}):
        for _ in range(2):
            process: Any = await stdio._create_platform_compatible_process(**parameters)
            await process.wait()
            await process.aclose()
    assert lines == []


async def test_a_server_that_says_nothing_to_the_end_of_its_session_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(*_: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(patches, "CLOSE", 0.01)
    monkeypatch.setattr(StreamableHTTPTransport, "terminate_session", hang)
    transport: Any = StreamableHTTPTransport("http://notes/mcp")
    with capture_logs() as lines, hurried({"http://notes/mcp": "notes"}):
        async with asyncio.timeout(10):
            await transport.terminate_session(None)
    assert [(line["event"], line["server"]) for line in lines] == [("session_not_ended", "notes")]
    assert vars(StreamableHTTPTransport)["terminate_session"] is hang


@pytest.fixture
async def bus() -> AsyncIterator[AsyncEventBus]:
    """A bus of the running loop, which is no other test's."""
    AsyncEventBus.reset()
    yield AsyncEventBus.get()
    AsyncEventBus.reset()


class Heard(EventListener):
    def __init__(self) -> None:
        self.events: asyncio.Queue[Event] = asyncio.Queue()

    async def handle_event(self, event: Event) -> None:
        await self.events.put(event)


async def test_a_bus_that_has_nothing_to_tell_sets_no_timer(
    bus: AsyncEventBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers: list[float] = []
    heard, event = Heard(), Event(type="info", namespace="x", message="hello")
    bus.add_listener("heard", heard)
    with resting():
        await bus.start()
        monkeypatch.setattr(asyncio.get_running_loop(), "call_at", lambda when, *_, **__: timers.append(when))
        for _ in range(2):
            for _ in range(5):
                await asyncio.sleep(0)
            await bus.emit(event)
            assert await heard.events.get() is event
        assert timers == []
        monkeypatch.undo()
        async with asyncio.timeout(20):
            await bus.stop()
    assert bus._task is None
    assert AsyncEventBus._next_event.__module__ == AsyncEventBus.__module__


def _context(**arguments: Any) -> ssl.SSLContext:
    client = httpx2.AsyncClient(**arguments)
    return client._transport._pool._ssl_context  # type: ignore[attr-defined]


def test_clients_with_the_usual_trust_read_certificates_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock = SimpleNamespace(now=0.0)
    with certificates_kept(lambda: clock.now):
        first = _context()
        clock.now = 59.0
        assert _context() is _context(verify=True) is first
        assert openai.DefaultAsyncHttpxClient()._transport._pool._ssl_context is first
        assert openai.DefaultAioHttpClient()._transport.ssl_context is first
        assert _context(trust_env=False) is not first
        monkeypatch.setitem(sys.modules, "h2", ModuleType("h2"))  # a package that not everybody has
        assert _context(http2=True) is not first
        clock.now = 60.0
        renewed = _context()
        assert renewed is not first
        assert (renewed.verify_mode, renewed.check_hostname) == (ssl.CERT_REQUIRED, True)
        assert renewed.get_ca_certs()
        other = tmp_path / "authority.pem"
        other.write_text(ssl.DER_cert_to_PEM_cert(renewed.get_ca_certs(binary_form=True)[0]))
        monkeypatch.setenv("SSL_CERT_FILE", str(other))
        assert len(_context().get_ca_certs()) == 1
        assert _context(trust_env=False).get_ca_certs() == renewed.get_ca_certs()
    assert _context() is not _context()


def test_clients_with_a_trust_of_their_own_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    own = ssl.create_default_context()
    with certificates_kept():
        shared = _context()
        assert _context(verify=own) is own
        trusting = _context(verify=False)
        assert (trusting.verify_mode, shared.verify_mode) == (ssl.CERT_NONE, ssl.CERT_REQUIRED)
        shown: list[ssl.SSLContext] = []
        monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", lambda context, _file: shown.append(context))
        with pytest.warns(DeprecationWarning, match="cert"):
            assert _context(cert="mine.pem") is shown[0] is not shared
    transport = httpx2.AsyncHTTPTransport()
    with certificates_kept():
        monkeypatch.setattr(httpx2, "create_ssl_context", None)
        assert httpx2.AsyncClient(transport=transport)._transport is transport


def test_user_code_that_changes_a_context_of_its_own_changes_nobody_elses() -> None:
    with certificates_kept():
        own = httpx2.create_ssl_context()
        own.check_hostname = False
        own.verify_mode = ssl.CERT_NONE
        assert _context().verify_mode == ssl.CERT_REQUIRED
