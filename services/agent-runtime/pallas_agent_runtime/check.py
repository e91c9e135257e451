"""`pallas --check`: everything that would stop the start, with nothing started: no registry, no service, no server.

Each agent is loaded in a process of its own, as it would be served: its module is the user's code, and runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pallas_agent_runtime.local import ports, supervisor
from pallas_agent_runtime.local.programs import Member
from pallas_contract import names, reports
from pallas_contract.codes import Code
from pallas_contract.fleet import fastagent_files
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.problems import Problem, Refused, Where, refuse_errors
from pallas_contract.project import availability

if TYPE_CHECKING:
    from pallas_agent_runtime import prepare

OK = 0
WORLD = 1
INPUT = 2
TIMEOUT = 300.0
"""Seconds for the import of one agent's code on a busy machine."""


@dataclass(frozen=True, slots=True)
class Told:
    """The manner of telling problems: as text or one document, with warnings or `quiet`, with their sections or not."""

    form: Literal["text", "json", "sarif"] = "text"
    quiet: bool = False
    verbose: bool = False

    def problems(self, problems: Iterable[Problem], results: Iterable[Result], folder: Path) -> None:
        """Print the problems of a project in `folder`, and what the checks of its agents have found."""
        own = [problem for problem in problems if problem.level == "error" or not self.quiet]
        if self.form == "text":
            blocks = (block for result in results for block in _blocks(result.stderr))
            _print(dict.fromkeys([*(problem.text(verbose=self.verbose) for problem in own), *blocks]))
        else:
            located = (reports.located(problem, os.path.relpath(folder)) for problem in own)
            found = (problem for result in results for problem in result.problems)
            sys.stdout.write(reports.render(self.form, [*located, *found], tool="pallas"))

    @property
    def options(self) -> Sequence[str]:
        """The options of the check of one agent; a document is made of those of all agents."""
        form = () if self.form == "text" else ("--format", "json")
        return (*form, *(["--quiet"] if self.quiet else []), *(["--verbose"] if self.verbose else []))


@dataclass(frozen=True, slots=True)
class Result:
    """The end of the check of one member: its exit code, what it has printed, and its document if it was asked for.

    The document has its places as they are seen from the current folder.
    """

    code: int
    stderr: str
    problems: Sequence[Problem] = ()


def agent(path: Path, name: str, *, allow_plain_secrets: bool = False) -> list[Problem]:
    """Load agent `name` of the fleet file at `path` as it would be served; return its warnings.

    `allow_plain_secrets` is as in `prepare.prepare`.

    Raises:
        Refused: with every problem of the first stage that found any.
    """
    from pallas_agent_runtime import prepare, serve  # noqa: PLC0415 - where a whole fleet is checked, not in its process

    secrets = Path(names.SECRETS_DIR)
    prepared = prepare.prepare(path, name, os.environ, secrets, allow_plain_secrets=allow_plain_secrets)
    os.chdir(prepared.settings.project)  # relative paths of fast-agent's files start there
    with serve.home(prepared.config.data):
        from pallas_agent_runtime import engine as fast  # noqa: PLC0415 - reads the home

        fast.silence()
        loaded = fast.load(prepared.settings)
        references = prepared.config.data.get("model_references")
        fast.check_models(loaded, prepared.settings, prepared.default_model, references)
        fast.check_files(loaded, prepared.settings)
    configured = prepared.config.data["mcp"]["servers"].keys()
    keys = ("agents", name, "module" if prepared.settings.agent.module else "card")
    hint = f"add them to `depends_on` of `{name}`, or to `mcp: {{servers: ...}}` in fastagent.config.yaml"
    absent = ", ".join(f"`{server}`" for server in sorted(loaded.servers - configured))
    message = f"uses MCP servers that there are not: {absent}"
    refuse_errors(
        [prepared.settings.tree.problem(*keys, message=message, hint=hint, code=Code.UNKNOWN_SERVER)] if absent else []
    )
    return [*prepared.warnings, *_absent_programs(prepared, loaded.servers)]


