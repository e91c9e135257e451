"""The project folder around agents.yaml: what is in it, and what in it does not fit the fleet file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.definitions.definition import Definitions
from pallas_contract.definitions.read import TextOf
from pallas_contract.fleet import fastagent_files, images
from pallas_contract.fleet.fastagent import Config
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.launch import secret_files
from pallas_contract.problems import Problem, Where, refuse_errors
from pallas_contract.project import availability, code
from pallas_contract.project import load as common
from pallas_contract.project.load import Written
from pallas_gen.dependencies import requirements, server_locks
from pallas_gen.dependencies.server_locks import Locks
from pallas_gen.plan import Project
from pallas_gen.project import misfits, mounts, needed, skills, stdio_servers
from pallas_gen.project.needed import Needs


@dataclass(frozen=True)
class Loaded:
    """Everything the generator reads: the fleet, fast-agent's configuration, facts of the folder, and warnings.

    `unreadable` are warnings too, for targets that mount the files instead of delivering what is in them.
    """

    fleet: ResolvedFleet
    config: Config
    project: Project
    folder: Path
    warnings: list[Problem]
    unreadable: list[Problem]
    absent_here: list[Problem]
    """Warnings of what processes on this machine are without, and no container."""


@dataclass(frozen=True)
class _Delivery:
    """Everything that containers get of the folder, and what is kept from them."""

    shared: tuple[str, ...]
    """Secret files of all agents."""
    secret_locations: Mapping[str, Where]
    """Secret files that the fleet file names, each with the place that does."""
    secrets: Mapping[str, str]
    """Secret files in the folder: as written -> plain path in it."""
    present: tuple[str, ...]
    """The fleet file and the configuration."""
    definitions: Mapping[str, Definitions]
    skill_folders: Mapping[str, Mapping[str, Where]]
    needs: Mapping[str, Needs]

    @property
    def hidden(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.secrets.values())))

    @property
    def delivered(self) -> list[str]:
        return sorted({*self.present, *(path for need in self.needs.values() for path in need.paths)})

    @property
    def mounted(self) -> dict[str, Where]:
        return {file: Where(file) for file in self.shared} | dict(self.secret_locations)


def load(path: Path, environ: Mapping[str, str], *, allow_plain_secrets: bool = False, relock: bool = False) -> Loaded:
    """Read agents.yaml at `path` and the files beside it.

    `allow_plain_secrets` makes warnings of the errors about secrets in plain text. `relock`: the lock of the servers is
    about to be written, and may be out of date.

    Raises:
        Refused: with every error found in any of them.
    """
    written, problems = _read(path, environ, allow_plain_secrets=allow_plain_secrets)
    fleet, folder = written.fleet, written.folder
    delivery = _delivery(written)
    project = Project(
        agents_file=written.name,
        secret_files=delivery.shared,
        hidden=delivery.hidden,
        config=delivery.present,
        lock=(names.LOCK_FILE,) if (folder / names.LOCK_FILE).is_file() else (),
        files={name: need.paths for name, need in delivery.needs.items()},
        definitions=delivery.definitions,
        requirements=_requirements(fleet, written.text_of, problems),
        server_locks=_server_locks(folder, written.config, problems, relock=relock),
    )
    problems += _of_code(written, project)
    problems += _of_members(written, delivery)
    problems += misfits.missing_secrets(folder, delivery.mounted)
    problems += misfits.secrets_in_code(delivery.delivered, delivery.secret_locations, delivery.secrets)
    mounted = _mounted(fleet, delivery)
    problems += misfits.links(folder, delivery.delivered if mounted else (), mounted)
    problems += [*misfits.unmatched(fleet, written.tree, mounted), *misfits.missed(mounted)]
    return Loaded(
        fleet=fleet,
        config=written.config,
        project=project,
        folder=folder,
        warnings=refuse_errors(problems),
        unreadable=[
            *misfits.unreadable(folder, delivery.delivered),
            *misfits.closed_secrets(folder, delivery.mounted),
        ],
        absent_here=_absent_here(written, delivery.definitions, problems),
    )


def _read(path: Path, environ: Mapping[str, str], *, allow_plain_secrets: bool) -> tuple[Written, list[Problem]]:
    """Return both files, the images named as the environment says, and the problems that lie in them alone.

    Raises:
        Refused: the fleet file makes no fleet.
    """
    written, problems = common.read(path, environ, allow_plain_secrets=allow_plain_secrets)
    return replace(written, fleet=_with_images(written.fleet, environ, problems)), problems


def _with_images(fleet: ResolvedFleet, environ: Mapping[str, str], problems: list[Problem]) -> ResolvedFleet:
    """Return the fleet with its images named as the environment says, where it does."""
    pattern = environ.get(names.ENV_IMAGES)
    if not pattern:
        return fleet
    if flaw := images.flaw(pattern):
        problems.append(Problem(Where(f"${names.ENV_IMAGES}"), flaw, code=Code.WRONG_VARIABLE))
        return fleet
    return replace(fleet, image=images.resolve(fleet.written.image, pattern))


def _delivery(written: Written) -> _Delivery:
    """Return what each member's container gets of the folder."""
    fleet, config, folder = written.fleet, written.config, written.folder
    shared = tuple(file for file in (names.DOTENV_FILE, *fastagent_files.SECRETS) if (folder / file).is_file())
    secret_locations = _secret_locations(fleet, written.tree)
    secrets = mounts.inside(folder, [*shared, *secret_locations])
    definitions = code.definitions(fleet, written.text_of)
    skill_folders = {name: skills.of_agent(name, written, definitions[name]) for name in fleet.agents}
    present = tuple(file for file in (written.name, *fastagent_files.CONFIG) if (folder / file).is_file())
    files_of_project = needed.ProjectFiles(folder, frozenset({*secrets.values(), *present}), written.text_of)
    needs = {
        name: needed.of_agent(agent, config, definitions[name], files_of_project, folders=skill_folders[name])
        for name, agent in fleet.agents.items()
    }
    needs |= {name: needed.of_service(service, files_of_project) for name, service in fleet.services.items()}
    if fleet.gateway and fleet.gateway.app:
        needs[names.GATEWAY] = needed.of_folder(fleet.gateway.app, files_of_project)
    return _Delivery(
        shared=shared,
        secret_locations=secret_locations,
        secrets=secrets,
        present=present,
        definitions=definitions,
        skill_folders=skill_folders,
        needs=needs,
    )


