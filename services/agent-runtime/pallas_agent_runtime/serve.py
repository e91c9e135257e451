"""Serve one agent: claim the port, start the engine, answer until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
import uvloop
import yaml

from pallas_agent_runtime import mcp_server, telemetry
from pallas_agent_runtime.access.build import arrange
from pallas_agent_runtime.access.forward_policy import may_go_on
from pallas_agent_runtime.calls import delegation
from pallas_agent_runtime.config import fastagent_yaml
from pallas_agent_runtime.config.settings import Settings
from pallas_agent_runtime.conversations.store import Conversations, MemoryStore, Message, Store
from pallas_agent_runtime.health import preflight
from pallas_agent_runtime.health.downstream import Downstream, combine
from pallas_agent_runtime.health.first_round import first_round
from pallas_agent_runtime.importing import gc_tuning
from pallas_agent_runtime.metrics import Metrics
from pallas_agent_runtime.prepare import Prepared
from pallas_agent_runtime.web import app as web_app
from pallas_agent_runtime.web.brief_streams import brief_streams
from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.documents.health import Health
from pallas_contract.probe.probe import Target
from pallas_contract.problems import Problem, Refused, Where
from pallas_service import compiled_texts, deferred_models
from pallas_service.http import sockets as http_sockets
from pallas_service.http.shutdown import LAST_WORDS, REST, HttpServer, Stop, background, drain, leave_in_time

if TYPE_CHECKING:
    from pallas_agent_runtime.engine import Engine

log = structlog.get_logger(__name__)


def run(prepared: Prepared) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        sockets.CannotListen: before anything expensive was done, unless another process was quicker in the meantime.
        Refused: the agent's module or card is not usable, or fast-agent makes no instance of it.
    """
    settings = prepared.settings
    os.chdir(settings.project)  # relative paths of fast-agent's files start there
    fd = os.environ.pop(names.ENV_LISTEN_FD, "")  # not for the MCP servers that the agent starts
    under = os.environ.pop(names.ENV_HOME, "")
    with (
        http_sockets.bound(settings.host, settings.port, settings.listen_on, fd) as sockets,
        home(prepared.config.data, under),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        try:
            runner.run(_serve(prepared, sockets))
            leave_in_time(REST, _clean)
        except BaseExceptionGroup as group:  # several tasks were under way when it happened
            raise _cannot_listen(group) or group from None


def _cannot_listen(group: BaseExceptionGroup[BaseException]) -> http_sockets.CannotListen | None:
    for error in group.exceptions:
        if isinstance(error, http_sockets.CannotListen):
            return error
        if isinstance(error, BaseExceptionGroup) and (nested := _cannot_listen(error)):
            return nested
    return None


@contextlib.contextmanager
def home(data: fastagent_yaml.Data, under: str = "") -> Iterator[Path]:
    """Yield a private folder with the configuration, as the home of fast-agent; a container can write to /tmp only.

    It lies in the folder `under` where there is that one, which `pallas` removes also when the agent was killed.
    """
    with tempfile.TemporaryDirectory(prefix="pallas-", dir=under if os.path.isdir(under) else None) as folder:
        path = Path(folder, "fast-agent.yaml")
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
        os.environ["FAST_AGENT_HOME"] = folder
        yield path


async def _serve(prepared: Prepared, sockets: list[socket.socket]) -> None:
    stop = Stop()
    # Two seconds of import that read FAST_AGENT_HOME: not before the address is ours and the home is there.
    is_forked = "pallas_agent_runtime.engine" in sys.modules
    from pallas_agent_runtime import engine as fast  # noqa: PLC0415

    if not is_forked:  # a fork would copy the pages of its parent
        # the files of some 300 folders, 0.6 MB of names: the few that import more list their folder again
        sys.path_importer_cache.clear()
    settings = prepared.settings
    fast.silence()
    # A mistake in a model of the project is told at the start; what its code has compiled is kept nowhere.
    with deferred_models.suspended(), compiled_texts.suspended():
        loaded = fast.load(settings)
    references = prepared.config.data.get("model_references")
    fast.check_models(loaded, settings, prepared.default_model, references)
    provider, model = fast.resolve_model(prepared.default_model, references)
    fast.register_model(replace(prepared.model, model=model), provider)
    prefixes = fast.prefixes(loaded, prepared.default_model, references)
    checked = preflight.targets(prepared.config.data, provider, model, os.environ, named=prefixes)
    used = loaded.servers | settings.peers.keys()
    downstream = Downstream({name: target for name, target in prepared.endpoints.items() if name in used})
    try:
        with (
            telemetry.recording(settings, provider, mcp_server.offered(settings), os.environ),
            _store(settings, fast.to_json, fast.from_json, fast.weigh) as store,
        ):
            targets = {name: prepared.endpoints[name] for name in settings.forward & prepared.endpoints.keys()}
            timeout = settings.connect_timeout
            forwarding = fast.Forwarding(
                targets, partial(may_go_on, settings), downstream.worth_trying, timeout=timeout
            )
            conversations = Conversations(store, fast.weigh)
            for name in used & fastagent_yaml.nowhere(prepared.config.data):
                downstream.program(name, "has neither `command` nor `url`")
            names_of_programs = loaded.servers & prepared.programs
            programs = fast.Programs(names_of_programs, downstream.program, timeout, prepared.reasons)
            engine = fast.Engine(
                loaded,
                settings,
                conversations,
                choose=downstream.promising,
                attached=downstream.attached,
                programs=programs,
                forwarding=forwarding,
            )
            urls = {target.url: name for name, target in prepared.endpoints.items()}
            answered = partial(_answered, downstream, _own(settings, prepared.endpoints))
            limited = fast.bounded(urls, settings.max_body, answered)
            models_limited = fast.models_bounded(settings.max_body)
            with fast.hurried(urls), fast.resting(), fast.certificates_kept(), limited, models_limited:
                async with engine.running():
                    await _answer(
                        prepared=prepared,
                        checked=checked,
                        engine=engine,
                        failures=(fast.EngineFailed,),
                        downstream=downstream,
                        store=store,
                        sockets=sockets,
                        stop=stop,
                    )
    except fast.EngineFailed as failure:
        fast.check_files(loaded, settings)  # says the same better, where it knows
        path = ("agents", settings.name, "module" if settings.agent.module else "card")
        hint = "correct its code or its configuration there"
        message = f"fast-agent cannot start it: {failure}"
        code = Code.FAST_AGENT_REFUSES
        raise Refused([settings.tree.problem(*path, message=message, hint=hint, code=code)]) from None
    log.info("stopped")


def _answered(downstream: Downstream, names: Set[str], name: str, status: int) -> None:
    if name in names:
        downstream.answered(name, status)


def _own(settings: Settings, endpoints: Mapping[str, Target]) -> set[str]:
    """Return the servers that get the agent's own token and no caller's, each of which has its URL alone."""
    shared = Counter(target.url for target in endpoints.values())
    theirs = settings.peers.keys() | settings.forward
    return {name for name, target in endpoints.items() if name not in theirs and shared[target.url] == 1}


@contextlib.contextmanager
def _store[M: Message](
    settings: Settings, dump: Callable[[list[M]], str], parse: Callable[[str], list[M]], weigh: Callable[[M], int]
) -> Iterator[Store[M]]:
    """Yield the store of conversations: in memory, or in the file that was asked for.

    Raises:
        Refused: that file cannot be used.
    """
    if settings.conversations is None or not settings.remembers:
        yield MemoryStore(weigh)
        return
    # a megabyte, for those who asked for the file
    from pallas_agent_runtime.conversations import sqlite  # noqa: PLC0415
    from pallas_service.sqlite_file import CannotStore  # noqa: PLC0415

    with contextlib.ExitStack() as stack:
        try:
            file_store = stack.enter_context(sqlite.opened(settings.conversations, settings.name, dump, parse))
        except CannotStore as failure:
            raise Refused(
                [Problem(Where(f"${names.ENV_CONVERSATIONS}"), str(failure), code=Code.WRONG_VARIABLE)]
            ) from None
        yield file_store


async def _answer(
    *,
    prepared: Prepared,
    checked: Sequence[preflight.ProviderTarget],
    engine: Engine,
    failures: tuple[type[Exception], ...],
    downstream: Downstream,
    store: Store[Any],
    sockets: list[socket.socket],
    stop: Stop,
) -> None:
    """Run all that is there while the engine is warm, until `stop` is asked for."""
    settings = prepared.settings
    delegation.install()  # not before the engine runs: it may set a propagator of its own
    async with preflight.preflight(checked, secretive=prepared.reasons.secretive) as checks:
        guard = arrange(settings, prepared.tokens, prepared.keys_file)

        def provider_problem() -> str:
            return checks.active_failure or preflight.keyless(engine.keyless, prepared.config.data, os.environ)

        async def asked_anew() -> str:
            await checks.doubt()
            return provider_problem()

        engine.provider_problem = asked_anew

        def current() -> Health:
            return combine(
                downstream.unreachable_why(),
                provider_problem(),
                engine.failure,
                downstream.refreshed,
                refusing=downstream.refusing(prepared.endpoints.keys() - settings.forward - prepared.oauth),
                unchecked=[*downstream.unchecked(), *checks.unchecked],
                access=guard.problem,
                conversations=store.problem,
            )

        surface = mcp_server.Surface(
            settings,
            engine,
            current,
            failures,
            model=engine.model,
            provider=engine.provider,
            functions=engine.functions,
        )
        metrics = Metrics(settings.name, [tool.name for tool in surface.tools])
        metrics.watch(current, downstream, checks)
        pages = web_app.Pages(
            settings=settings,
            capabilities=prepared.published,
            current=current,
            downstream=downstream,
            preflight=checks,
            metrics=metrics,
            started=datetime.now(UTC),
        )
        manager = web_app.session_manager(surface.server(metrics), settings)
        watching = background(downstream.run(), checks.run(), store.watch(), *guard.background())
        with brief_streams():
            async with watching, manager.run():
                await first_round([downstream.checked, checks.checked], stop.asked)
                server = HttpServer(web_app.app(manager, pages, settings.max_body, guard.gate))
                for listener in sockets:
                    http_sockets.start(listener)
                pages.ready = True
                address = f"{settings.host}:{settings.port}"
                gc_tuning.as_usual()
                deferred_models.as_usual()
                compiled_texts.end()
                log.info("ready", address=address, tools=[tool.name for tool in surface.tools])
                serving = asyncio.create_task(server.serve(sockets))
                await stop.asked.wait()
                pages.ready = False
                engine.stop_accepting()
                await drain(metrics.idle, stop.insisted, partial(_end, engine))
                server.end()
                await asyncio.wait([serving], timeout=LAST_WORDS)
            await serving  # the event streams of sessions ended with the manager


async def _end(engine: Engine) -> None:
    leave_in_time(clean=_clean)
    await engine.abort()


def _clean() -> None:
    """Remove the configuration, as `home` does."""
    shutil.rmtree(os.environ["FAST_AGENT_HOME"], ignore_errors=True)
