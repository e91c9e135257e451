"""Everything that one agent's code defines: its card, or its module and what that imports from the project."""

from __future__ import annotations

from collections.abc import Callable

from pallas_contract.codes import Code
from pallas_contract.definitions import card, module
from pallas_contract.definitions.definition import Definitions
from pallas_contract.definitions.module import Module
from pallas_contract.fleet.resolved import ResolvedAgent
from pallas_contract.problems import Problem, Refused, Where

TextOf = Callable[[str], str | None]
"""A path in the project folder -> the text of the file, None where there is no such file. It raises Refused for one
that cannot be read."""


def definitions(agent: ResolvedAgent, text_of: TextOf) -> Definitions:
    """Return the agents that the code of `agent` defines. Code that cannot be read is a reason in `unclear`."""
    try:
        if agent.card:
            text = text_of(agent.card)
            if text is None:
                return Definitions(unclear=(_absent(agent.card),))
            definition = card.parse(text, name=agent.card).agent
            return Definitions((definition,), _unclear_card(definition.servers is None, definition.where_of("servers")))
        modules = module_files(agent.module or "", text_of)
    except Refused as refused:
        return Definitions(unclear=tuple(refused.problems))
    if not modules:
        return Definitions(unclear=(_absent(f"{agent.module}"),))
    return Definitions(
        tuple(definition for entry in modules.values() for definition in entry.agents),
        tuple(problem for entry in modules.values() for problem in entry.unclear),
    )


def module_files(name: str, text_of: TextOf) -> dict[str, Module]:
    """Return module `name` of the project and every one that it imports from there, by path, the module itself first.

    Raises:
        Refused: one of them is not Python, or cannot be read.
    """
    modules: dict[str, Module] = {}
    pending = [name]
    while pending:
        for path, package in files_of(pending.pop(), text_of):
            text = text_of(path)
            if path in modules or text is None:
                continue
            modules[path] = module.parse(text, name=path, package=package)
            for candidates in modules[path].imports:
                pending += [candidate for candidate in candidates if files_of(candidate, text_of)][:1]
    return modules


def files_of(name: str, text_of: TextOf) -> list[tuple[str, tuple[str, ...]]]:
    """Return the files that `import name` runs, each with its package: the module's own, then the folders' above it.

    None where the project has no such module: then it is an installed one.
    """
    parts = tuple(name.split("."))
    folder = "/".join(parts)
    own = next(
        (
            (path, package)
            for path, package in ((f"{folder}/__init__.py", parts), (f"{folder}.py", parts[:-1]))
            if text_of(path) is not None
        ),
        None,
    )
    if own is None:
        return []
    above = [parts[:depth] for depth in range(len(parts) - 1, 0, -1)]
    return [own, *(("/".join((*package, "__init__.py")), package) for package in above)]


def is_local(name: str, text_of: TextOf) -> bool:
    """Return whether the project has a module of that dotted name."""
    return bool(files_of(name, text_of))


def _absent(name: str) -> Problem:
    return Problem(Where(name), "is not in the project folder", level="warning", code=Code.FILE_NOT_IN_PROJECT)


def _unclear_card(unclear: bool, where: Where) -> tuple[Problem, ...]:
    hint = "write them out: `servers: [search, files]`"
    return (
        (Problem(where, "`servers` is no list of literal names", hint, "warning", code=Code.SERVERS_NOT_LITERAL),)
        if unclear
        else ()
    )
