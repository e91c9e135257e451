"""The containers of a compose project, asked of docker -> problems: where they are not what the plan says."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from pallas_contract.codes import Code
from pallas_contract.launch import compose_containers
from pallas_contract.launch.compose_containers import PROJECT_LABEL
from pallas_contract.problems import Problem, Where
from pallas_gen.plan import Plan, Workload
from pallas_gen.running import differences, grants, overrides
from pallas_gen.running.differences import Running, Shape
from pallas_gen.running.overrides import Files
from pallas_gen.running.tool import Run
from pallas_gen.targets.compose import render
from pallas_gen.targets.observed import TARGET_VARIABLES

Tree = Mapping[str, Any]
_LABELS = "com.docker.compose"
_UP = "`docker compose up --wait` starts it"
_ANEW = "`docker compose up --wait` makes it anew"
_BY_HAND = "`docker compose up --wait --force-recreate` makes it anew"


class NoAnswer(Exception):
    """A tool is not here, or has failed; the text is for the user."""


def problems(plan: Plan, folder: Path, environ: Mapping[str, str], run: Run) -> Iterator[Problem]:
    """Yield everything in which the containers of the fleet's project differ from the plan.

    `folder` is that of the compose file, whose `.env` may name the project.

    Raises:
        NoAnswer: docker is not here, or refuses.
        render.NoProjectName: no compose project can have the fleet's name.
    """
    project = compose_containers.project_name(render.project_name(plan.name), folder, environ)
    place = f"compose project {project}"
    containers = _containers(project, run)
    if not containers:
        yield Problem(Where(place), "has no containers here", _UP, code=Code.NOT_RUNNING)
        return
    images = _images(containers, plan, run)
    by_host: dict[str, list[Tree]] = {}
    for container in containers:
        by_host.setdefault(_label(container, "service"), []).append(container)
    planned = {workload.host: workload for workload in plan.workloads}
    services = render.services(plan, PurePosixPath())
    of_plan = [(entry, planned[host], services[host]) for host in by_host.keys() & planned for entry in by_host[host]]
    root = grants.root(of_plan, os.path.abspath(folder))
    running = {
        host: _running([_shape(entry, planned[host], images, root) for entry in entries], entries)
        for host, entries in by_host.items()
        if host in planned
    }
    networks = render.networks_of(plan)
    wanted = {
        host: (
            _planned(workload, networks[host], project, grants.planned(services[host], workload, project, root)),
            workload.replicas,
        )
        for host, workload in planned.items()
    }
    different = list(differences.problems(wanted, running, place=place, start=_UP, anew=_BY_HAND))
    files = _files(by_host, run)
    yield from overrides.judged(
        different,
        {host: files[_label(entries[0], "project.config_files")] for host, entries in by_host.items()},
        {
            host: [(_label(entry, "config-hash"), _networks(entry)) for entry in entries]
            for host, entries in by_host.items()
        },
    )
    yield from _extra(by_host, planned, place)
    named = {problem.where.field.partition(".")[0] for problem in different}
    others = {host: entries for host, entries in by_host.items() if host in planned and host not in named}
    yield from _outdated(others, images, place, files)


def _containers(project: str, run: Run) -> list[Tree]:
    """Return the containers of the project's services, as `docker inspect` has them, without those of `run`."""
    words = ["docker", "ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={PROJECT_LABEL}={project}"]
    ids = _output(words, run).split()
    # one that has gone since it was listed ends the command with an error, and the others are in its output
    inspected = _parsed(run, ["docker", "inspect", *ids]) if ids else []
    ours = [container for container in inspected if _label(container, "oneoff") != "True"]
    return sorted(ours, key=lambda container: str(container["Name"]))


def _images(containers: Iterable[Tree], plan: Plan, run: Run) -> dict[str, Tree]:
    """Return the images that containers run by their ids, and those of the plan that are here by their names."""
    ids = sorted({str(container["Image"]) for container in containers})
    wanted = sorted({workload.image for workload in plan.workloads})
    images: dict[str, Tree] = {str(image["Id"]): image for image in _parsed(run, ["docker", "image", "inspect", *ids])}
    for name in wanted:
        for image in _parsed(run, ["docker", "image", "inspect", name]):
            images[name] = image
    return images


def _running(shapes: Sequence[Shape], containers: Sequence[Tree]) -> Running:
    states = [str(container["State"]["Status"]) for container in containers]
    other = next((state for state in states if state != "running"), "")
    return Running(tuple(dict.fromkeys(shapes)), states.count("running"), other)


