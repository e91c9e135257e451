"""Fleet -> the processes to run: command, environment, gates, in start order. Reads secret files, starts nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pallas_agent_runtime.local import guardian
from pallas_contract import names
from pallas_contract.fleet.base import SecretFile
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.launch import addresses, credentials, program, start_order
from pallas_contract.problems import Problem, refuse_errors

Kind = Literal["service", "registry", "agent"]


@dataclass(frozen=True, slots=True)
class Member:
    """One process of the fleet. `env` is its whole environment; it may hold secrets, so it stays out of `repr`."""

    name: str
    kind: Kind
    stage: int
    """Start order, and backwards the stop order: 0 is services and registry, then sub-agents, last top-level agents."""
    command: tuple[str, ...]
    cwd: Path
    url: str
    """What people open."""
    probe_url: str
    """What tells that it is ready; the same question as the healthcheck of its container."""
    needs: frozenset[str] = frozenset()
    """Members that must be ready, or given up, before this one starts."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def place(self) -> tuple[str, ...]:
        """Path in agents.yaml of the port this member listens on."""
        return ("registry_port",) if self.kind == "registry" else (f"{self.kind}s", self.name, "port")


def members(fleet: ResolvedFleet, tree: Source, config: Path, environ: Mapping[str, str]) -> list[Member]:
    """The members of `fleet` in start order; `config` is the absolute path of agents.yaml.

    Raises:
        Refused: a secret file cannot be read.
    """
    folder = config.parent
    run = environ.get(guardian.RUN)
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

    def member(name: str, kind: Kind, stage: int, arguments: list[str], env: Mapping[str, str], path: str) -> Member:
        port = int(env[names.ENV_BIND].rpartition(":")[2])
        probe = addresses.health_url(fleet, name, "local") if kind != "registry" else _registry_probe(fleet)
        return Member(
            name=name,
            kind=kind,
            stage=stage,
            command=(sys.executable, *arguments),
            cwd=folder,
            url=f"http://{fleet.host}:{port}{path}",
            probe_url=probe,
            needs=frozenset(fleet.agents[name].required if name in fleet.agents else ()),
            env={**base, **env, **secrets.get(name, {}), **({guardian.RUN: f"{run}/{name}"} if run else {})},
        )

    found = [
        member(names.REGISTRY, "registry", 0, program.registry_command(), program.registry_env(fleet, "local"), "")
    ]
    for name, service in fleet.services.items():
        path = names.MCP_PATH if service.provides == "mcp" else "/v1"
        env = program.service_env(fleet, name, "local") | code
        found.append(member(name, "service", 0, program.service_command(fleet, name), env, path))
    for name, stage in _stages(fleet).items():
        env = program.agent_env(fleet, name, "local")
        found.append(member(name, "agent", stage, program.agent_command(name), env, names.MCP_PATH))
    return sorted(found, key=lambda one: one.stage)


def _stages(fleet: ResolvedFleet) -> dict[str, int]:
    """Sub-agents by the waves of their dependencies, top-level agents after all of them (seed 001)."""
    waves = start_order.waves(fleet)
    below = start_order.subagents(fleet)
    wave_of = {name: index for index, wave in enumerate(waves) for name in wave}
    return {name: wave_of[name] + 1 if name in below else len(waves) + 1 for name in fleet.agents}


def _registry_probe(fleet: ResolvedFleet) -> str:
    return f"http://{addresses.LOOPBACK}:{fleet.registry_port}/readyz"


def _secrets(fleet: ResolvedFleet, tree: Source, folder: Path) -> tuple[dict[str, dict[str, str]], list[Problem]]:
    """The values of all secret files, by member and variable; a container gets them from /run/secrets."""
    values: dict[str, dict[str, str]] = {}
    problems = []
    for place, name, key, secret in _secret_files(fleet):
        try:
            text = (folder / secret.file).read_text(encoding="utf-8")
            if "\0" in text:
                raise ValueError
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text, or has a NUL in it"
            message = f"secret file {secret.file} cannot be read: {reason}"
            hint = f"create it{f' with the value of {key}' if key.isidentifier() else ''}, readable for you only"
            problems.append(tree.problem(*place, message=message, hint=hint))
        else:
            if key.isidentifier():  # a token that is only compared is no variable: the agent reads it by itself
                values.setdefault(name, {})[key] = text.removesuffix("\n")
    return values, problems


def _secret_files(fleet: ResolvedFleet) -> Iterator[tuple[tuple[str, ...], str, str, SecretFile]]:
    for name in fleet.agents:
        for key, secret in fleet.agents[name].secrets.items():
            owner = ("agents", name) if key in fleet.written.agents[name].secrets else ("defaults",)
            yield (*owner, "secrets", key, "file"), name, key, secret
        places = credentials.places(fleet, name)
        for key, secret in credentials.files(fleet, name).items():
            yield places[key], name, key, secret
    for name, service in fleet.services.items():
        for key, secret in service.secrets.items():
            yield ("services", name, "secrets", key, "file"), name, key, secret
