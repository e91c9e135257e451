"""`pallas` without arguments: check, start in order, keep running, stop in order (seed 001, Startup Sequence).

The order is that of the generated compose file: a member starts once everything it needs is ready. The agents check
their LLM provider themselves at start, each with its own keys.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from pallas_agent_runtime.local import guardian, ports, record
from pallas_agent_runtime.local.absences import AbsenceFile
from pallas_agent_runtime.local.child import Spawn
from pallas_agent_runtime.local.condition import condition
from pallas_agent_runtime.local.console import OWN_NAME, LastingConsole, Screen
from pallas_agent_runtime.local.ports import Port
from pallas_agent_runtime.local.programs import Member, members, registry_url
from pallas_agent_runtime.local.record import Log
from pallas_agent_runtime.local.restarts import Check, Keeper, Level, Slots, Timing
from pallas_agent_runtime.local.warm.parent import WarmParent
from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.documents.reason import OK, SEPARATOR, Reason
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.launch import run_files
from pallas_contract.probe.command import check as answers
from pallas_contract.problems import Problem, Refused, refuse_errors
from pallas_contract.project import load
from pallas_contract.validate import graph_rules
from pallas_contract.validate.entry import publish_rules

DONE = 0
WORLD = 1
INPUT = 2
KILLED = 130
"""As a shell reports Ctrl-C: 128 and the number of SIGINT."""
_TICK = 0.5
"""Seconds between two looks at the members while they start, where there is a terminal."""
_FILE_WIDTH = 120


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions that members are asked while they run."""

    check: Check
    """Whether it is ready."""
    condition: Callable[[Member], Awaitable[str]]
    """How one is that is up: empty, or why it is not well."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A project as `pallas` would start it, and all that is wrong with it."""

    fleet: ResolvedFleet
    tree: Source
    members: list[Member]
    """In start order; none where a secret file cannot be read."""
    problems: list[Problem]
    """Errors and warnings, sorted."""


_RUNS_ALREADY = (
    "pallas: this fleet runs already: `pallas status` shows it, `pallas logs` its output, `pallas stop` ends it\n"
)
Following = Callable[["Supervisor", Path, Mapping[str, str], Mapping[str, Port]], Coroutine[Any, Any, None]]
"""Follows the files of a running fleet, with its environment and its ports, until cancelled."""
Beside = Callable[[], AbstractAsyncContextManager[str]]
"""What goes on beside a running fleet, in its event loop; it yields the line that tells people of it."""


def main(
    config: Path,
    following: Following | None = None,
    *,
    beside: Beside | None = None,
    allow_plain_secrets: bool = False,
) -> int:
    """Run the fleet of `config` until a signal ends it; returns the exit code.

    `allow_plain_secrets` makes warnings of the errors about secrets in plain text.
    """
    config = config.absolute()
    with guardian.watching() as run, tempfile.TemporaryDirectory(prefix="pallas-") as folder:
        absences = Path(folder, "absences.json")
        environ = os.environ | {guardian.RUN: run, names.ENV_ABSENCES: str(absences), names.ENV_HOME: folder}
        try:
            fleet_members, tree, warnings = read(config, environ, allow_plain_secrets=allow_plain_secrets)
        except Refused as refused:
            _complain(refused.problems)
            return INPUT
        _complain(warnings)
        publish = AbsenceFile(absences)
        return _run(config, environ, fleet_members, tree, publish=publish, following=following, beside=beside)


def _run(
    config: Path,
    environ: Mapping[str, str],
    fleet_members: list[Member],
    tree: Source,
    *,
    publish: AbsenceFile,
    following: Following | None,
    beside: Beside | None,
) -> int:
    with ports.held(fleet_members, tree) as (held, busy):
        if busy:
            _complain(busy)
            if run_files.holder(run_files.of(config).lock) is not None:
                sys.stderr.write(_RUNS_ALREADY)
            return WORLD
        with record.running(config, registry_url(fleet_members)) as log:
            screen = _screen(fleet_members, log)
            warm_parent = WarmParent(fleet_members, screen)
            supervisor = Supervisor(
                fleet_members,
                ports=held,
                spawn=warm_parent.spawn,
                questions=Questions(answers, condition),
                screen=screen,
                slots=Slots(os.process_cpu_count() or 1, warm_parent.forks),
                timing=Timing(),
                publish=publish,
            )
            if following:
                supervisor.following = partial(following, supervisor, config, environ, held)
            return asyncio.run(_until_signalled(supervisor, warm_parent, beside))


def read(
    config: Path, environ: Mapping[str, str], *, allow_plain_secrets: bool = False
) -> tuple[list[Member], Source, list[Problem]]:
    """Read the fleet of `config` and what lies beside it: its members in start order, the file, and the warnings.

    Raises:
        Refused: with every problem, where one is an error.
    """
    examined = examine(config, environ, allow_plain_secrets=allow_plain_secrets)
    return examined.members, examined.tree, refuse_errors(examined.problems)


