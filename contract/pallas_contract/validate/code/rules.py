"""Every rule over the modules and cards of a fleet, each file read once; problems stand at lines of the user's code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from pallas_contract.codes import Code
from pallas_contract.definitions import module as python_module
from pallas_contract.definitions import read
from pallas_contract.definitions.definition import Definition
from pallas_contract.definitions.read import TextOf
from pallas_contract.fleet.fastagent import Config
from pallas_contract.fleet.resolved import ResolvedAgent, ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.problems import Problem, Refused, Where
from pallas_contract.validate import config_rules, secret_shapes
from pallas_contract.validate.code import cards, files, function_tools, imports, listening, models, modules, servers
from pallas_contract.validate.suggestions import Suggestions


@dataclass(frozen=True)
class Surroundings:
    """What the rules need to know besides the fleet file."""

    config: Config | None
    """None: it cannot be read, so that nobody knows its servers."""
    text_of: TextOf
    is_file: Callable[[str], bool] = lambda _: True
    """Whether there is a file at a path from the project folder, whatever is in it."""
    variables: Collection[str] = ()
    """Environment variables that every agent has: of this process, and of `.env`."""
    delivered: Collection[str] | None = None
    """Those of them that containers get; None where agents are processes here, which have all."""
    distributions: Mapping[str, frozenset[str]] | None = field(default_factory=dict)
    """Packages that are installed into images, by the requirements file that an agent names, and by ``""`` for all that
    name none; None: the image is the user's own."""
    is_installed: Callable[[str], bool] | None = None
    """Whether a module is installed where agents are processes here; None where no process is meant."""
    checked: set[tuple[str, frozenset[str] | None]] = field(default_factory=set)
    """Paths of the files that were looked through for one agent, and need not be for the next with these packages."""

    def installed(self, agent: ResolvedAgent | None) -> frozenset[str] | None:
        """Return the packages in the image of an agent, or of services; None where nobody knows them."""
        if self.distributions is None or (agent and agent.image):
            return None
        return self.distributions.get((agent and agent.requirements) or "", frozenset())


def problems(fleet: ResolvedFleet, tree: Source, around: Surroundings) -> Iterator[Problem]:
    """Yield what would stop agents and services at their start, or make their calls fail."""
    config = around.config or Config()
    names = servers.Servers(fleet, around.config, tree.name)
    suggestions = Suggestions()
    if config.model_position:
        yield from models.problems(config.default_model, config.model_position, suggestions)
        yield from models.without_key(fleet, config, around.variables)
    for name, agent in fleet.agents.items():
        if agent.card:
            yield from _card(fleet, name, around, names=names, suggestions=suggestions)
        elif agent.module:
            yield from _module(fleet, name, around, names=names, suggestions=suggestions)
    for service in fleet.services.values():
        if service.module:
            yield from _files(service.module, around, around.installed(None))
    yield from listening.problems(fleet, tree, around.text_of)


def _card(
    fleet: ResolvedFleet, name: str, around: Surroundings, *, names: servers.Servers, suggestions: Suggestions
) -> Iterator[Problem]:
    path = fleet.agents[name].card or ""
    try:
        text = around.text_of(path)
        if text is None:
            return
        yield from _plain(path, text)
        card = cards.parse(text, path)
    except Refused as refused:
        yield from refused.problems
        return
    yield from cards.problems(card, suggestions)
    yield from names.called_in_process(name, [card.agent])
    yield from _definition(fleet, name, around, definition=card.agent, names=names, suggestions=suggestions)


def _module(
    fleet: ResolvedFleet, name: str, around: Surroundings, *, names: servers.Servers, suggestions: Suggestions
) -> Iterator[Problem]:
    module = fleet.agents[name].module or ""
    refused = list(_files(module, around, around.installed(fleet.agents[name])))
    yield from refused
    if any(problem.level == "error" for problem in refused):
        return
    parsed = read.module_files(module, around.text_of)
    if not parsed:
        return
    yield from modules.problems(name, parsed)
    definitions = list(modules.served(parsed))
    yield from names.called_in_process(name, modules.running(name, definitions))
    for definition in definitions:
        yield from _definition(fleet, name, around, definition=definition, names=names, suggestions=suggestions)


def _definition(
    fleet: ResolvedFleet,
    name: str,
    around: Surroundings,
    *,
    definition: Definition,
    names: servers.Servers,
    suggestions: Suggestions,
) -> Iterator[Problem]:
    """Yield the problems of one agent as agent `name` defines it."""
    yield from names.problems(name, definition)
    yield from _model(fleet, name, around, definition=definition, suggestions=suggestions)
    yield from _absent(definition, around.text_of, around.is_file, suggestions)
    for tool in definition.function_tools:
        path, _ = function_tools.split(tool)
        if path.endswith(".py") and not path.startswith(("/", "..", "~")):
            module = path.removesuffix(".py").replace("/", ".")
            yield from _files(module, around, around.installed(fleet.agents[name]))