def _planned(workload: Workload, networks: Sequence[str], project: str, granted: Mapping[str, Any]) -> Shape:
    """Return how compose.yaml says that a program runs."""
    return Shape(
        image=workload.image,
        command=(*(workload.foreign.entrypoint if workload.foreign else ()), *workload.command),
        variables=tuple(sorted(workload.env.keys() - TARGET_VARIABLES)),
        networks=tuple(sorted(f"{project}_{network}" for network in networks or ["default"])),
        **granted,
    )


def _shape(container: Tree, workload: Workload, images: Mapping[str, Tree], root: str) -> Shape:
    """Return how a container runs, without what its image says by itself."""
    config = container["Config"]
    of_image = images.get(str(container["Image"]), {}).get("Config")
    # of an image that is gone nobody knows what it brought along
    inherited = _names(of_image or config) - workload.env.keys()
    return Shape(
        image=config["Image"],
        command=_command(config, workload, of_image),
        variables=tuple(sorted(_names(config) - inherited - TARGET_VARIABLES)),
        networks=tuple(_networks(container)),
        read_only=bool(container["HostConfig"]["ReadonlyRootfs"]),
        **grants.actual(container, root),
    )


def _command(config: Tree, workload: Workload, image: Tree | None) -> tuple[str, ...]:
    """Return the command as the plan has it, where that comes to the same in this image; else as it runs."""
    entrypoint = tuple(workload.foreign.entrypoint) if workload.foreign else ()
    if image is None:
        return (*entrypoint, *workload.command)
    # an entrypoint of its own makes Docker forget the image's command
    whole = (
        entrypoint or tuple(image.get("Entrypoint") or ()),
        tuple(workload.command) or (() if entrypoint else tuple(image.get("Cmd") or ())),
    )
    actual = (tuple(config["Entrypoint"] or ()), tuple(config["Cmd"] or ()))
    return (*entrypoint, *workload.command) if actual == whole else (*actual[0], *actual[1])


def _names(config: Tree) -> set[str]:
    return {variable.partition("=")[0] for variable in config.get("Env") or ()}


def _extra(by_host: Mapping[str, Sequence[Tree]], planned: Mapping[str, Workload], place: str) -> Iterator[Problem]:
    for host in sorted(by_host.keys() - planned.keys()):
        hint = "`docker compose up --remove-orphans` removes it"
        if any(f"{render.LABEL}.kind" in container["Config"]["Labels"] for container in by_host[host]):
            yield Problem(Where(place, field=host), "is not in the plan", hint, code=Code.RUNNING_DIFFERS)
        else:  # one that the user has added beside the fleet
            message = "is not in the plan, and not the kit's"
            hint = f"where no compose file of yours has it, {hint}"
            yield Problem(Where(place, field=host), message, hint, "warning", code=Code.RUNNING_DIFFERS)


def _outdated(
    by_host: Mapping[str, Sequence[Tree]], images: Mapping[str, Tree], place: str, files: Mapping[str, Files]
) -> Iterator[Problem]:
    """Yield a problem per program that `up` would make anew, though it is in all else as planned."""
    for host, containers in sorted(by_host.items()):
        for container in containers:
            image = str(container["Config"]["Image"])
            current = images.get(image)
            made_from = files[_label(container, "project.config_files")]
            if current and current["Id"] != container["Image"]:
                message = f"runs an older {image} than is here"
            elif made_from.hashes.get(host, "") not in ("", _label(container, "config-hash")):
                message = f"was made before {made_from.shown} was changed"
            else:
                continue
            yield Problem(Where(place, field=host), message, _ANEW, code=Code.RUNNING_DIFFERS)
            break


def _files(by_host: Mapping[str, Sequence[Tree]], run: Run) -> dict[str, Files]:
    """Return the compose files that the containers were made from, by the label that names them."""
    containers = [container for entries in by_host.values() for container in entries]
    labels = {_label(container, "project.config_files"): _label(container, "project") for container in containers}
    return {names: Files(names, project, run) for names, project in labels.items()}


def _networks(container: Tree) -> list[str]:
    return sorted(container["NetworkSettings"]["Networks"])


def _label(container: Tree, name: str) -> str:
    return str((container["Config"]["Labels"] or {}).get(f"{_LABELS}.{name}", ""))


def _output(command: Sequence[str], run: Run) -> str:
    done = run(command)
    if done is None:
        raise NoAnswer("docker is not here")
    if done.code:
        raise NoAnswer(f"docker does not answer: {done.reason}")
    return done.output


def _parsed(run: Run, command: Sequence[str]) -> list[Tree]:
    """Return the objects that docker prints: an empty list where it knows none of them, and ends with an error."""
    done = run(command)
    try:
        objects = json.loads(done.output) if done else None
    except ValueError:
        objects = None
    if not isinstance(objects, list):
        reason = done.reason if done else "it is gone"
        raise NoAnswer(f"docker does not answer `{' '.join(command[:3])}`: {reason}")
    return objects
