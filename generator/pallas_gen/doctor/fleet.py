"""The project of a fleet on this machine: keys, ports, images, host names, and the fleet where it runs."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.documents import reason, server_json
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.launch import addresses, compose_containers, listeners, owner, secret_files
from pallas_contract.launch.compose_containers import Stack
from pallas_contract.launch.program import Program, programs
from pallas_contract.problems import Problem
from pallas_contract.project import dotenv_file
from pallas_gen import egress
from pallas_gen.comparison import side
from pallas_gen.doctor.finding import Finding, State
from pallas_gen.doctor.machine import Machine
from pallas_gen.images import docker
from pallas_gen.plan import Plan
from pallas_gen.project import env_example
from pallas_gen.project.load import Loaded
from pallas_gen.targets import compose
from pallas_gen.targets.compose import render

_STATES: Mapping[str, State] = {"ok": "ok", "starting": "note", "unknown": "note", "error": "error"}
"""State of an agent -> how it is to be taken; all others are warnings."""


def keys(loaded: Loaded, machine: Machine) -> Iterator[Finding]:
    """Yield a finding per variable and secret that is there, by name; what is missing is a problem of the project."""
    dotenv = dotenv_file.keys(loaded.folder / names.DOTENV_FILE)
    for name in sorted({name for name, _ in env_example.references(loaded.fleet, loaded.config)}):
        if name in dotenv:
            yield Finding("keys", "ok", name, f"is set in {names.DOTENV_FILE}")
        elif name in machine.environ:
            yield Finding("keys", "ok", name, "is set in the environment; containers get it from .env alone")
    for secret in sorted({(secret.target, secret.file) for secret in secret_files.of_fleet(loaded.fleet)}):
        if (loaded.folder / secret[1]).is_file():
            yield Finding("keys", "ok", secret[0], f"is the file {secret[1]}")


def ports(
    loaded: Loaded, tree: Source, path: Path, machine: Machine, *, targets: Collection[str] = ()
) -> Iterator[Finding]:
    """Yield a finding per port that somebody has, and one for all that are free or this fleet's own.

    Where `targets` are named, the ports are those that these take on this machine.
    """
    free = []
    own = []
    for program in _listening(loaded.fleet, targets):
        host, _, number = program.env[names.ENV_BIND].rpartition(":")
        refusal = machine.refusal(host.strip("[]"), int(number))
        if not refusal:
            free.append(number)
        elif _is_own(int(number), loaded, path, machine):
            own.append(number)
        else:
            yield Finding.of("ports", _taken(program, refusal, tree, machine))
    if free:
        yield Finding("ports", "ok", ", ".join(free), "free")
    if own:
        yield Finding("ports", "ok", ", ".join(own), "this fleet runs there")


def _listening(fleet: ResolvedFleet, targets: Collection[str]) -> list[Program]:
    """Return the programs that have ports of this machine: as processes all, in compose what is published."""
    every = programs(fleet, "local")
    if not targets or "processes" in targets:
        return every
    return [program for program in every if _is_published(fleet, program)] if "compose" in targets else []


def _is_published(fleet: ResolvedFleet, program: Program) -> bool:
    if program.kind == "agent":
        agent = fleet.agents[program.name]
        return bool(agent.publish) and agent.replicas == 1
    if program.kind == "gateway":
        return bool(fleet.gateway and fleet.gateway.publish)
    return program.kind == "registry" and bool(fleet.registry.publish)


def _is_own(port: int, loaded: Loaded, path: Path, machine: Machine) -> bool:
    """Return whether the processes of this fleet have a port, or the containers of its compose project."""
    if listeners.all_of(machine.listeners(port), path):
        return True
    try:
        name = render.project_name(loaded.fleet.name)
    except render.NoProjectName:
        return False
    project = compose_containers.project_name(name, loaded.folder, machine.environ)
    labels = (f"label={compose_containers.PROJECT_LABEL}={project}", f"publish={port}")
    done = machine.run(compose_containers.listing(*labels))
    if done is None or done.code or not done.output.strip():
        return False
    return compose_containers.other_file(done.output, loaded.folder / compose.FILE) is None


def _taken(program: Program, refusal: str, tree: Source, machine: Machine) -> Problem:
    port = int(program.env[names.ENV_BIND].rpartition(":")[2])
    holders = machine.listeners(port)
    by = f" by {', '.join(map(str, holders))}" if holders else ""
    message = f"{program.name} cannot listen on {program.env[names.ENV_BIND]}: {refusal}{by}"
    place = _place(program)
    return tree.problem(*place, message=message, hint=listeners.remedy(port, holders), code=Code.PORT_TAKEN)


def _place(program: Program) -> tuple[str, ...]:
    if program.kind == "registry":
        return ("registry_port",)
    return ("gateway", "port") if program.kind == "gateway" else (f"{program.kind}s", program.name, "port")


def images(plan: Plan, file: Path, machine: Machine, state: State) -> Iterator[Finding]:
    """Yield a finding per image of the plan; `state` is that of one which is to be built and is not here."""
    build = shlex.join(["pallas-gen", "build", *(["-f", str(file)] if file != Path(names.AGENTS_FILE) else [])])
    for image in sorted({workload.image for workload in plan.workloads}):
        done = machine.run(docker.inspect(image))
        if done and not done.code:
            yield Finding("images", "ok", image, "is here")
        elif image in plan.own_images:
            hint = f"`{build}` makes it; where a registry has it, `docker pull {image}` fetches it"
            yield Finding("images", state, image, "is not here", hint, Code.IMAGE_MISSING)
        else:
            hint = f"`docker compose up` pulls it; `docker pull {image}` does so now"
            yield Finding("images", "note", image, "is not here", hint, Code.IMAGE_MISSING)


def hosts(loaded: Loaded, machine: Machine) -> Iterator[Finding]:
    """Yield a finding per host outside of the fleet that has no address here, and one for all that have."""
    wanted = sorted(_outside(loaded))
    if not wanted:
        return
    if proxy := next((name for name in ("HTTPS_PROXY", "https_proxy") if machine.environ.get(name)), ""):
        yield Finding("hosts", "ok", ", ".join(wanted), f"not looked up: ${proxy} does so for this machine")
        return
    unresolved = machine.unresolved(wanted)
    for host, why in sorted(unresolved.items()):
        hint = "correct the URL that names it, or this machine's DNS (/etc/resolv.conf)"
        yield Finding("hosts", "warning", host, f"has no address here: {why}", hint, Code.HOST_UNKNOWN)
    if known := [host for host in wanted if host not in unresolved]:
        yield Finding("hosts", "ok", ", ".join(known), "known to DNS")


def _outside(loaded: Loaded) -> set[str]:
    """Return the names of hosts outside of the fleet that its members call."""
    fleet = loaded.fleet
    urls = {
        url
        for name, agent in fleet.agents.items()
        for url in egress.urls(fleet, loaded.config, agent, loaded.project.definitions[name])
    }
    if fleet.telemetry:
        urls.add(fleet.telemetry.otlp_endpoint)
    return {host for url in urls if "." in (host := urlsplit(url).hostname or "") and host not in names.LOCAL_HOSTS}


def running(loaded: Loaded, path: Path, machine: Machine) -> Iterator[Finding]:
    """Yield a finding per agent as the registry of the fleet has it; a note where none answers, or another fleet's."""
    url = addresses.public_url(loaded.fleet, names.REGISTRY, loaded.fleet.registry_port)
    try:
        entries = machine.document(url)["servers"]
        if other := _other(loaded, path, url, machine):
            message = f"the registry at {url} is that of another {other}"
            yield Finding("fleet", "error", "registry", message, owner.remedy(path), Code.NOT_WELL)
            return
        yield Finding("fleet", "ok", "registry", f"answers at {url}")
        for entry in entries:
            yield _member(entry, loaded.fleet)
    except side.NoRegistry as error:
        hint = "`pallas up` or `docker compose up --wait` starts the fleet; where it runs elsewhere, that is fine"
        yield Finding("fleet", "note", "registry", str(error), hint)
    except (KeyError, TypeError, AttributeError):
        hint = "stop what answers there, or change `registry_port`"
        message = f"what answers at {url} is no registry of pallas-kit"
        yield Finding("fleet", "error", "registry", message, hint, Code.NOT_WELL)


