"""The files of the project folder that reach a cluster in ConfigMaps, and reasons why one cannot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Refused, Where
from pallas_gen.plan import Plan
from pallas_gen.project import contents

LIMIT = 512 * 1024
"""Bytes of code. A ConfigMap holds a MiB, and so does Helm's record of a release, which has the code in it three times,
compressed."""

WHOLE = 960 * 1024
"""Bytes of what one ConfigMap holds without code: the keys take some of its MiB, and what the chart adds."""

# Kubernetes allows these in the keys of a ConfigMap; `/` becomes `.`
_FIT = re.compile(r"[A-Za-z0-9._/-]+")
_NOT_CODE = ("__pycache__", "node_modules")
_GENERATED = ("Dockerfile.fleet", "compose.override.yaml")
_SPLIT = "make two fleets of it"
_UNLOCK = "take it out of this folder: the registry then compares the fleet with nothing"
_BAKE = "bake the code into an image: `pallas-gen image`, then `image: NAME` in the fleet file"


@dataclass(frozen=True, slots=True)
class Delivery:
    """Texts by path: what all read, what only agents and services need, and what the registry alone does."""

    config: dict[str, str] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)
    lock: dict[str, str] = field(default_factory=dict)

    @property
    def all(self) -> dict[str, str]:
        """Return every text, in whatever ConfigMap it is."""
        return self.config | self.code | self.lock


def read(folder: Path, plan: Plan) -> Delivery:
    """Read the files of the project; its code only where the plan mounts it, and what images of others get.

    Raises:
        Refused: with every file that does not fit into a ConfigMap.
    """
    config = {name: folder / name for name in plan.config}
    lock = {name: folder / name for name in plan.lock}
    mounted = any(workload.needs_code for workload in plan.workloads if workload.kind == "agent")
    entries = (*(plan.entries if mounted else ()), *plan.foreign_entries)
    omitted = {*plan.config, *plan.lock, *plan.hidden}
    code = {path: folder / path for path in contents.expanded(folder, entries, omitted)}
    problems = [*_names(config, "rename it"), *_names(code, f"rename it, or {_BAKE}"), *_size(code)]
    problems += [*_whole(config, _SPLIT), *_whole(lock, _UNLOCK)]
    texts: dict[str, str] = {}
    for name, path in (config | lock | code).items():
        try:
            # as it is, line endings too: what mounts the file itself sees them
            texts[name] = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            problems.append(
                Problem(Where(name), "is not text and cannot be delivered in a ConfigMap", _BAKE, code=Code.CONFIGMAP)
            )
    if problems:
        raise Refused(problems)
    return Delivery(*({name: texts[name] for name in files} for files in (config, code, lock)))


def key(path: str) -> str:
    """Return the ConfigMap key of a path; the chart's `pallas.key` makes the same."""
    # a key has no slash
    return path.replace("/", ".")


def _names(files: dict[str, Path], hint: str) -> Iterator[Problem]:
    names: dict[str, str] = {}
    for name in files:
        other = names.setdefault(key(name), name)
        if not _FIT.fullmatch(name):
            message = "cannot be delivered in a ConfigMap: letters, digits, `.`, `_` and `-` are all a name may have"
            yield Problem(Where(name), message, hint, code=Code.CONFIGMAP)
        elif other != name:
            message = f"cannot be told from {other} in a ConfigMap, whose keys have `.` for `/`"
            yield Problem(Where(name), message, hint, code=Code.CONFIGMAP)


def _size(code: dict[str, Path]) -> Iterator[Problem]:
    total = sum(path.stat().st_size for path in code.values())
    if total > LIMIT:
        largest = max(code, key=lambda name: code[name].stat().st_size)
        message = f"{total // 1024} KiB of files are too many for a ConfigMap (largest: {largest}); {LIMIT // 1024} fit"
        yield Problem(Where("."), message, _BAKE, code=Code.CONFIGMAP)


def _whole(files: dict[str, Path], hint: str) -> Iterator[Problem]:
    """Yield a problem where files that no image holds are more than a ConfigMap."""
    total = sum(path.stat().st_size for path in files.values())
    if total > WHOLE:
        largest = max(files, key=lambda name: files[name].stat().st_size)
        message = f"{-(-total // 1024)} KiB are too many for a ConfigMap; {WHOLE // 1024} fit"
        yield Problem(Where(largest), message, hint, code=Code.CONFIGMAP)