def absent_files(agent: ResolvedAgent, text_of: TextOf, is_file: Callable[[str], bool]) -> Iterator[Problem]:
    """Yield the problems of the files and functions that `agent` is made from; code that cannot be read has none."""
    definitions: Iterable[Definition] = ()
    try:
        if agent.card:
            definitions = [cards.parse(text_of(agent.card) or "", agent.card).agent]
        elif parsed := read.module_files(agent.module or "", text_of):
            definitions = modules.served(parsed)
        for definition in definitions:
            yield from _absent(definition, text_of, is_file, Suggestions())
    except Refused:
        return


def _absent(
    definition: Definition, text_of: TextOf, is_file: Callable[[str], bool], suggestions: Suggestions
) -> Iterator[Problem]:
    yield from files.unread(definition, is_file)
    yield from function_tools.problems(definition, text_of, is_file, suggestions)


def _model(
    fleet: ResolvedFleet, name: str, around: Surroundings, *, definition: Definition, suggestions: Suggestions
) -> Iterator[Problem]:
    if definition.model:
        yield from models.problems(definition.model, definition.where_of("model"), suggestions)
    elif around.config is not None:
        agent = fleet.agents[name]
        delivered = around.variables if around.delivered is None else around.delivered
        # A container may get the variable where it is deployed; a misspelt key was meant to be the model.
        certain = around.delivered is None or config_rules.misspells_model(around.config.tree)
        given = {*delivered, *agent.env, *agent.secrets}
        for problem in models.without_model(definition, around.config, given):
            yield problem if certain else replace(problem, level="warning")


def _files(module: str, around: Surroundings, installed: frozenset[str] | None) -> Iterator[Problem]:
    """Yield the problems of a module, and of those it imports from the project, as files."""
    try:
        parsed = read.module_files(module, around.text_of)
    except Refused as refused:
        yield from refused.problems
        return
    for path, entry in parsed.items():
        if (path, installed) in around.checked:
            continue
        around.checked.add((path, installed))
        yield from _plain(path, around.text_of(path) or "")
        if installed is not None:
            yield from imports.problems(entry, around.text_of, installed)
        elif around.is_installed is not None:
            yield from imports.not_here(entry, around.text_of, around.is_installed)


def script(path: str, around: Surroundings, *, here: bool = False) -> Iterator[Problem]:
    """Yield the problems of a server's script in the project: Python first looks for its imports beside it.

    `here`: it is run by the Python of this environment. What it lacks is a warning, since the agent starts without it.
    One that cannot be read here is a warning: Python may well run it, as it does a file of any size.
    """
    try:
        text = around.text_of(path)
    except Refused as refused:
        yield from (replace(problem, level="warning") for problem in refused.problems)
        return
    if text is None:
        return
    yield from _plain(path, text)
    try:
        parsed = python_module.parse(text, name=path)
    except Refused as refused:
        yield from refused.problems
        return
    beside = PurePosixPath(path).parent

    def text_of(name: str) -> str | None:
        try:
            near = around.text_of(str(beside / name))
            return around.text_of(name) if near is None else near
        except Refused:
            return ""  # it is there, and that is all that is asked of it

    installed = around.installed(None)
    if installed is not None:
        yield from imports.problems(parsed, text_of, installed)
    elif here and around.is_installed is not None:
        absent = imports.not_here(parsed, text_of, around.is_installed)
        yield from (replace(problem, level="warning") for problem in absent)


def server_module(name: str, where: Where, around: Surroundings) -> Iterator[Problem]:
    """Yield a warning where the agent image has no module `name`, which a server is run from."""
    installed = around.installed(None)
    if installed is not None and imports.is_absent(name, around.text_of, installed):
        message = f"the agent image has no module `{name}`: in a container this server never starts"
        yield Problem(where, message, imports.naming(name), "warning", code=Code.SERVER_NOT_IN_IMAGE)


def _plain(path: str, text: str) -> Iterator[Problem]:
    """Yield a problem for the first literal key in a file."""
    match = secret_shapes.known_shape(text)
    if match:
        line = text.count("\n", 0, match.start()) + 1
        column = match.start() - text.rfind("\n", 0, match.start())
        hint = "read it from a variable (`os.environ`), and give that under `secrets` in agents.yaml"
        yield Problem(
            Where(path, line, column),
            "a key in plain text, which every image and container holds",
            hint,
            code=Code.PLAIN_SECRET,
        )
