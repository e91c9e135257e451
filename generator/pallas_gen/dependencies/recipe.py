"""Which image each agent and service needs beyond the kit's: what goes into it, and its name. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pallas_contract import __version__
from pallas_contract.definitions.definition import Definitions
from pallas_contract.fleet import images
from pallas_contract.fleet.fastagent import Command, Config
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_gen.dependencies import launch, requirements
from pallas_gen.dependencies.launch import Package
from pallas_gen.dependencies.requirements import Files


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that is added to the kit's agent image; empty for nothing."""

    requirements: tuple[tuple[str, str], ...] = ()
    """Files of what the code imports, by name: `requirements.Files`."""
    servers: tuple[Package, ...] = ()
    """Packages of MCP servers on stdio."""
    node: bool = False
    """Whether Node is needed: for such a package, or for a program of the project."""
    packages: tuple[str, ...] = ()
    """Debian packages."""
    locks: tuple[tuple[str, str], ...] = ()
    """Of `servers` those that are locked, by key: `server_locks.Locks`."""

    def __bool__(self) -> bool:
        return self != Recipe()

    def server_list(self) -> str:
        """Return the JSON that `bake` reads."""
        locks = dict(self.locks)
        entries = [
            {"key": package.key, "kind": package.kind, "specifier": package.specifier, "program": package.program}
            | {"extra": list(package.extra), "name": launch.package_name(package)}
            | ({"lock": json.loads(locks[package.key])} if package.key in locks else {})
            for package in self.servers
        ]
        return json.dumps({"node": self.node, "packages": entries}, indent=1) + "\n"

    def tag(self, base: str, python: str) -> str:
        """Return a tag that changes with whatever goes into an image made from `base`, itself built from `python`."""
        content = [__version__, base, self.requirements, self.server_list(), self.packages]
        content += [] if python == images.PYTHON else [python]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Needs:
    """Everything that decides about images."""

    fleet: ResolvedFleet
    config: Config
    requirements: Mapping[str, Files]
    """Files of the project by ``""``, and those that agents name, by path."""
    definitions: Mapping[str, Definitions]
    """What the code of each agent defines."""
    server_locks: Mapping[str, str] = field(default_factory=dict)
    """What is locked of the servers on stdio: `server_locks.Locks`."""


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """An image that is built for one fleet."""

    image: str
    recipe: Recipe


def built_images(needs: Needs) -> dict[str, BuiltImage]:
    """Return the image of each agent and service that needs one beyond the kit's, by its name.

    One image serves all that have no `requirements` of their own. Nothing is built where the fleet file names an image.
    """
    fleet = needs.fleet
    if fleet.written.image.agent is not None:
        return {}
    recipes = {name: _own(needs, name) for name, agent in fleet.agents.items() if not agent.image}
    shared = {name: recipe for name, recipe in recipes.items() if fleet.agents[name].requirements is None}
    code = _code(needs, "")
    common = _named(fleet, "agent", _union([code, *shared.values()]))
    result = {name: common for name, recipe in shared.items() if recipe}
    for name, recipe in recipes.items():
        if name not in shared and recipe:
            result[name] = _named(fleet, fleet.agents[name].slug, recipe)
    modules = [name for name, service in fleet.services.items() if service.module]
    return result | (dict.fromkeys(modules, common) if code else {})


def common_recipe(needs: Needs) -> Recipe:
    """Return everything that any agent of the fleet needs, for one image with the code in it."""
    return _union([_code(needs, ""), *(_own(needs, name) for name in needs.fleet.agents)])


def command_problem(command: Command) -> str:
    """Return why the package of a server's program cannot be put into an image, empty where it can."""
    if command.program not in launch.KINDS:
        return ""
    parsed = launch.parse(command.program, command.arguments)
    if parsed is None:
        return f"`{command.program}` is called with options that an image cannot be built by"
    words = (parsed[0].specifier, parsed[0].program, *parsed[0].extra)
    if any(requirements.CREDENTIALS.search(word) for word in words):
        return "a password stands in the URL of its package, and would be copied"
    return "a variable stands in the name of its package" if any("${" in word for word in words) else ""


def package_of(command: Command) -> Package | None:
    """Return the package that a server's program is started from; None where an image cannot have one."""
    parsed = None if command_problem(command) else launch.parse(command.program, command.arguments)
    return parsed[0] if parsed else None


def _own(needs: Needs, name: str) -> Recipe:
    """Return what one agent needs: of the servers those its code names, all where that cannot be read."""
    definitions = needs.definitions.get(name, Definitions())
    clear = definitions.agents and not definitions.unclear
    written = needs.config.commands
    commands = [written[server] for server in written if not clear or server in definitions.servers]
    packages = {package for command in commands if (package := package_of(command))}
    locks = needs.server_locks
    return replace(
        _code(needs, needs.fleet.agents[name].requirements or ""),
        servers=tuple(sorted(packages, key=lambda package: package.key)),
        locks=tuple(sorted((package.key, locks[package.key]) for package in packages if package.key in locks)),
        node=any(package.kind == "npm" for package in packages) or any(c.program == "node" for c in commands),
    )


def _code(needs: Needs, path: str) -> Recipe:
    """Return what code needs that has its requirements in the file at `path`."""
    files = needs.requirements.get(path, {})
    return Recipe(tuple(sorted(files.items())), packages=tuple(sorted(set(needs.fleet.image.packages))))


def _union(recipes: Iterable[Recipe]) -> Recipe:
    parts = list(recipes)
    servers = {package for recipe in parts for package in recipe.servers}
    return Recipe(
        requirements=next((recipe.requirements for recipe in parts if recipe.requirements), ()),
        servers=tuple(sorted(servers, key=lambda package: package.key)),
        node=any(recipe.node for recipe in parts),
        packages=tuple(sorted({package for recipe in parts for package in recipe.packages})),
        locks=tuple(sorted({lock for recipe in parts for lock in recipe.locks})),
    )


def _named(fleet: ResolvedFleet, name: str, recipe: Recipe) -> BuiltImage:
    project = re.sub(r"[^a-z0-9]+", "-", fleet.name.lower()).strip("-") or "fleet"
    tag = recipe.tag(fleet.image.base, fleet.image.python)
    image = images.image_name(fleet.image.names, f"{project}-{name}", tag)
    # a tag among the names is that of the kit's images: under it alone what is here would do for ever
    return BuiltImage(image if image.endswith(f":{tag}") else f"{image}-{tag}", recipe)
