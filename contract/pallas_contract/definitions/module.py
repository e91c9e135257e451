"""A Python module of the user, as far as its syntax tree tells: its agents, what it imports, and what stays open."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pallas_contract.codes import Code
from pallas_contract.definitions import literals, named_files
from pallas_contract.definitions.definition import CHILDREN, Definition, FunctionTool
from pallas_contract.definitions.named_files import NamedFile
from pallas_contract.definitions.tree import nodes
from pallas_contract.problems import Problem, Refused, Where

DECORATORS = frozenset(
    {"agent", "custom", "orchestrator", "iterative_planner", "router", "chain", "parallel", "evaluator_optimizer"}
    | {"maker"}
)
"""Methods of `FastAgent` that define an agent."""
LOADERS = frozenset({"load_agents", "load_agents_from_url"})
"""Methods of `FastAgent` that add agents from cards."""
_APPLICATION = "FastAgent"
_MEND = "mend this line, or the one before it"


@dataclass(frozen=True)
class Module:
    """One parsed module."""

    name: str
    """Path in the project."""
    tree: ast.Module
    applications: Mapping[str, Where]
    """Variables of the module that are assigned a `FastAgent(...)`."""
    agents: tuple[Definition, ...]
    unclear: tuple[Problem, ...]
    """What keeps its agents, or their servers, from being known without running it; as warnings."""
    imports: tuple[tuple[str, ...], ...]
    """Candidates of each import, absolute and dotted, the longest first: `from a import b` is `a.b` or `a`."""


@lru_cache(1024)  # a module that many agents import is parsed once
def parse(text: str, *, name: str, package: tuple[str, ...] = ()) -> Module:
    """Parse the module `text`; `name` is its path in the project, `package` what its relative imports start from.

    Raises:
        Refused: it is not Python.
    """
    try:
        tree = ast.parse(text, filename=name)
    except SyntaxError as error:
        where = Where(name, error.lineno or 1, error.offset or 1)
        raise Refused([Problem(where, f"is not Python: {error.msg}", _MEND, code=Code.NOT_PYTHON)]) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise Refused([Problem(Where(name), f"is not Python: {error}", code=Code.NOT_PYTHON)]) from None
    reader = _Reader(name, tree)
    agents = tuple(reader.agents())
    return Module(
        name=name,
        tree=tree,
        applications=reader.applications,
        agents=agents,
        unclear=(*(problem for agent in agents for problem in _unclear(agent)), *reader.loaded()),
        imports=tuple(_imports(tree, package)),
    )


class _Reader:
    """Reading of one syntax tree; `constants` are the variables of the module that are assigned once."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self._name = name
        self._tree = tree
        self._classes = {_APPLICATION} | {
            alias.asname
            for node in nodes(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.name == _APPLICATION and alias.asname
        }
        self._constants = literals.constants(tree)
        self._decorators = {
            id(decorator)
            for node in nodes(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for decorator in node.decorator_list
        }
        self.applications = dict(self._applications())

    def where(self, node: ast.expr | ast.stmt) -> Where:
        return Where(self._name, node.lineno, node.col_offset + 1)

    def _applications(self) -> Iterator[tuple[str, Where]]:
        for node in nodes(self._tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and _called(node.value) in self._classes:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        yield target.id, self.where(node)

    def _calls(self, methods: frozenset[str]) -> Iterator[tuple[ast.Call, str]]:
        """Yield calls of a method of an application; as a decorator of anything, for it may come from elsewhere."""
        for node in nodes(self._tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods:
                receiver = node.func.value
                known = isinstance(receiver, ast.Name) and receiver.id in self.applications
                if known or id(node) in self._decorators:
                    yield node, node.func.attr

    def agents(self) -> Iterator[Definition]:
        for call, kind in self._calls(DECORATORS):
            yield self._agent(call, kind)

    def _agent(self, call: ast.Call, kind: str) -> Definition:
        arguments = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        # fast-agent's own order: `custom` has the class before the name
        positional = ("cls", "name", "instruction") if kind == "custom" else ("name", "instruction")
        arguments |= dict(zip(positional, call.args, strict=False))
        # `**options` may hold any of them
        rest = None if any(keyword.arg is None for keyword in call.keywords) else ()
        servers = self._value(arguments.get("servers"), rest)
        model = self._value(arguments.get("model"), None if rest is None else "")
        skills = self._value(arguments.get("skills"), rest)
        name = self._value(arguments.get("name"), None if rest is None else "default")
        positions = {key: self.where(node) for key, node in arguments.items()}
        listed = arguments.get("servers")
        if isinstance(listed, ast.List | ast.Tuple):
            positions |= {f"servers.{index}": self.where(node) for index, node in enumerate(listed.elts)}
        return Definition(
            name=name if isinstance(name, str) else None,
            kind=kind,
            where=self.where(call),
            servers=literals.texts(servers),
            model=model if isinstance(model, str) else None,
            shell=self._value(arguments.get("shell"), missing=False) is True,
            skills=literals.texts([skills] if isinstance(skills, str) else skills),
            function_tools=tuple(self._function_tools(arguments.get("function_tools"))),
            children=dict(self._children(arguments)),
            files=tuple(self._files(arguments.get("instruction"))),
            positions=positions,
        )

    def _function_tools(self, node: ast.expr | None) -> Iterator[FunctionTool]:
        """Yield the tools that a list, or a variable with one, names by their files."""
        listed = self._constants.get(node.id) if isinstance(node, ast.Name) else node
        for entry in listed.elts if isinstance(listed, ast.List | ast.Tuple) else ():
            text = literals.value(entry, self._constants)
            if isinstance(text, str):
                yield FunctionTool(text, self.where(entry))

    def _children(self, arguments: Mapping[str, ast.expr]) -> Iterator[tuple[str, Where]]:
        """Yield the agents that it calls in its own process, as far as they are literals."""
        for key in CHILDREN:
            node = arguments.get(key)
            if node is None:
                continue
            for entry in node.elts if isinstance(node, ast.List | ast.Tuple) else [node]:
                written = literals.value(entry.value if isinstance(entry, ast.Starred) else entry, self._constants)
                for name in written if isinstance(written, list) else [written]:
                    if isinstance(name, str):
                        yield name, self.where(entry)

    def _files(self, node: ast.expr | None) -> Iterator[NamedFile]:
        """Yield the files that an instruction is read from."""
        if node is None:
            return
        path = literals.path(node, self._constants, self._name)
        if path is not None:
            yield named_files.instruction(path, self.where(node))
        elif isinstance(text := literals.value(node, self._constants), str):
            yield from named_files.included(text, self.where(node))

    def _value(self, node: ast.expr | None, missing: Any) -> Any:
        """Return a literal, `missing` where there is no such argument or it is None, and None for anything else."""
        if node is None or (isinstance(node, ast.Constant) and node.value is None):
            return missing
        return literals.value(node, self._constants)

    def loaded(self) -> Iterator[Problem]:
        """Yield a warning per call that adds agents from elsewhere."""
        for call, method in self._calls(LOADERS):
            message = f"`{method}` adds agents from elsewhere"
            yield Problem(self.where(call), message, level="warning", code=Code.AGENTS_FROM_ELSEWHERE)


def names(tree: ast.Module) -> Mapping[str, ast.AST] | None:
    """Return what a module has once it was imported, each name with the node that binds it last.

    None where only running the code tells: `from a import *`, a `__getattr__`, or names that are made by hand.
    """
    bound: dict[str, ast.AST] = {}
    for node in nodes(tree):
        if isinstance(node, ast.Global):
            bound |= dict.fromkeys(node.names, node)
        elif isinstance(node, ast.Call) and _called(node) in ("exec", "globals", "setattr", "vars", "locals"):
            return None
    pending: list[ast.AST] = list(reversed(tree.body))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound[node.name] = node
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {alias.asname or alias.name.partition(".")[0]: node for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] = node
        elif not isinstance(node, ast.Lambda):
            pending += reversed(list(ast.iter_child_nodes(node)))
    return None if bound.keys() & {"*", "__getattr__"} else bound


def _called(node: ast.expr | None) -> str:
    """Return the last part of the name of what is called: `FastAgent` for `fast_agent.FastAgent(...)`."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Name):
        return node.func.id
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _unclear(agent: Definition) -> Iterator[Problem]:
    if agent.servers is None:
        hint = 'write them out: servers=["search", "files"]'
        yield Problem(
            agent.where_of("servers"),
            "`servers` is no list of literal names",
            hint,
            "warning",
            code=Code.SERVERS_NOT_LITERAL,
        )


def _imports(tree: ast.Module, package: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.name,)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join((*base, *([node.module] if node.module else [])))
            for alias in node.names:
                longer = () if alias.name == "*" else (f"{origin}.{alias.name}".lstrip("."),)
                yield (*longer, *([origin] if origin else []))
        elif _called_by_name(node):
            yield (node.args[0].value,)  # type: ignore[attr-defined]


def _called_by_name(node: ast.AST) -> bool:
    """Return whether `node` imports a module that it names by a literal, as `importlib.import_module("a.b")` does."""
    if not isinstance(node, ast.Call) or _called(node) not in ("import_module", "__import__") or not node.args:
        return False
    argument = node.args[0]
    return isinstance(argument, ast.Constant) and isinstance(argument.value, str) and not argument.value.startswith(".")
