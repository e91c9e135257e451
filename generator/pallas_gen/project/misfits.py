"""Rules over what is in the project folder: what of it does not fit the fleet file, and what no container could use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.fleet.fastagent import Config
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.problems import Problem, Where
from pallas_contract.validate.entry import publish_rules
from pallas_gen.project import mounts
from pallas_gen.project.needed import Needs

CONTAINER_UID = 10001


def secrets_in_code(
    delivered: Sequence[str], locations: Mapping[str, Where], secrets: Mapping[str, str]
) -> Iterator[Problem]:
    """Refuse secret files in a folder that a container needs: it cannot be handed over and kept back at once."""
    for file, where in locations.items():
        top = next(
            (entry for entry in delivered if entry.endswith("/") and secrets.get(file, "").startswith(entry)), ""
        )
        if top:
            message = f"{file} lies in `{top}`, which a container gets as a whole"
            yield Problem(
                where,
                message,
                "move it into a folder of its own, for example secrets/",
                code=Code.SECRET_IN_CODE_FOLDER,
            )


def links(folder: Path, delivered: Sequence[str], needs: Mapping[str, Needs]) -> Iterator[Problem]:
    """Refuse links out of the folder: whoever mounts or packs it would follow them."""
    links = {path: target for need in needs.values() for path, target in need.links.items()}
    for path, target in sorted((links | dict(mounts.links_outside(folder, delivered))).items()):
        hint = "put a copy into the project folder, or what is needed into an image: `pallas-gen image`"
        yield Problem(Where(path), f"is a link out of the project folder, to {target}", hint, code=Code.LINK_OUTSIDE)


def missed(needs: Mapping[str, Needs]) -> Iterator[Problem]:
    """Yield a warning per folder that code reads as a whole, as far as one can tell, and does not get."""
    for name, need in needs.items():
        for folder, path in need.missed.items():
            message = f"names the folder {folder}, which the container of `{name}` does not get"
            hint = f"write `files: [{folder}/]` for `{name}` in agents.yaml, if its code reads what is in it"
            yield Problem(Where(path), message, hint, "warning", code=Code.FOLDER_NOT_DELIVERED)


def unmatched(fleet: ResolvedFleet, tree: Source, needs: Mapping[str, Needs]) -> Iterator[Problem]:
    """Yield a problem per pattern of `files` that names nothing."""
    for name, need in needs.items():
        section = "agents" if name in fleet.agents else "services"
        for pattern in need.unmatched:
            path = (section, name, "files")
            if name in fleet.agents and pattern not in fleet.written.agents[name].files:
                path = ("defaults", "files", "")
            message = f"there is no file {pattern} that a container may get"
            hint = "correct the pattern, which is relative to agents.yaml; secrets go into `secrets`"
            yield tree.problem(*filter(None, path), message=message, hint=hint, code=Code.UNMATCHED_FILES)


def unreadable(folder: Path, delivered: Sequence[str]) -> Iterator[Problem]:
    """Yield what the containers' user may not read or enter."""
    # by the bits for others: the user of the containers owns nothing here
    parents = {parent for name in delivered for parent in PurePosixPath(name).parents}
    for path in (folder / name for name in sorted({*map(str, parents), *delivered})):
        needed_bits = 0o005 if path.is_dir() else 0o004
        if path.exists() and path.stat().st_mode & needed_bits != needed_bits:
            name = str(path.relative_to(folder)) if path != folder else str(folder)
            hint = f"`chmod o+r{'x' if path.is_dir() else ''} {name}`"
            yield Problem(
                Where(name),
                f"cannot be read by the containers' user {CONTAINER_UID}",
                hint,
                "warning",
                code=Code.UNREADABLE_IN_CONTAINER,
            )


def missing_secrets(folder: Path, locations: Mapping[str, Where]) -> Iterator[Problem]:
    """Yield a warning per secret file that is not there yet."""
    for file, where in locations.items():
        if not os.path.isfile(folder / file):  # unlike Path.is_file, it never raises
            yield Problem(
                where,
                f"there is no file {file} yet",
                "create it before the fleet starts",
                "warning",
                code=Code.NO_SECRET_FILE,
            )


def closed_secrets(folder: Path, locations: Mapping[str, Where]) -> Iterator[Problem]:
    """Yield a warning per secret file that the containers' user may not read."""
    for file, where in locations.items():
        path = folder / file
        if os.path.isfile(path) and not path.stat().st_mode & 0o004:
            hint = f"`chown {CONTAINER_UID} {file}`, or `chmod o+r {file}` where others may read it"
            yield Problem(
                where,
                f"{file} cannot be read by the containers' user {CONTAINER_UID}",
                hint,
                "warning",
                code=Code.UNREADABLE_IN_CONTAINER,
            )


def servers(fleet: ResolvedFleet, config: Config) -> Iterator[Problem]:
    """Yield a warning per URL that no container can use, or that the fleet computes itself."""
    members = {*fleet.agents, *fleet.services}
    for name, url in config.servers.items():
        if url is None:
            continue
        where = config.url_positions[name]
        if name in members:
            hint = "the fleet computes the URL of its own members; this line can go"
            yield Problem(
                where, f"this URL is not used: `{name}` is part of the fleet", hint, "warning", code=Code.URL_NOT_USED
            )
        elif urlsplit(url).hostname in names.LOCAL_HOSTS:
            hint = "use a host name, or bring the server along under `services`"
            yield Problem(
                where,
                "in a container localhost is the container itself",
                hint,
                "warning",
                code=Code.LOCALHOST_IN_CONTAINER,
            )


def registering(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    """Yield a warning when others may register with a registry that they cannot reach."""
    if fleet.registry.registration and fleet.registry.publish is False:
        message = "only containers of this fleet reach the registry: it is not published"
        hint = "remove `publish: false`, or set it to the address to listen on"
        yield tree.problem(
            "registry", "registration", message=message, hint=hint, level="warning", code=Code.REGISTRATION_OUT_OF_REACH
        )


def telemetry(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    """Yield a warning for a collector that no container can reach."""
    if fleet.telemetry and urlsplit(fleet.telemetry.otlp_endpoint).hostname in names.LOCAL_HOSTS:
        hint = "name a collector that the containers reach; processes read $OTEL_EXPORTER_OTLP_ENDPOINT first"
        message = "in a container localhost is the container itself"
        yield tree.problem(
            "telemetry", "otlp_endpoint", message=message, hint=hint, level="warning", code=Code.LOCALHOST_IN_CONTAINER
        )


def publishing(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    """Yield a warning per agent, and for the gateway, whose publication does nothing or reaches nobody."""
    published: list[tuple[tuple[str, ...], int]] = [
        (("agents", name), agent.replicas) for name, agent in fleet.agents.items() if agent.publish
    ]
    if fleet.gateway and fleet.gateway.publish:
        published.append((("gateway",), fleet.gateway.replicas))
    for path, count in published:
        if count > 1:
            message = f"one host port cannot be shared by {count} containers: it is not published by compose"
            yield tree.problem(
                *path,
                "replicas",
                message=message,
                hint="set `publish: false` to agree",
                level="warning",
                code=Code.REPLICAS_NOT_PUBLISHED,
            )
    yield from publish_rules.unreachable(fleet, tree)
