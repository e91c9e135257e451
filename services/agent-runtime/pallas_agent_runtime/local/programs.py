"""Fleet -> the processes to run: command, environment, gates, in start order. Reads secret files, starts nothing."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pallas_agent_runtime.local import guardian
from pallas_contract import limited_file, names
from pallas_contract.codes import Code
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.launch import addresses, secret_files, start_order
from pallas_contract.launch.program import Program, programs
from pallas_contract.problems import Problem, refuse_errors

_LONGEST = 128 * 1024
"""Bytes of a variable with its name, as Linux takes it (execve(2), MAX_ARG_STRLEN)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member(Program):
    """A program as one process. Its `env` is the whole environment, with secrets, and its `command` the whole command.

    `stage` is the start order, and backwards the stop order: 0 is services and registry, then sub-agents, last
    top-level agents and the gateway.
    """

    stage: int
    cwd: Path
    url: str
    """What people open."""

    @property
    def place(self) -> tuple[str, ...]:
        """Path in agents.yaml of the port this member listens on."""
        if self.kind == "registry":
            return ("registry_port",)
        return ("gateway", "port") if self.kind == "gateway" else (f"{self.kind}s", self.name, "port")


def members(fleet: ResolvedFleet, tree: Source, config: Path, environ: Mapping[str, str]) -> list[Member]:
    """Return the members of `fleet` in start order; `config` is the absolute path of agents.yaml.

    Raises:
        Refused: a secret file cannot be read.
    """
    folder = config.parent
    run = environ.get(guardian.RUN)
    homes = environ.get(names.ENV_HOME)
    base = {
        # People read this terminal; who collects logs says PALLAS_LOG_FORMAT=json.
        names.ENV_LOG_FORMAT: "text",
        **environ,
        names.ENV_AGENTS_CONFIG: str(config),
        "PYTHONUNBUFFERED": "1",
    }
    # A service is the user's own program; an agent finds the user's code itself, where it cannot shadow ours.
    code = {"PYTHONPATH": os.pathsep.join(filter(None, (str(folder), environ.get("PYTHONPATH"))))}
    secrets, problems = _secrets(fleet, tree, folder)
    refuse_errors(problems)
    stages = _stages(fleet)
    members = []
    for program in programs(fleet, "local"):
        service = fleet.services.get(program.name)
        imports = code if service and service.module else {}
        env = {**base, **program.env, **imports, **secrets.get(program.name, {})}
        if run:
            env[guardian.RUN] = f"{run}/{program.name}"
        env.pop(names.ENV_HOME, None)
        if homes and program.kind == "agent":
            env[names.ENV_HOME] = str(Path(homes, program.name))
        port = int(program.env[names.ENV_BIND].rpartition(":")[2])
        # An agent reads the `.env` of the folder that `pallas` was started in, and goes to the project by itself.
        cwd = Path.cwd() if program.kind == "agent" else folder
        ours = () if service and service.image else (sys.executable,)
        values = program.values() | {"command": (*ours, *program.command), "env": env}
        url = f"http://{fleet.host}:{port}{_path(fleet, program)}"
        members.append(Member(**values, stage=stages.get(program.name, 0), cwd=cwd, url=url))
    return sorted(members, key=lambda member: member.stage)


def registry_url(fleet_members: Iterable[Member]) -> str:
    """Return the URL at which the registry answers on this machine; empty where there is none."""
    urls = [member.health_url for member in fleet_members if member.kind == "registry"]
    return urls[0].removesuffix(names.READY_PATH) if urls else ""


def _path(fleet: ResolvedFleet, program: Program) -> str:
    """Return the path that people open."""
    if program.kind in ("registry", "gateway"):
        return ""
    if program.kind == "service":
        return urlsplit(addresses.service_url(fleet, program.name, "local")).path
    return names.MCP_PATH


def _stages(fleet: ResolvedFleet) -> dict[str, int]:
    """Return agent -> stage: sub-agents by the waves of their dependencies, top-level agents last (seed 001).

    With these the gateway, so that it is the first to stop: but for those who call others through it.
    """
    waves = start_order.waves(fleet)
    below = start_order.subagents(fleet)
    wave_of = {name: index for index, wave in enumerate(waves) for name in wave}
    stages = {name: wave_of[name] + 1 if name in below else len(waves) + 1 for name in fleet.agents}
    through = [stages[name] for name, agent in fleet.agents.items() if any(map(fleet.is_through, agent.depends_on))]
    return stages | {names.GATEWAY: min(through, default=len(waves) + 1)}


def _secrets(fleet: ResolvedFleet, tree: Source, folder: Path) -> tuple[dict[str, dict[str, str]], list[Problem]]:
    """Return the values of all secret variables, by member and variable; a container gets them from /run/secrets.

    The gateway reads its tokens by itself: its files are only looked at, before anything starts.
    """
    values: dict[str, dict[str, str]] = {}
    problems = []
    members = [(name, secret_files.of_agent(fleet, name)) for name in fleet.agents]
    members += [(name, secret_files.of_service(fleet, name)) for name in fleet.services]
    members.append((names.GATEWAY, secret_files.of_gateway(fleet)))
    for name, secret in ((name, secret) for name, secrets in members for secret in secrets):
        is_variable = secret.is_variable and name != names.GATEWAY
        try:
            text = limited_file.text(folder / secret.file)
            if "\0" in text:
                raise ValueError
            if is_variable and len(f"{secret.target}={text}".encode()) >= _LONGEST:
                raise OSError(errno.E2BIG, f"larger than {_LONGEST >> 10} KiB, the most that a variable may have")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text, or has a NUL in it"
            message = f"secret file {secret.file} cannot be read: {reason}"
            if isinstance(error, FileNotFoundError):
                message = f"there is no file {secret.file}"
            value = f" with the value of {secret.target}" if is_variable else ""
            hint = f"create it{value}, readable for you only"
            problems.append(tree.problem(*secret.place, message=message, hint=hint, code=Code.SECRET_FILE))
        else:
            if is_variable:  # a token that is only compared is none: the agent reads it by itself
                values.setdefault(name, {})[secret.target] = text.removesuffix("\n")
    return values, problems
