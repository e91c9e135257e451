"""Parts of fast-agent that are replaced for a time, since it has no setting for it.

Its constructor, its look-up of keys, how it waits for events and lists tools, how the MCP SDK under it starts a program
and ends a session, and how often the HTTP client of both reads the certificates of authorities.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import signal
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import httpx2
import structlog
from fast_agent import FastAgent
from fast_agent.core import validation
from fast_agent.core.exceptions import ProviderKeyError
from fast_agent.core.logging.transport import AsyncEventBus
from fast_agent.llm.provider_key_manager import ProviderKeyManager
from fast_agent.mcp.client_connection import MCPClientConnection
from mcp.client import stdio
from mcp.client.streamable_http import StreamableHTTPTransport

from pallas_agent_runtime.config.fastagent_yaml import NO_KEY
from pallas_agent_runtime.health.last_words import LastWords
from pallas_contract import names

log = structlog.get_logger(__name__)

_ELSEWHERE = ("config_path", "home", "no_home")
"""Parameters that name another configuration than the kit's."""
CLOSE = 1.0
"""Seconds that the end of a session is told for: nobody needs the answer, and the server may hang."""

CERTIFICATES = 60.0
"""Seconds for which the authorities' certificates are kept: they may be renewed while an agent runs."""
_LOCATIONS = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that say where they are."""


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Have `value` in the place of `owner.name` meanwhile; a version of fast-agent that has none is left as it is."""
    if not hasattr(owner, name):
        yield
        return
    own = name in vars(owner)
    original = vars(owner).get(name)  # a static method as such
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)


@contextmanager
def kit_configured(module: str) -> Iterator[None]:
    """Have every FastAgent made meanwhile, by the import of `module`, read the kit's configuration; each other is told.

    One made from a file of its own would know no member of the fleet, none of its secrets and none of what the kit
    decides. fast-agent has no way to hand it one from outside, so its constructor is wrapped for that time.
    """
    original = FastAgent.__init__
    parameters = inspect.signature(original)

    @functools.wraps(original)
    def construct(*args: Any, **kwargs: Any) -> None:
        call = parameters.bind(*args, **kwargs)
        others = {key: call.arguments.pop(key) for key in _ELSEWHERE if call.arguments.get(key)}
        for key, value in others.items():
            log.warning("configuration_not_used", module=module, parameter=key, path=str(value))
        original(*call.args, **call.kwargs)

    FastAgent.__init__ = construct  # type: ignore[method-assign]
    try:
        yield
    finally:
        FastAgent.__init__ = original  # type: ignore[method-assign]


@contextmanager
def overheard(programs: dict[str, LastWords]) -> Iterator[None]:
    """Have `programs` take the last words of every server on stdio that is started meanwhile, by its name.

    fast-agent sends their stderr to /dev/null, and the MCP SDK keeps their exit codes to itself. What still runs at the
    end is killed: it would outlive this process. The SDK hands them a few variables of this process's only: the one by
    which they are found when it was killed itself (local/guardian) is none of them.
    """
    original = stdio._create_platform_compatible_process
    started: dict[Any, str] = {}

    @functools.wraps(original)
    async def create(*, errlog: Any, env: dict[str, str] | None = None, **arguments: Any) -> Any:
        words = programs[getattr(errlog, "server_name", "")] = LastWords()
        run = os.environ.get(names.ENV_RUN)
        marked = {**env, names.ENV_RUN: run} if run and env is not None else env
        with words.pipe() as fd:
            log: Any = fd  # anyio takes a number too
            process: Any = await original(errlog=log, env=marked, **arguments)
        for other in [other for other in started if other.returncode is not None]:
            del started[other]
        started[process] = getattr(errlog, "server_name", "")
        words.exit_code = lambda: process.returncode
        return process

    stdio._create_platform_compatible_process = create  # type: ignore[assignment]  # the SDK names all it hands over
    try:
        yield
    finally:
        stdio._create_platform_compatible_process = original
        for process, name in started.items():
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # the SDK has it lead a group of its own
                log.warning(
                    "server_killed", server=name, reason="it did not end with its input, nor by SIGTERM in time"
                )


@contextmanager
def hurried(servers: Mapping[str, str]) -> Iterator[None]:
    """Have each session of Streamable HTTP end within `CLOSE` meanwhile; `servers` maps URL -> name, for the log.

    The SDK waits for the answer to its DELETE as for any other, for minutes, and keeps the connections until then:
    fast-agent would wait with it, and cannot cancel a connection that is closing.
    """
    original = StreamableHTTPTransport.terminate_session

    @functools.wraps(original)
    async def terminate(transport: StreamableHTTPTransport, client: Any) -> None:
        try:
            async with asyncio.timeout(CLOSE):
                await original(transport, client)
        except TimeoutError:
            log.warning("session_not_ended", server=servers.get(transport.url, ""), reason=f"no answer in {CLOSE:g} s")

    with replaced(StreamableHTTPTransport, "terminate_session", terminate):
        yield


