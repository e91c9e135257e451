"""Differences that a user's own compose file makes, such as compose.override.yaml: these are meant, and no surprise."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pallas_contract.codes import Code
from pallas_contract.problems import Problem
from pallas_gen.running.tool import Run


@dataclass(frozen=True)
class Files:
    """The compose files that a container was made from, as they are now."""

    names: str
    """With commas between them, as compose writes them into a label; the first is the one that pallas-gen writes."""
    project: str
    run: Run

    @property
    def shown(self) -> str:
        """Return their paths from here."""
        return _shown(self.names.split(","))

    @property
    def overriding(self) -> str:
        """Return the paths from here of all but the first; empty where it is the only one."""
        return _shown(self.names.split(",")[1:])

    @cached_property
    def hashes(self) -> Mapping[str, str]:
        """What compose knows each service by; nothing where the files are gone or refused."""
        return self._hashes(self.names.split(","))

    @cached_property
    def _first_alone(self) -> Mapping[str, str]:
        return self._hashes(self.names.split(",")[:1])

    @cached_property
    def _networks(self) -> Mapping[str, Sequence[str]]:
        """The names of the networks of each service."""
        try:
            document = json.loads(self._config(self.names.split(","), "--format", "json"))
            names = {key: network["name"] for key, network in document["networks"].items()}
            services = document["services"].items()
            return {host: sorted(names[key] for key in service.get("networks") or ()) for host, service in services}
        except (ValueError, KeyError, TypeError, AttributeError):
            return {}

    def changes(self, host: str, digest: str) -> bool:
        """Return whether a container of `host` with the hash `digest` is as all files say, not as the first alone."""
        if not self.overriding or self.hashes.get(host) != digest:
            return False
        return self._first_alone.get(host, digest) != digest

    def has_networks(self, host: str, networks: Sequence[str]) -> bool:
        """Return whether the files say these networks: by hand a container is connected with others after its start."""
        return self._networks.get(host) == sorted(networks)

    def _hashes(self, paths: Sequence[str]) -> dict[str, str]:
        lines = [line.split() for line in self._config(paths, "--hash", "*").splitlines()]
        return {words[0]: words[1] for words in lines if len(words) == 2}

    def _config(self, paths: Sequence[str], *options: str) -> str:
        """Return what `docker compose config` prints; nothing where the files are gone or refused."""
        if not all(map(os.path.isfile, paths)):
            return ""
        files = [word for path in paths for word in ("--file", path)]
        folder = ["--project-directory", str(Path(paths[0]).parent), "--project-name", self.project]
        done = self.run(["docker", "compose", *files, *folder, "config", *options])
        return done.output if done and not done.code else ""


def judged(
    problems: Sequence[Problem],
    files: Mapping[str, Files],
    containers: Mapping[str, Sequence[tuple[str, Sequence[str]]]],
) -> Iterator[Problem]:
    """Yield the problems, as warnings those of a host whose containers are what its files say, the user's among them.

    `containers` has for each host the hash and the networks of each of its containers.
    """
    for problem in problems:
        host, _, name = problem.where.field.partition(".")
        of_host = containers.get(host, ())
        if problem.code is not Code.RUNNING_DIFFERS or not _made_by(files.get(host), host, name, of_host):
            yield problem
            continue
        overriding = files[host].overriding
        hint = (
            f"where that is not meant, take it out of {overriding}, and see that `pallas-gen verify` finds nothing; "
            "then `docker compose up --wait` makes it anew"
        )
        message = f"{problem.message}; its compose files say so, {overriding} among them"
        yield replace(problem, message=message, hint=hint, level="warning")


def _made_by(files: Files | None, host: str, name: str, containers: Sequence[tuple[str, Sequence[str]]]) -> bool:
    if files is None:
        return False
    return all(
        files.changes(host, digest) and (name != "networks" or files.has_networks(host, networks))
        for digest, networks in containers
    )


def _shown(paths: Sequence[str]) -> str:
    return ", ".join(map(os.path.relpath, paths))