def _mounted(fleet: ResolvedFleet, delivery: _Delivery) -> dict[str, Needs]:
    """Return the needs that are met when a container starts: nothing is baked into an image that is not the kit's."""
    everyone = fleet.image.code == "mounted"
    images = {name for name, service in fleet.services.items() if service.image and service.files}
    return {name: need for name, need in delivery.needs.items() if everyone or name in images}


def _of_code(written: Written, project: Project) -> list[Problem]:
    """Return what is wrong with modules and cards, and with the variables that are there for them."""
    installed = {path: requirements.packages(wanted) for path, wanted in project.requirements.items()}
    distributions = None if written.custom_image else installed
    return list(common.problems_of_code(written, project.definitions, distributions))


def _absent_here(written: Written, definitions: Mapping[str, Definitions], problems: list[Problem]) -> list[Problem]:
    """Return what servers lack on this machine, where `problems` do not say already that they never start."""
    stated = {problem.where for problem in problems}
    here = availability.problems(written.fleet, written.config, definitions, written.folder)
    return [problem for problem in here if problem.where not in stated]


def _of_members(written: Written, delivery: _Delivery) -> list[Problem]:
    """Return what does not fit between the members, their servers and what publishes them."""
    fleet, tree, folder, config = written.fleet, written.tree, written.folder, written.config
    return [
        *misfits.servers(fleet, config),
        *(() if written.custom_image else stdio_servers.missing(config.commands, folder)),
        *skills.problems(
            fleet, folder, dict(entry for named in delivery.skill_folders.values() for entry in named.items())
        ),
        *misfits.registering(fleet, tree),
        *misfits.publishing(fleet, tree),
        *misfits.telemetry(fleet, tree),
    ]


def _requirements(fleet: ResolvedFleet, text_of: TextOf, problems: list[Problem]) -> dict[str, requirements.Files]:
    """Return what is to be installed for the code: the project's own by ``""``, else by the path an agent names."""
    paths = sorted({agent.requirements for agent in fleet.agents.values() if agent.requirements})
    files = {path: requirements.find(text_of, path, problems) for path in paths}
    return files | {"": requirements.find(text_of, None, problems)}


def _server_locks(folder: Path, config: Config, problems: list[Problem], *, relock: bool) -> Locks:
    """Return what is locked of the servers; a lock that lacks some, or cannot be read, is a problem but to `relock`."""
    path = folder / server_locks.FILE
    if not path.is_file():
        return {}
    flaws: list[Problem] = []
    locks = server_locks.parse(path.read_text("utf-8", errors="replace"), flaws)
    if not relock:
        problems += flaws or server_locks.missing(locks, config.commands)
    return locks


def _secret_locations(fleet: ResolvedFleet, tree: Source) -> dict[str, Where]:
    """Return every secret file as written, with the place that names it: a variable's key, a token's `file`."""
    return {secret.file: tree.where(*secret.place) for secret in secret_files.of_fleet(fleet)}
