"""The user's code that the fleet file names: is it there?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pallas_contract.codes import Code
from pallas_contract.definitions.definition import Definition
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.launch import secret_files
from pallas_contract.problems import Problem
from pallas_contract.validate.suggestions import Suggestions, suggested

_MOST = 500
"""Files that a name is compared with."""


def missing(fleet: ResolvedFleet, tree: Source, folder: Path, elsewhere: Callable[[str], bool]) -> Iterator[Problem]:
    """Yield a problem per module, card or folder of skills that is not in the project folder.

    `elsewhere` tells whether a module is installed.
    """
    modules = [("agents", name, agent.module) for name, agent in fleet.agents.items() if agent.module]
    modules += [("services", name, service.module) for name, service in fleet.services.items() if service.module]
    suggestions = Suggestions()
    for kind, name, module in modules:
        relative = module.replace(".", "/")
        there = os.path.isfile(folder / f"{relative}.py") or os.path.isdir(
            folder / relative
        )  # unlike Path's, they never raise
        if not there and not elsewhere(module):
            create = f"create {relative}.py beside {tree.name}, or name an `image` that holds the module"
            hint = _as_file(folder, module) or _near(module, _modules(folder), suggestions) + create
            yield tree.problem(
                kind,
                name,
                "module",
                message=f"there is no module `{module}` in the project",
                hint=hint,
                code=Code.NO_MODULE,
            )
    for name, agent in fleet.agents.items():
        if agent.card and not os.path.isfile(folder / agent.card):
            cards = _in_folders(folder, (".md", ".yaml", ".yml"))
            hint = f"{_near(agent.card, cards, suggestions)}create it"
            if "\\" in agent.card:
                hint = f"write `{agent.card.replace('\\', '/')}`"
            yield tree.problem(
                "agents", name, "card", message=f"there is no file {agent.card}", hint=hint, code=Code.NO_CARD
            )
    yield from _skills(fleet, tree, folder)
    if fleet.gateway and fleet.gateway.app and not os.path.isfile(folder / fleet.gateway.app / "index.html"):
        message = f"there is no file {fleet.gateway.app.rstrip('/')}/index.html"
        hint = "create it, or correct the folder, which is relative to agents.yaml"
        yield tree.problem("gateway", "app", message=message, hint=hint, code=Code.UNMATCHED_FILES)
    if fleet.gateway and fleet.gateway.app:
        yield from _served(fleet, tree, folder, fleet.gateway.app)


def _served(fleet: ResolvedFleet, tree: Source, folder: Path, app: str) -> Iterator[Problem]:
    """Yield a problem where the application's folder, which everybody may read, is the project's or has a secret."""
    project = os.path.realpath(folder)
    top = os.path.join(os.path.realpath(folder / app), "")
    files = sorted({secret.file for secret in secret_files.of_fleet(fleet)})
    within = [file for file in files if os.path.realpath(folder / file).startswith(top)]
    message = f"has the secret {within[0]}, and everybody may read this folder" if within else ""
    if os.path.join(project, "").startswith(top):
        message = "has all of the project, and everybody may read this folder"
    if message:
        hint = "give the application a folder of its own, with nothing else in it"
        yield tree.problem("gateway", "app", message=message, hint=hint, code=Code.SERVED_SECRET)


def _as_file(folder: Path, module: str) -> str:
    """Return how to write a module that is named as its file is; empty for any other."""
    name = module.removesuffix(".py")
    is_there = name != module and os.path.isfile(folder / f"{name.replace('.', '/')}.py")
    return f"write `{name}`: a module is written without `.py`" if is_there else ""


def _modules(folder: Path) -> list[str]:
    return [path.removesuffix(".py").replace("/", ".") for path in _in_folders(folder, (".py",))]


def _near(name: str, names: Sequence[str], suggestions: Suggestions) -> str:
    """Return the question whether the nearest of `names` is meant, as the begin of a hint; empty where none is near."""
    hint = suggestions.hint(name, names)
    return f"{hint} else " if suggested(hint) else ""


def _in_folders(folder: Path, suffixes: tuple[str, ...]) -> list[str]:
    """Return the files of `folder` and of the folders in it, as paths from there, sorted; hidden ones are none."""
    paths = [path for pattern in ("*", "*/*") for path in folder.glob(pattern) if path.name.endswith(suffixes)]
    relative = (path.relative_to(folder).as_posix() for path in paths)
    return sorted(path for path in relative if not path.startswith((".", "_")))[:_MOST]


def unread(definition: Definition, is_file: Callable[[str], bool]) -> Iterator[Problem]:
    """Yield a problem per file that an agent is made from and that is not there; outside of the project none.

    `is_file` tells whether there is a file at a path from the project folder.
    """
    for file in definition.files:
        if not file.path.startswith(("/", "..", "~")) and not is_file(file.path):
            message = f"there is no file {file.path}, {file.purpose}: the agent does not start"
            hint = "create it, or correct the path; it starts from the folder of agents.yaml"
            yield Problem(file.where, message, hint, code=Code.FILE_NOT_IN_PROJECT)


def _skills(fleet: ResolvedFleet, tree: Source, folder: Path) -> Iterator[Problem]:
    owners = [(("agents", name), agent.skills) for name, agent in fleet.written.agents.items()]
    for owner, skills in [(("defaults",), fleet.written.defaults.skills), *owners]:
        for index, path in enumerate(skills or ()):
            if not os.path.isdir(folder / path):
                hint = "create it, or correct the path"
                yield tree.problem(
                    *owner, "skills", index, message=f"there is no folder {path}", hint=hint, code=Code.NO_SKILLS_FOLDER
                )