@contextmanager
def resting() -> Iterator[None]:
    """Have fast-agent's bus wait for its events meanwhile, which it would look for ten times a second.

    Its end cancels that wait: it looks so often for nothing, and an agent without a call would do nothing else.
    """
    original: Any = getattr(AsyncEventBus, "_next_event", None)

    async def wait(bus: AsyncEventBus) -> Any:
        queue = bus._queue
        return await (queue.get() if queue else original(bus))

    with replaced(AsyncEventBus, "_next_event", wait):
        yield


_noted: ContextVar[list[MCPClientConnection]] = ContextVar("pallas_connections")


@contextmanager
def noting() -> Iterator[None]:
    """Have `noted` get the connections that are made meanwhile: fast-agent tells nobody which one is to which server.

    It lists the tools of each server that it attaches.
    """
    original = MCPClientConnection.list_tools

    @functools.wraps(original)
    async def list_tools(connection: MCPClientConnection, **arguments: Any) -> Any:
        _noted.get([]).append(connection)
        return await original(connection, **arguments)

    with replaced(MCPClientConnection, "list_tools", list_tools):
        yield


@contextmanager
def certificates_kept(clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Have HTTP clients that trust the usual authorities share what they read of these, for `CERTIFICATES` seconds.

    A client reads them all when it is made, in 4 to 8 ms of processor time, also where it asks by HTTP only, and
    fast-agent makes one of OpenAI's for each turn of a model. Who has a context, a certificate or a transport of its
    own has it still.
    """
    make = httpx2.AsyncClient.__init__
    kept: dict[tuple[Any, ...], tuple[ssl.SSLContext, float]] = {}

    def trust(*, trust_env: bool, http2: bool) -> ssl.SSLContext:
        # a connection writes into its context which versions of HTTP it speaks
        key = (trust_env, http2, *map(os.environ.get, _LOCATIONS))
        if key not in kept or clock() - kept[key][1] >= CERTIFICATES:
            kept[key] = httpx2.create_ssl_context(trust_env=trust_env), clock()
        return kept[key][0]

    @functools.wraps(make)
    def init(client: httpx2.AsyncClient, **kwargs: Any) -> None:
        if kwargs.get("verify", True) is True and not kwargs.get("cert") and not kwargs.get("transport"):
            trust_env, http2 = kwargs.get("trust_env", True), kwargs.get("http2", False)
            kwargs["verify"] = trust(trust_env=trust_env, http2=http2)
        make(client, **kwargs)

    with replaced(httpx2.AsyncClient, "__init__", init):
        yield


@contextmanager
def noted() -> Iterator[list[MCPClientConnection]]:
    """Yield a list that gets the connections that this task makes inside."""
    connections: list[MCPClientConnection] = []
    token = _noted.set(connections)
    try:
        yield connections
    finally:
        _noted.reset(token)


class MissingKeys:
    """The providers that agents of this process run on and that have no key.

    fast-agent refuses to make an agent whose provider has neither a key nor a login of its own (`hf auth login`,
    Google's application default credentials). Seed 001, Startup Preflight, only warns.
    """

    def __init__(self) -> None:
        self.providers: set[str] = set()
        """As prefixes of models: `hf`, `groq`."""

    @contextmanager
    def tolerated(self) -> Iterator[None]:
        """Have fast-agent go on without a key: some models ask for it when they are made, all when they are checked.

        A key written into its configuration would hide a login of its own.
        """
        get = ProviderKeyManager.get_api_key
        validate = validation.validate_provider_keys_post_creation
        ProviderKeyManager.get_api_key = staticmethod(self._key)  # type: ignore[method-assign]
        validation.validate_provider_keys_post_creation = functools.partial(self._validate, validate)
        try:
            yield
        finally:
            ProviderKeyManager.get_api_key = staticmethod(get)  # type: ignore[method-assign]
            validation.validate_provider_keys_post_creation = validate

    def _key(self, provider_name: str, config: Any) -> str:
        """Return the provider's key, or what stands for none: a call with it fails, as one with a wrong key does."""
        key = ProviderKeyManager.get_optional_api_key(provider_name, config)
        self._note(provider_name, missing=key in (None, NO_KEY))
        return NO_KEY if key is None else key

    def _validate(self, validate: Callable[[dict[str, Any]], None], agents: Mapping[str, Any]) -> None:
        for name, agent in agents.items():
            try:
                validate({name: agent})
            except ProviderKeyError:
                self._note(agent.llm.provider.config_name, missing=True)

    def _note(self, provider: str, *, missing: bool) -> None:
        (self.providers.add if missing else self.providers.discard)(provider)