def _other(loaded: Loaded, path: Path, url: str, machine: Machine) -> str:
    """Return which other fleet the registry at `url` is that of; nothing where it is this one's, or does not say."""
    try:
        of_registry = owner.parse(machine.services(url))
    except side.NoRegistry:  # an older one, which has no such document
        return ""

    def stacks() -> Iterator[Stack]:
        done = machine.run(compose_containers.registries())
        return compose_containers.stacks(done.output if done else "")

    return owner.other(of_registry, url, name=loaded.fleet.name, file=path, stacks=stacks)


def _member(entry: dict[str, dict[str, dict[str, str]]], fleet: ResolvedFleet) -> Finding:
    health = entry["_meta"].get(server_json.HEALTH_META, {})
    name = str(entry["server"]["name"]).rpartition("/")[2]
    status = health.get("status", "unknown")
    state = _STATES.get(status, "warning")
    if state == "ok":
        return Finding("fleet", "ok", name, status)
    message = f"{status}: {health['message']}" if health.get("message") else status
    logs = f"`pallas logs {name}` shows what it has printed"
    hint = "; ".join([*_credentials(health.get("message", ""), fleet), logs])
    return Finding("fleet", state, name, message, hint, Code.NOT_WELL)


def _credentials(message: str, fleet: ResolvedFleet) -> Iterator[str]:
    """Yield what to do about each server and agent that refuses an agent's credentials."""
    agents = {names.slug(agent) for agent in fleet.agents}
    for part in message.split(reason.SEPARATOR):
        if part.startswith(reason.REFUSED):
            for refusing in reason.reported(part, well=False).about:
                if names.slug(refusing) in agents:
                    yield f"`access` of `{refusing}` needs a token under the name of this agent (docs/access.md)"
                else:
                    yield (
                        f"the MCP server `{refusing}` refuses its credentials (HTTP 401 or 403): put them into "
                        f"`headers` or `auth` of `mcp.servers.{refusing}` in fastagent.config.yaml (docs/secrets.md)"
                    )
