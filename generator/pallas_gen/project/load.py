"""The project folder around agents.yaml: what is in it, and what in it does not fit the fleet file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.fleet import fastagent, fastagent_files, images, providers, source
from pallas_contract.fleet.fastagent import Config
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.launch import secret_files
from pallas_contract.problems import Problem, Refused, Where, refuse_errors
from pallas_contract.validate import access_rules, config_rules, plain_secrets, publish_rules
from pallas_contract.validate import load as validate_load
from pallas_contract.validate.code import files, rules, shell
from pallas_gen.dependencies import requirements, server_locks
from pallas_gen.dependencies.server_locks import Locks
from pallas_gen.plan import Project
from pallas_gen.project import code, declared, dotenv_file, mounts, needed, skills, stdio_servers
from pallas_gen.project.needed import Needs

CONTAINER_UID = 10001


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


def load(path: Path, environ: Mapping[str, str], *, allow_plain_secrets: bool = False, relock: bool = False) -> Loaded:
    """Read agents.yaml at `path` and the files beside it.

    `allow_plain_secrets` makes warnings of the errors about secrets in plain text. `relock`: the lock of the servers is
    about to be written, and may be out of date.

    Raises:
        Refused: with every error found in any of them.
    """
    folder = path.resolve().parent
    tree = source.read(path)
    readable, problems = _config(folder)
    config = readable or Config()  # the rest is checked as if there was none, so that one run names all problems
    plain = [*plain_secrets.in_fleet(tree), *(plain_secrets.in_config(config.tree) if config.tree else ())]
    problems += [plain_secrets.allowed(problem) for problem in plain] if allow_plain_secrets else plain
    try:
        fleet, warnings = validate_load.check(tree, config.servers)
    except Refused as refused:
        raise Refused([*refused.problems, *problems]) from None
    if pattern := environ.get(names.ENV_IMAGES):
        if flaw := images.flaw(pattern):
            problems.append(Problem(Where(f"${names.ENV_IMAGES}"), flaw))
        else:
            fleet = replace(fleet, image=images.resolve(fleet.written.image, pattern))
    text_of = code.reader(folder)
    shared = tuple(file for file in (names.DOTENV_FILE, *fastagent_files.SECRETS) if (folder / file).is_file())
    secret_locations = _secret_locations(fleet, tree)
    secrets = mounts.inside(folder, [*shared, *secret_locations])
    hidden = tuple(sorted(set(secrets.values())))
    definitions = code.definitions(fleet, text_of)
    skill_folders = {name: skills.of_agent(agent, config, definitions[name]) for name, agent in fleet.agents.items()}
    present = tuple(file for file in (path.name, *fastagent_files.CONFIG) if (folder / file).is_file())
    project_files = needed.ProjectFiles(folder, frozenset({*hidden, *present}), text_of)
    needs = {
        name: needed.of_agent(agent, config, definitions[name], project_files, folders=skill_folders[name])
        for name, agent in fleet.agents.items()
    }
    needs |= {name: needed.of_service(service, project_files) for name, service in fleet.services.items()}
    project = Project(
        agents_file=path.name,
        secret_files=shared,
        hidden=hidden,
        config=present,
        files={name: need.paths for name, need in needs.items()},
        definitions=definitions,
        requirements=_requirements(fleet, folder, problems),
        server_locks=_server_locks(folder, config, problems, relock=relock),
    )
    delivered = sorted({*present, *(path for need in needs.values() for path in need.paths)})
    custom_image = fleet.written.image.agent is not None  # it may bring its own modules along
    problems += [*warnings, *files.missing(fleet, tree, folder, lambda _: custom_image)]
    surroundings = rules.Surroundings(
        config=readable,
        text_of=text_of,
        variables=environ.keys() | dotenv_file.keys(folder / names.DOTENV_FILE),
        distributions=None if custom_image else declared.packages(folder),
    )
    problems += [*rules.problems(fleet, tree, surroundings), *dotenv_file.problems(folder / names.DOTENV_FILE)]
    mounted = {file: Where(file) for file in shared} | secret_locations
    problems += [*_missing_secrets(folder, mounted), *_secrets_in_code(delivered, secret_locations, secrets)]
    problems += [
        *_servers(fleet, config),
        *(() if custom_image else stdio_servers.missing(config.commands)),
        *(problem for name in fleet.agents for problem in access_rules.not_called(fleet, name, config, tree)),
        *shell.withheld(fleet, definitions),
        *skills.problems(fleet, config, folder, frozenset().union(*skill_folders.values())),
        *_registering(fleet, tree),
        *_publishing(fleet, tree),
        *_telemetry(fleet, tree),
        *_variables(config, folder, environ, fleet),
    ]
    if fleet.image.code == "mounted":
        problems += [*_links(folder, delivered, needs), *_unmatched(fleet, tree, needs), *_missed(needs)]
    return Loaded(
        fleet=fleet,
        config=config,
        project=project,
        folder=folder,
        warnings=refuse_errors(problems),
        unreadable=[*_unreadable(folder, delivered), *_closed_secrets(folder, mounted)],
    )


def _requirements(fleet: ResolvedFleet, folder: Path, problems: list[Problem]) -> dict[str, requirements.Files]:
    """Return what is to be installed for the code: the project's own by ``""``, else by the path an agent names."""
    text_of = code.reader(folder)
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


