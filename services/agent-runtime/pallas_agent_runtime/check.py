"""`pallas --check`: everything that would stop the start, with nothing started: no registry, no service, no server.

Each agent is loaded in a process of its own, as it would be served: its module is the user's code, and runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pallas_agent_runtime import prepare, serve
from pallas_agent_runtime.local import ports, supervisor
from pallas_agent_runtime.local.programs import Member
from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.fleet import fastagent_files
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.problems import Problem, Refused, refuse_errors
from pallas_contract.project import availability

OK = 0
WORLD = 1
INPUT = 2
TIMEOUT = 300.0
"""Seconds for the import of one agent's code on a busy machine."""


def agent(path: Path, name: str) -> list[Problem]:
    """Load agent `name` of the fleet file at `path` as it would be served; return its warnings.

    Raises:
        Refused: with every problem of the first stage that found any.
    """
    prepared = prepare.prepare(path, name, os.environ, Path(names.SECRETS_DIR))
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


def fleet(path: Path, environ: Mapping[str, str], *, allow_plain_secrets: bool = False) -> int:
    """Check the fleet file at `path` and each of its agents; print every problem once. Return the exit code.

    What `pallas-gen validate` refuses of a project is refused here by the same rules, but what only containers have.
    """
    try:
        examined = supervisor.examine(path.absolute(), environ, allow_plain_secrets=allow_plain_secrets)
    except Refused as refused:
        _print(map(str, refused.problems))
        return INPUT
    busy = ports.taken(examined.members, examined.tree, str(path.absolute()))
    refused_files = {problem.where.file for problem in examined.problems if problem.level == "error"}
    agents = _loadable(examined.fleet, path.name, refused_files)
    with ThreadPoolExecutor(os.process_cpu_count() or 1) as pool:
        results = list(pool.map(_checked, (member for member in examined.members if member.name in agents)))
    blocks = [
        *map(str, sorted([*examined.problems, *busy])),
        *(block for _, text in results for block in _blocks(text)),
    ]
    _print(dict.fromkeys(blocks))
    # as the start would end: a port is no matter of the files
    code = max([INPUT if refused_files else WORLD if busy else OK, *(code for code, _ in results)])
    if code == OK:
        sys.stdout.write(f"{path}: {len(agents)} agent{'s' if len(agents) != 1 else ''} can start\n")
    return code


def _loadable(resolved: ResolvedFleet, file: str, refused_files: Set[str]) -> frozenset[str]:
    """Return the agents that are worth loading: fast-agent would only say again what is wrong with the others."""
    if refused_files & {file, *fastagent_files.CONFIG, *fastagent_files.SECRETS}:
        return frozenset()
    agents = set()
    for name, agent in resolved.agents.items():
        module = (agent.module or "").replace(".", "/")
        if not refused_files & {agent.card, f"{module}.py", f"{module}/__init__.py"}:
            agents.add(name)
    return frozenset(agents)


def _checked(member: Member) -> tuple[int, str]:
    """Return exit code and stderr of the check of one agent."""
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and module
            [*member.command, "--check"],
            check=False,
            cwd=member.cwd,
            env=dict(member.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return WORLD, f"{member.name}: its code was still being imported after {TIMEOUT:.0f} s\n"
    if done.returncode in (OK, INPUT):
        return done.returncode, done.stderr
    return WORLD, done.stderr or f"{member.name}: the check ended with {done.returncode}\n"


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
