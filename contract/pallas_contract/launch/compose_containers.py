"""The containers of a compose project, which compose file made them, and for which fleet file.

Compose knows a project by its name alone. A copy of a fleet in another folder has the same name, and `up` there makes
the first one's containers anew, with the files of the copy.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pallas_contract import limited_file, names

PROJECT_LABEL = "com.docker.compose.project"
_FILES_LABEL = f"{PROJECT_LABEL}.config_files"
"""Paths of the compose files with commas between them, the overriding ones too (compose writes it)."""
_KIND_LABEL = "io.pallas-kit.kind"
_REGISTRY = "registry"
"""Kind of the one container that every stack of a fleet has, and that sees the fleet file."""
_FOREIGN = "service"
"""Kind of the containers that may have no file of the project, so that `up` elsewhere leaves them, label and all."""

_PUBLISHED = re.compile(r"(\S*):(\d+)->")
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that are all of this machine's, and one of these."""
_CONFIG = re.compile(rf"^ +{names.ENV_AGENTS_CONFIG}: (\S+)$", re.MULTILINE)
_MOUNT = re.compile(r"^ +source: (.+)\n +target: (.+)$", re.MULTILINE)
_ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?COMPOSE_PROJECT_NAME\s*=\s*(['\"]?)([\w-]*)\1\s*(?:#.*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Stack:
    """A fleet in containers: the name of its compose project, and the files it was made from that are there."""

    project: str
    files: tuple[Path, ...]
    published: frozenset[tuple[str, int]] = frozenset()
    """Addresses and ports of this machine on which its registry is published."""

    @property
    def ports(self) -> frozenset[int]:
        """Return the ports of `published`."""
        return frozenset(port for _, port in self.published)

    @property
    def fleet_file(self) -> Path | None:
        """Return the fleet file that it was written for; None where no file of it tells."""
        return next((path for file in self.files if (path := fleet_file(file))), None)


def registries() -> list[str]:
    """Return the command of docker that lists the registry of every fleet in containers here, for `stacks`."""
    form = f'{{{{.Label "{PROJECT_LABEL}"}}}}\t{{{{.Label "{_FILES_LABEL}"}}}}\t{{{{.Ports}}}}'
    return ["docker", "ps", "--all", "--format", form, "--filter", f"label={_KIND_LABEL}={_REGISTRY}"]


def stacks(listed: str) -> Iterator[Stack]:
    """Yield the fleets whose registries are `listed`, sorted by project; one whose files are gone is left out."""
    for line in sorted(set(listed.splitlines())):
        project, files, ports = [*line.split("\t"), "", ""][:3]
        paths = tuple(Path(path) for path in dict.fromkeys([files, *files.split(",")]) if os.path.isfile(path))
        if paths:
            yield Stack(project, paths, frozenset(_published(ports)))


def _published(ports: str) -> Iterator[tuple[str, int]]:
    for host, port in _PUBLISHED.findall(ports):
        address = host.strip("[]")
        yield _EVERYWHERE.get(address, address), int(port)


def fleet_file(compose: Path) -> Path | None:
    """Return the fleet file for which pallas-gen has written a compose file; None where that does not tell."""
    try:
        text = compose.read_text("utf-8", errors="replace")
    except OSError:  # another user's, who shows it to nobody, or gone since it was listed
        return None
    config = _CONFIG.search(text)
    for source, target in _MOUNT.findall(text):
        if config and _scalar(target) == _scalar(config[1]):
            return Path(os.path.normpath(compose.parent.absolute() / _scalar(source)))
    return None


def project_name(name: str, folder: Path, environ: Mapping[str, str]) -> str:
    """Return the name of the compose project in `folder` whose file says `name`.

    Compose heeds the variable COMPOSE_PROJECT_NAME more, and that one in `.env` beside the file too.
    """
    if in_environment := environ.get("COMPOSE_PROJECT_NAME"):
        return in_environment
    try:
        text = limited_file.text(folder / names.DOTENV_FILE, encoding="utf-8-sig", errors="replace")
        assigned = _ASSIGNMENT.findall(text)
    except OSError:
        return name
    return assigned[-1][1] or name if assigned else name


def _scalar(text: str) -> str:
    """Return a scalar as pallas-gen writes it: plain or as JSON, with `$` doubled."""
    try:
        value = str(json.loads(text)) if text.startswith('"') else text
    except ValueError:  # an escape of YAML's own, as in a file that was edited by hand
        value = text
    return value.replace("$$", "$")


def listing(*filters: str) -> list[str]:
    """Return the command of docker that lists who made the containers with any of the ids, or the label, in `filters`.

    Each is `id=...` or `label=KEY=VALUE`. Containers that have ended count: `up` makes these anew too.
    """
    form = f'{{{{.Label "{_KIND_LABEL}"}}}}\t{{{{.Label "{_FILES_LABEL}"}}}}'
    return ["docker", "ps", "--all", "--format", form, *(word for text in filters for word in ("--filter", text))]


def other_file(listed: str, file: Path) -> Path | None:
    """Return the compose file that made the containers `listed`, where that is there and is not `file`; else None.

    A file that is gone was moved here or thrown away: nobody would look for its containers there.
    """
    own = os.path.realpath(file)
    for line in sorted(listed.splitlines()):
        kind, _, made_by = line.partition("\t")
        paths = [made_by, *made_by.split(",")]
        if kind == _FOREIGN or own in map(os.path.realpath, paths):
            continue
        for path in paths:
            if os.path.isfile(path):
                return Path(path)
    return None
