"""The tools that a fleet is run with, and their versions."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pallas_contract import extras
from pallas_contract.codes import Code
from pallas_gen.doctor.finding import Finding, State
from pallas_gen.doctor.machine import Machine
from pallas_gen.running.tool import Done

_VERSION = re.compile(r"v?(\d+)\.(\d+)[^\s\"]*")


@dataclass(frozen=True, slots=True)
class _Tool:
    name: str
    command: tuple[str, ...]
    """Prints the version."""
    purpose: str
    target: str = ""
    """The target that cannot do without it."""
    oldest: tuple[int, int] = (0, 0)


_ENGINE = _Tool(
    "Docker Engine", ("docker", "version", "--format", "{{json .Server}}"), "containers", "compose", (25, 0)
)
_TOOLS = (
    _ENGINE,
    _Tool("docker compose", ("docker", "compose", "version", "--short"), "compose.yaml", "compose", (2, 24)),
    _Tool("docker buildx", ("docker", "buildx", "version"), "`pallas-gen build`", "compose"),
    _Tool("helm", ("helm", "version", "--template", "{{.Version}}"), "the chart", "helm", (3, 19)),
    _Tool("kubectl", ("kubectl", "version", "--client", "--output", "json"), "`-n NAMESPACE` of `pallas`"),
)
_EXTRAS = {"local": ("agent", "registry"), "testing": ("testing",)}
"""Extras of the distribution, and what each takes together."""
_COMMANDS = {"local": "`pallas`, which runs the fleet as processes", "testing": "tests of a fleet"}


def tools(machine: Machine, wanted: Mapping[str, State]) -> Iterator[Finding]:
    """Yield a finding per tool; `wanted` has the state of one that is not here, by the target that needs it."""
    yield Finding("machine", "ok", "Python", platform.python_version())
    for extra, parts in _EXTRAS.items():
        yield _extra(extra, extras.missing(*parts), wanted.get("processes", "note") if extra == "local" else "note")
    for tool in _TOOLS:
        yield _tool(tool, machine.run(tool.command), wanted.get(tool.target, "note"))


def _extra(extra: str, absent: list[str], state: State) -> Finding:
    name = f"extra `{extra}`"
    if not absent:
        return Finding("machine", "ok", name, "is installed")
    hint = f"pip install '{extras.DISTRIBUTION}[{extra}]', for {_COMMANDS[extra]}"
    return Finding("machine", state, name, f"not installed: {', '.join(absent)}", hint, Code.EXTRA_MISSING)


def _tool(tool: _Tool, done: Done | None, state: State) -> Finding:
    newest = f" {'.'.join(map(str, tool.oldest))} or newer" if tool.oldest[0] else ""
    install = f"install {tool.name}{newest}, for {tool.purpose}"
    if done is None:
        return Finding("machine", state, tool.name, "is not here", install, Code.TOOL_MISSING)
    text = _server_version(done.output) if tool is _ENGINE else done.output
    version = _VERSION.search(text)
    if done.code or not version:
        last = done.reason or "it has printed no version"
        if tool is _ENGINE:
            hint = "start Docker, or see with `docker info` why this user does not reach it"
            return Finding("machine", state, tool.name, f"does not answer: {last}", hint, Code.ENGINE_AWAY)
        return Finding("machine", state, tool.name, f"is not here: {last}", install, Code.TOOL_MISSING)
    if (int(version[1]), int(version[2])) < tool.oldest:
        # one that is too old is in the way of its target alone
        older: State = "error" if state == "error" else "warning"
        return Finding("machine", older, tool.name, f"is {version[0]}, too old", install, Code.TOOL_TOO_OLD)
    return Finding("machine", "ok", tool.name, version[0].removeprefix("v"))


def _server_version(output: str) -> str:
    """Return the version of the engine in what docker prints of its server; empty where that is away."""
    try:
        return str(json.loads(output)["Version"])
    except (ValueError, TypeError, KeyError):
        return ""