def examine(config: Path, environ: Mapping[str, str], *, allow_plain_secrets: bool = False) -> Examined:
    """Check the fleet of `config`, what lies beside it and its code, by the rules of `pallas-gen validate`.

    Nothing of the user's is imported, and nothing is started.

    Raises:
        Refused: the fleet file makes no fleet.
    """
    written, problems = load.check(config, environ, allow_plain_secrets=allow_plain_secrets, elsewhere=installed)
    fleet, tree = written.fleet, written.tree
    problems += replicas(fleet, tree)
    problems += publish_rules.unreachable(fleet, tree)
    problems += graph_rules.without_process(fleet, tree)
    listed: list[Member] = []
    try:
        listed = members(fleet, tree, config, environ)
    except Refused as refused:
        problems += refused.problems
    return Examined(fleet, tree, listed, sorted(set(problems)))


def _screen(fleet_members: Sequence[Member], log: Log | None) -> Screen:
    width = None if sys.stdout.isatty() else _FILE_WIDTH
    return Screen(LastingConsole(highlight=False, width=width), [member.name for member in fleet_members], log)


def installed(module: str) -> bool:
    """Return whether the package of `module` is importable without the project folder."""
    return importlib.util.find_spec(module.partition(".")[0]) is not None


def replicas(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    """Yield a warning per agent, and for the gateway, with several replicas: with one port there is one process."""
    counts: dict[tuple[str, ...], int] = {("agents", name): agent.replicas for name, agent in fleet.agents.items()}
    counts |= {("gateway",): fleet.gateway.replicas} if fleet.gateway else {}
    for path, count in counts.items():
        if count > 1:
            message = f"{count} replicas share one port: as processes one of them runs"
            yield tree.problem(*path, "replicas", message=message, level="warning", code=Code.ONE_REPLICA)


def _complain(problems: Iterable[Problem]) -> None:
    for problem in problems:
        sys.stderr.write(f"{problem}\n")


async def _until_signalled(supervisor: Supervisor, warm_parent: WarmParent, beside: Beside | None) -> int:
    loop = asyncio.get_running_loop()
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as it is under nohup
        numbers.append(signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, supervisor.stop)
    async with warm_parent, beside() if beside else nullcontext("") as supervisor.also:
        return await supervisor.run()


class Supervisor:
    """Runs every member in a keeper of its own, and stops them the other way round."""

    def __init__(
        self,
        fleet_members: Sequence[Member],
        *,
        ports: Mapping[str, Port],
        spawn: Spawn,
        questions: Questions,
        screen: Screen,
        slots: Slots,
        timing: Timing,
        publish: Callable[[Mapping[str, Reason]], None] = lambda _: None,
    ) -> None:
        """Take the members in start order; `publish` is told, with each change, why agents are not up."""
        self._keeper = partial(
            Keeper,
            spawn=spawn,
            check=questions.check,
            slots=slots,
            reporter=screen,
            timing=timing,
            changed=self._changed,
        )
        self.keepers = {member.name: self._keeper(member, port=ports[member.name]) for member in fleet_members}
        self.following: Callable[[], Coroutine[Any, Any, None]] | None = None
        """Changes the fleet while it runs; with it the fleet goes on also where no agent is left."""
        self.also = ""
        """What people are told after the table of members."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup
        self._publish = publish
        self._condition = questions.condition
        self._screen = screen
        self._slots = slots
        self._grace = timing.grace
        self._stop = asyncio.Event()
        self._now = asyncio.Event()

    def _changed(self) -> None:
        keepers = {name: keeper for name, keeper in self.keepers.items() if keeper.member.kind == "agent"}
        self._publish({name: keeper.absence for name, keeper in keepers.items() if keeper.absence != OK})

    def stop(self) -> None:
        """Ask all to end; a second call kills them."""
        if self._stop.is_set():
            self._now.set()
        else:
            self._stop.set()

    def report(self, text: str, level: Level = "info") -> None:
        """Tell people what happens to the fleet as a whole."""
        self._screen.report(OWN_NAME, text, level)

    def add(self, member: Member, port: Port) -> None:
        """Start a member more, while the fleet runs."""
        self.keepers[member.name] = self._keeper(member, port=port)
        self._start(member.name)

    async def remove(self, name: str) -> None:
        """End a member, in the time that all have, and forget it."""
        task = self._tasks[name]
        task.cancel()
        await asyncio.wait({task}, timeout=self._grace)
        if not task.done():
            self._screen.report(name, f"did not end within {self._grace:g} s: killed", "warning")
            self.keepers[name].kill()
            await asyncio.wait({task})
        del self.keepers[name], self._tasks[name]

    def _start(self, name: str) -> None:
        self._tasks[name] = self._group.create_task(self.keepers[name].run(self.keepers))

    async def run(self) -> int:
        """Run until `stop`, or until no agent is left that could run; returns the exit code."""
        kinds = Counter(keeper.member.kind for keeper in self.keepers.values())
        counts = ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in kinds.items())
        at_once = self._slots.text(keeper.member for keeper in self.keepers.values())
        self._screen.report(OWN_NAME, f"starting {counts}, {at_once}")
        async with asyncio.TaskGroup() as group:
            self._group = group
            for name in self.keepers:
                self._start(name)
            announcing = group.create_task(self._announce())
            if self.following:
                await self._followed(group.create_task(self.following()))
            else:
                agents = [self._tasks[name] for name, keeper in self.keepers.items() if keeper.member.kind == "agent"]
                await _first(self._stop.wait(), asyncio.wait(agents))
            announcing.cancel()
            if not self._stop.is_set():
                self._screen.report(OWN_NAME, "no agent is left: stopping", "error")
            killed = await self._end(self._tasks)
        if not self._stop.is_set():
            return INPUT
        if self._now.is_set():
            return KILLED
        return WORLD if killed else DONE

    async def _followed(self, following: asyncio.Task[None]) -> None:
        await self._stop.wait()
        following.cancel()
        await asyncio.wait({following})

    async def _announce(self) -> None:
        """Print the table once every member is up or was given up waiting for."""
        with self._screen.progress(self.keepers.values()) as show:
            ticking = asyncio.create_task(_repeat(show)) if show else None
            try:
                for keeper in list(self.keepers.values()):  # one may go, or come, meanwhile
                    await keeper.settled.wait()
            finally:
                if ticking:
                    ticking.cancel()
        self._screen.table(self.keepers.values())
        late = [name for name, keeper in self.keepers.items() if keeper.state != "ready"]
        unwell = await self._unwell()
        if late or unwell:
            without = f" without {', '.join(late)}" if late else ""
            parts = {name: reason.replace(SEPARATOR, "\n    ") for name, reason in unwell.items()}
            lines = "".join(f"\n  {name} is {reason}" for name, reason in parts.items())
            text = f"up, but{without or ' not all is well'}; Ctrl-C stops all{lines}"
            self._screen.report(OWN_NAME, text, "warning")
        else:
            self._screen.report(OWN_NAME, "all up; Ctrl-C stops all")
        if self.also:
            self._screen.report(OWN_NAME, self.also)

    async def _unwell(self) -> dict[str, str]:
        """Return what each member says that is up and not well."""
        ready = [name for name, keeper in self.keepers.items() if keeper.state == "ready"]
        asking = (self._condition(self.keepers[name].member) for name in ready)
        answers = await asyncio.gather(*asking, return_exceptions=True)  # none of them ends the fleet
        words = (word if isinstance(word, str) else f"cannot be asked: {type(word).__name__}" for word in answers)
        return {name: word for name, word in zip(ready, words, strict=True) if word}

    async def _end(self, tasks: Mapping[str, asyncio.Task[None]]) -> list[str]:
        """Ask stage by stage, callers before those they call, so that calls under way can finish; then kill.

        Returns the members that had to be killed.
        """
        if self._stop.is_set():
            self._screen.report(OWN_NAME, f"stopping; again Ctrl-C kills at once, else after {self._grace:g} s")
        deadline = _time() + self._grace
        keepers = sorted(self.keepers.values(), key=_stage)  # those that came later are the last ones
        stages = [list(stage) for _, stage in groupby(keepers, _stage)]
        for stage in reversed(stages):
            ending = {tasks[keeper.member.name] for keeper in stage}
            for task in ending:
                if not task.cancelling():  # one that is ending already waits for its process, which this would end
                    task.cancel()
            await _first(self._now.wait(), asyncio.wait(ending), timeout=self._grace / len(stages))
        await _first(self._now.wait(), asyncio.wait(tasks.values()), timeout=deadline - _time())
        running = [name for name, task in tasks.items() if not task.done()]
        for name in running:
            waited = "" if self._now.is_set() else f" within {self._grace:g} s"
            self._screen.report(name, f"did not end{waited}: killed", "warning")
            self.keepers[name].kill()
        await asyncio.wait(tasks.values())
        return running


def _stage(keeper: Keeper) -> int:
    return keeper.member.stage


async def _repeat(show: Callable[[], None]) -> None:
    while True:
        show()
        await asyncio.sleep(_TICK)


def _time() -> float:
    return asyncio.get_running_loop().time()


async def _first(*waits: Coroutine[Any, Any, Any], timeout: float | None = None) -> None:
    """Wait until the first of `waits` is over, or `timeout` seconds have passed; the others are given up."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
