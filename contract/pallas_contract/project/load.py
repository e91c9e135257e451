"""Both files of a project and the code beside them: read, and checked by every rule that is about no container."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pallas_contract import limited_file, names
from pallas_contract.codes import Code
from pallas_contract.definitions.definition import Definitions
from pallas_contract.definitions.read import TextOf
from pallas_contract.documents import lock
from pallas_contract.fleet import fastagent, source
from pallas_contract.fleet.fastagent import Config
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.problems import Problem, Refused, Where
from pallas_contract.project import availability, code, dotenv_file, programs, variables
from pallas_contract.validate import access_rules, config_rules, plain_secrets
from pallas_contract.validate import load as validate_load
from pallas_contract.validate.code import files, rules, shell


@dataclass(frozen=True)
class Written:
    """Both files as they are written, and readers of what lies beside them."""

    name: str
    """Name of the fleet file."""
    tree: Source
    fleet: ResolvedFleet
    readable: Config | None
    """fast-agent's configuration, None where it cannot be read."""
    folder: Path
    text_of: TextOf
    environ: Mapping[str, str]

    @property
    def config(self) -> Config:
        """Return the configuration; one that cannot be read is as none, so that one run names all problems."""
        return self.readable or Config()

    @property
    def custom_image(self) -> bool:
        """Return whether all agents run in an image of the user's, which may bring anything along."""
        return self.fleet.written.image.agent is not None


def read(path: Path, environ: Mapping[str, str], *, allow_plain_secrets: bool) -> tuple[Written, list[Problem]]:
    """Return both files and the problems that lie in them alone.

    `allow_plain_secrets` makes warnings of the errors about secrets in plain text. The project is the folder of the
    file itself where `path` is a link to it.

    Raises:
        Refused: the fleet file makes no fleet.
    """
    folder = path.resolve().parent
    tree = source.read(path)
    readable, problems = _config(folder)
    config = readable or Config()
    problems += plain_secrets.problems(tree, config.tree, allow=allow_plain_secrets)
    try:
        fleet, warnings = validate_load.check(tree, config.servers)
    except Refused as refused:
        raise Refused([*refused.problems, *problems]) from None
    written = Written(
        name=path.name,
        tree=tree,
        fleet=fleet,
        readable=readable,
        folder=folder,
        text_of=code.reader(folder),
        environ=environ,
    )
    return written, [*problems, *warnings]


def problems_of_code(
    written: Written,
    definitions: Mapping[str, Definitions],
    distributions: Mapping[str, frozenset[str]] | None,
    *,
    elsewhere: Callable[[str], bool] | None = None,
    processes: bool = False,
) -> Iterator[Problem]:
    """Yield what is wrong with modules and cards, with the variables that are there for them, and with their servers.

    `distributions` are the packages in the images, as in `rules.Surroundings`; None where no image is meant.
    `elsewhere` tells whether a module that is not in the project is installed; by default an image of the user's may
    have any. `processes` are started here, with the variables of this one; containers may get others.
    """
    fleet, tree, folder = written.fleet, written.tree, written.folder
    in_dotenv = dotenv_file.keys(folder / names.DOTENV_FILE)
    if processes:  # they read that of the folder they are started from too (seed 001)
        in_dotenv |= dotenv_file.keys(Path.cwd() / names.DOTENV_FILE)
    surroundings = rules.Surroundings(
        config=written.readable,
        text_of=written.text_of,
        is_file=code.files(folder),
        variables=written.environ.keys() | in_dotenv,
        delivered=None if processes else in_dotenv,
        distributions=distributions,
        is_installed=elsewhere if processes else None,
    )
    yield from files.missing(fleet, tree, folder, elsewhere or (lambda _: written.custom_image))
    yield from rules.problems(fleet, tree, surroundings)
    yield from dotenv_file.problems(folder / names.DOTENV_FILE)
    yield from _lock(folder / names.LOCK_FILE)
    yield from variables.unset(fleet, written.config, surroundings.variables)
    yield from shell.withheld(fleet, definitions)
    yield from programs.problems(fleet, written.config, definitions, folder)
    for path, program, certain in programs.scripts(fleet, written.config, definitions):
        for problem in rules.script(path, surroundings, here=processes and availability.is_ours(program)):
            yield problem if certain else replace(problem, level="warning")
    for module, where in programs.modules(fleet, written.config, definitions, folder):
        yield from rules.server_module(module, where, surroundings)
    if processes:
        yield from availability.problems(fleet, written.config, definitions, folder)
    for name in fleet.agents:
        yield from access_rules.not_called(fleet, name, written.config, tree)


def check(
    path: Path,
    environ: Mapping[str, str],
    *,
    allow_plain_secrets: bool = False,
    elsewhere: Callable[[str], bool] | None = None,
) -> tuple[Written, list[Problem]]:
    """Return both files and every problem that processes have as well as containers; nothing of the user's is imported.

    `elsewhere` is as in `problems_of_code`.

    What only containers and images have, as a lock of servers that is out of date, is found by `pallas-gen validate`.

    Raises:
        Refused: the fleet file makes no fleet.
    """
    written, problems = read(path, environ, allow_plain_secrets=allow_plain_secrets)
    definitions = code.definitions(written.fleet, written.text_of)
    of_code = problems_of_code(written, definitions, None, elsewhere=elsewhere, processes=True)
    return written, [*problems, *of_code]


def _lock(path: Path) -> Iterator[Problem]:
    """Yield a warning where agents.lock is of no use: the registry then compares nothing with it."""
    try:
        lock.parse(limited_file.read(path, lock.LARGEST))
    except FileNotFoundError:
        return
    except OSError as error:
        message = f"cannot be read: {limited_file.reason(error)}"
        yield Problem(Where(path.name), message, level="warning", code=Code.LOCK_FILE)
    except Refused as refused:
        yield from (replace(problem, level="warning") for problem in refused.problems)


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