def _config(folder: Path) -> tuple[Config | None, list[Problem]]:
    """Return fast-agent's configuration, None where it cannot be read, and its problems."""
    try:
        config, problems = fastagent.load(folder)
    except Refused as refused:
        return None, list(refused.problems)
    # What the kit reads itself it words better.
    places = {problem.where for problem in problems}
    by_schema = config_rules.problems(config.tree) if config.tree else ()
    return config, [*problems, *(problem for problem in by_schema if problem.where not in places)]


def _secret_locations(fleet: ResolvedFleet, tree: Source) -> dict[str, Where]:
    """Return every secret file as written, with the place that names it: a variable's key, a token's `file`."""
    locations = {}
    for secret in secret_files.of_fleet(fleet):
        named_by_key = secret.path[-3] == "secrets" or secret.path[0] == "registry"
        locations[secret.file] = tree.where(*(secret.path[:-1] if named_by_key else secret.path))
    return locations


def _secrets_in_code(
    delivered: Sequence[str], locations: Mapping[str, Where], secrets: Mapping[str, str]
) -> Iterator[Problem]:
    """Refuse secret files in a folder that a container needs: it cannot be handed over and kept back at once."""
    for file, where in locations.items():
        top = next(
            (entry for entry in delivered if entry.endswith("/") and secrets.get(file, "").startswith(entry)), ""
        )
        if top:
            message = f"{file} lies in `{top}`, which a container gets as a whole"
            yield Problem(where, message, "move it into a folder of its own, for example secrets/")


def _links(folder: Path, delivered: Sequence[str], needs: Mapping[str, Needs]) -> Iterator[Problem]:
    """Links are followed by whoever mounts or packs the folder: containers would get what is outside of it."""
    links = {path: target for need in needs.values() for path, target in need.links.items()}
    for path, target in sorted((links | dict(mounts.links_outside(folder, delivered))).items()):
        hint = "put a copy into the project folder, or what is needed into an image: `pallas-gen image`"
        yield Problem(Where(path), f"is a link out of the project folder, to {target}", hint)


def _missed(needs: Mapping[str, Needs]) -> Iterator[Problem]:
    for name, need in needs.items():
        for folder, path in need.missed.items():
            message = f"names the folder {folder}, which the container of `{name}` does not get"
            hint = f"write `files: [{folder}/]` for `{name}` in agents.yaml, if its code reads what is in it"
            yield Problem(Where(path), message, hint, "warning")


def _unmatched(fleet: ResolvedFleet, tree: Source, needs: Mapping[str, Needs]) -> Iterator[Problem]:
    for name, need in needs.items():
        section = "agents" if name in fleet.agents else "services"
        for pattern in need.unmatched:
            path = (section, name, "files")
            if name in fleet.agents and pattern not in fleet.written.agents[name].files:
                path = ("defaults", "files", "")
            message = f"there is no file {pattern} that a container may get"
            hint = "correct the pattern, which is relative to agents.yaml; secrets go into `secrets`"
            yield tree.problem(*filter(None, path), message=message, hint=hint)


