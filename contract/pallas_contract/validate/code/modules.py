"""Rules over a Python module of an agent: a FastAgent in it, and an agent to serve; as the runtime looks for them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator, Mapping

from pallas_contract.codes import Code
from pallas_contract.definitions.definition import Definition
from pallas_contract.definitions.module import Module
from pallas_contract.definitions.tree import nodes
from pallas_contract.problems import Problem, Where

_HARMLESS = frozenset({"run", "start_server", "main"})
"""Methods of a FastAgent that define no agent."""


def problems(name: str, files: Mapping[str, Module]) -> Iterator[Problem]:
    """Yield what keeps agent `name` from being found in its module, the first of `files`.

    Where code decides (a FastAgent from a function, agents that are loaded), nothing is said.
    """
    module = next(iter(files.values()))
    if not any(entry.applications for entry in files.values()):
        if not any(_may_have_one(entry, files) for entry in files.values()):
            hint = 'define it: fast = FastAgent("name")'
            message = "has no FastAgent" if module.tree.body else f"is empty: there is no agent `{name}` in it"
            yield Problem(Where(module.name), message, hint, code=Code.NO_FASTAGENT)
        return
    definitions = list(served(files))
    if not definitions:
        if module.applications and not _calls_more(module):
            where = next(iter(module.applications.values()))
            yield Problem(
                where, "defines no agent", "decorate a function with @fast.agent(...)", code=Code.AGENT_NOT_DEFINED
            )
        return
    if not module.unclear and not _found(name, definitions):
        written = [definition.name or "" for definition in definitions]
        message = f"defines {', '.join(sorted(written))}, but not `{name}`"
        hint = f"rename one of them to `{name}`, or mark one with default=True"
        yield Problem(definitions[0].where_of("name"), message, hint, code=Code.AGENT_NOT_DEFINED)


def served(files: Mapping[str, Module]) -> Iterator[Definition]:
    """Yield the agents of the application that is served; a module that is imported may have one of its own."""
    own = next(iter(files.values()))
    for module in files.values():
        if module is own or not (own.applications and module.applications):
            yield from module.agents


def running(name: str, definitions: Collection[Definition]) -> list[Definition]:
    """Return the definition served as agent `name`, and those that run in its process for it; all if unclear."""
    alike = [entry for entry in definitions if entry.name and _folded(entry.name) == _folded(name)]
    pending = alike or [entry for entry in definitions if "default" in entry.positions] or list(definitions)
    reached: list[Definition] = []
    while pending:
        entry = pending.pop()
        if entry not in reached:
            reached.append(entry)
            pending += [child for child in definitions if child.name in entry.children]
    return reached


def _found(name: str, definitions: list[Definition]) -> bool:
    names = [definition.name for definition in definitions]
    if None in names or len(names) == 1:
        return True
    alike = {entry for entry in names if entry and _folded(entry) == _folded(name)}
    return bool(alike) or any("default" in definition.positions for definition in definitions)


def _folded(name: str) -> str:
    return name.lower().replace("_", "-")


def _may_have_one(module: Module, files: Collection[str]) -> bool:
    """Return whether a FastAgent may come from somewhere that was not read: an installed package, or a call."""
    tops = {path.partition("/")[0].removesuffix(".py") for path in files}
    for node in nodes(module.tree):
        if isinstance(node, ast.ImportFrom):
            top = (node.module or "").partition(".")[0]
            installed = not node.level and top not in tops | sys.stdlib_module_names | {"fast_agent"}
            if installed or any(alias.name in ("*", "fast") for alias in node.names):
                return True
        if isinstance(node, ast.Name) and node.id == "fast" and isinstance(node.ctx, ast.Store):
            return True
    calls = (statement.value for statement in module.tree.body if isinstance(statement, ast.Assign | ast.AnnAssign))
    return any(isinstance(value, ast.Call | ast.Attribute | ast.Subscript) for value in calls)


def _calls_more(module: Module) -> bool:
    """Return whether anything else is done with an application than running it."""
    for node in nodes(module.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in module.applications and node.attr not in _HARMLESS:
                return True
        elif isinstance(node, ast.Call):
            arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
            if any(isinstance(argument, ast.Name) and argument.id in module.applications for argument in arguments):
                return True
    return False