def _absent_programs(prepared: prepare.Prepared, servers: Iterable[str]) -> Iterator[Problem]:
    """Yield a warning per server on stdio whose program is not here."""
    commands = prepared.reasons.commands
    for name in sorted(set(servers) & commands.keys()):
        yield from availability.problem(commands[name], prepared.settings.project)


def fleet(
    path: Path, environ: Mapping[str, str], *, allow_plain_secrets: bool = False, told: Told | None = None
) -> int:
    """Check the fleet file at `path`, each of its agents, and our own programs that read tokens from files.

    Every problem is printed once; returns the exit code.

    What `pallas-gen validate` refuses of a project is refused here by the same rules, but what only containers have.
    """
    told = told or Told()
    try:
        examined = supervisor.examine(path.absolute(), environ, allow_plain_secrets=allow_plain_secrets)
    except Refused as refused:
        told.problems(refused.problems, (), path.parent)
        return INPUT
    busy = ports.taken(examined.members, examined.tree, path)
    refused_files = {problem.where.file for problem in examined.problems if problem.level == "error"}
    blocked = refused_files & {path.name, *fastagent_files.CONFIG, *fastagent_files.SECRETS}
    agents = frozenset() if blocked else _loadable(examined.fleet, refused_files)
    ours = frozenset() if blocked else _with_tokens(examined.fleet)
    with ThreadPoolExecutor(os.process_cpu_count() or 1) as pool:
        check = partial(_checked, options=told.options)
        results = list(pool.map(check, (member for member in examined.members if member.name in agents | ours)))
    told.problems(sorted([*examined.problems, *busy]), results, path.parent)
    # as the start would end: a port is no matter of the files
    code = max([INPUT if refused_files else WORLD if busy else OK, *(result.code for result in results)])
    if code == OK and told.form == "text" and not told.quiet:
        sys.stdout.write(f"{path}: {len(agents)} agent{'s' if len(agents) != 1 else ''} can start\n")
    return code


def _with_tokens(resolved: ResolvedFleet) -> frozenset[str]:
    """Return those of our own programs that read tokens from files: what cannot be one stops their start."""
    registry = {names.REGISTRY} if resolved.registry.registration else set()
    return frozenset(registry | ({names.GATEWAY} if resolved.gateway else set()))


def _loadable(resolved: ResolvedFleet, refused_files: Set[str]) -> frozenset[str]:
    """Return the agents that are worth loading: fast-agent would only say again what is wrong with the others."""
    agents = set()
    for name, agent in resolved.agents.items():
        module = (agent.module or "").replace(".", "/")
        if not refused_files & {agent.card, f"{module}.py", f"{module}/__init__.py"}:
            agents.add(name)
    return frozenset(agents)


def _checked(member: Member, options: Sequence[str] = ()) -> Result:
    """Check one member in a process of its own."""
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and module
            [*member.command, "--check", *options],
            check=False,
            env=dict(member.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return _failed(member, f"its code was still being imported after {TIMEOUT:.0f} s")
    if done.returncode not in (OK, INPUT):
        return _failed(member, f"the check ended with {done.returncode}", done.stderr)
    # the user's code may have printed something before
    start = done.stdout.rfind('{\n  "errors"') if "--format" in options else -1
    return Result(done.returncode, done.stderr, reports.parse(done.stdout[start:]) if start >= 0 else ())


def _failed(member: Member, reason: str, stderr: str = "") -> Result:
    """Return the result of a check that has come to no end of its own."""
    file = os.path.relpath(member.env.get(names.ENV_AGENTS_CONFIG, names.AGENTS_FILE))
    where = Where(file, field=f"agents.{member.name}" if member.kind == "agent" else member.name)
    return Result(
        WORLD, stderr or f"{member.name}: {reason}\n", (Problem(where, reason, stderr, code=Code.CODE_FAILS),)
    )


def _blocks(text: str) -> Iterator[str]:
    """Yield each problem of a text with the indented lines that belong to it."""
    block: list[str] = []
    for line in text.splitlines():
        if block and not line.startswith("    "):
            yield "\n".join(block)
            block = []
        block.append(line)
    if block:
        yield "\n".join(block)


def _print(blocks: Iterable[str]) -> None:
    for block in blocks:
        sys.stderr.write(f"{block}\n")