def _unreadable(folder: Path, delivered: Sequence[str]) -> Iterator[Problem]:
    """Yield what the containers' user may not read or enter."""
    # by the bits for others: the user of the containers owns nothing here
    parents = {parent for name in delivered for parent in PurePosixPath(name).parents}
    for path in (folder / name for name in sorted({*map(str, parents), *delivered})):
        needed_bits = 0o005 if path.is_dir() else 0o004
        if path.exists() and path.stat().st_mode & needed_bits != needed_bits:
            name = str(path.relative_to(folder)) if path != folder else str(folder)
            hint = f"`chmod o+r{'x' if path.is_dir() else ''} {name}`"
            yield Problem(Where(name), f"cannot be read by the containers' user {CONTAINER_UID}", hint, "warning")


def _missing_secrets(folder: Path, locations: Mapping[str, Where]) -> Iterator[Problem]:
    for file, where in locations.items():
        if not os.path.isfile(folder / file):  # unlike Path.is_file, it never raises
            yield Problem(where, f"there is no file {file} yet", "create it before the fleet starts", "warning")


def _closed_secrets(folder: Path, locations: Mapping[str, Where]) -> Iterator[Problem]:
    for file, where in locations.items():
        path = folder / file
        if os.path.isfile(path) and not path.stat().st_mode & 0o004:
            hint = f"`chown {CONTAINER_UID} {file}`, or `chmod o+r {file}` where others may read it"
            yield Problem(where, f"{file} cannot be read by the containers' user {CONTAINER_UID}", hint, "warning")


def _servers(fleet: ResolvedFleet, config: Config) -> Iterator[Problem]:
    members = {*fleet.agents, *fleet.services}
    for name, url in config.servers.items():
        if url is None:
            continue
        where = config.url_positions[name]
        if name in members:
            hint = "the fleet computes the URL of its own members; this line can go"
            yield Problem(where, f"this URL is not used: `{name}` is part of the fleet", hint, "warning")
        elif urlsplit(url).hostname in names.LOCAL_HOSTS:
            hint = "use a host name, or bring the server along under `services`"
            yield Problem(where, "in a container localhost is the container itself", hint, "warning")


def _registering(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    if fleet.registry.registration and fleet.registry.publish is False:
        message = "only containers of this fleet reach the registry: it is not published"
        hint = "remove `publish: false`, or set it to the address to listen on"
        yield tree.problem("registry", "registration", message=message, hint=hint, level="warning")


def _telemetry(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    if fleet.telemetry and urlsplit(fleet.telemetry.otlp_endpoint).hostname in names.LOCAL_HOSTS:
        hint = "name a collector that the containers reach; processes read $OTEL_EXPORTER_OTLP_ENDPOINT first"
        message = "in a container localhost is the container itself"
        yield tree.problem("telemetry", "otlp_endpoint", message=message, hint=hint, level="warning")


def _publishing(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    for name, agent in fleet.agents.items():
        if agent.replicas > 1 and agent.publish:
            message = f"one host port cannot be shared by {agent.replicas} containers: it is not published by compose"
            path = ("agents", name, "replicas")
            yield tree.problem(*path, message=message, hint="set `publish: false` to agree", level="warning")
    yield from publish_rules.unreachable(fleet, tree)


def _variables(config: Config, folder: Path, environ: Mapping[str, str], fleet: ResolvedFleet) -> Iterator[Problem]:
    available = set(environ) | dotenv_file.keys(folder / names.DOTENV_FILE) | set(fleet.written.defaults.secrets)
    available |= set(fleet.written.defaults.env)
    available |= {key for agent in fleet.written.agents.values() for key in (*agent.secrets, *agent.env)}
    defaulted = {provider.url_variable for provider in providers.CHECKED}
    for variable, where in config.variables.items():
        if variable not in available and variable not in defaulted:
            hint = f"put {variable}=... into .env, or give a default: ${{{variable}:default}}"
            yield Problem(where, f"${{{variable}}} is not set anywhere", hint, "warning")
