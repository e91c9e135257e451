"""Tools that are functions in a file: fast-agent loads them when it makes the agent, which does not start without."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator

from pallas_contract.codes import Code
from pallas_contract.definitions import literals, module
from pallas_contract.definitions.definition import Definition, FunctionTool
from pallas_contract.definitions.read import TextOf
from pallas_contract.problems import Problem, Refused
from pallas_contract.validate.suggestions import Suggestions

IsFile = Callable[[str], bool]
"""Whether there is a file at a path from the project folder."""
_DEFINE = "define it there"
_NO_FUNCTIONS = (ast.Constant, ast.Dict, ast.DictComp, ast.JoinedStr, ast.List, ast.ListComp, ast.Set, ast.Tuple)


def problems(definition: Definition, text_of: TextOf, is_file: IsFile, suggestions: Suggestions) -> Iterator[Problem]:
    """Yield a problem per function tool whose file or function is not there, as far as the text of the file tells.

    Of a file outside of the project, or behind a link that leads there, nothing is said.
    """
    for tool in definition.function_tools:
        path, function = split(tool)
        if not path or not function:
            start = "this card's folder" if tool.folder else "the folder of agents.yaml"
            hint = f"write `FILE.py:FUNCTION`, the file as it is seen from {start}"
            yield Problem(tool.where, f"`{tool.entry}` names no function in a file", hint, code=Code.FUNCTION_TOOL)
        elif path.startswith(("/", "..", "~")):
            continue
        elif not is_file(path):
            message = f"there is no file {path}, from which its tool `{function}` is loaded: the agent does not start"
            yield Problem(
                tool.where,
                message,
                f"create it, or correct the path{_elsewhere(tool, is_file)}",
                code=Code.FUNCTION_TOOL,
            )
        elif not path.endswith(".py"):
            message = f"{path} is no Python file, and tools are loaded from `.py` alone: the agent does not start"
            yield Problem(tool.where, message, "rename it", code=Code.FUNCTION_TOOL)
        else:
            yield from _function(tool, text_of, suggestions)


def split(tool: FunctionTool) -> tuple[str, str]:
    """Return the path of the file, from the project folder, and the name of the function; empty what is missing."""
    file, _, function = tool.entry.rpartition(":")
    file = file.strip()
    return (os.path.normpath(os.path.join(tool.folder, file)) if file else ""), function.strip()


def _function(tool: FunctionTool, text_of: TextOf, suggestions: Suggestions) -> Iterator[Problem]:
    """Yield what keeps a function from being loaded from a file that is there."""
    path, function = split(tool)
    try:
        text = text_of(path)
        tree = module.parse(text, name=path).tree if text is not None else None
    except Refused as refused:
        yield from refused.problems
        return
    names = module.names(tree) if tree else None
    if tree is None or names is None:
        return
    functions = [name for name, node in names.items() if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    hint = suggestions.hint(function, functions, f"{_DEFINE}, or name one of") if functions else _DEFINE
    if function not in names:
        message = f"there is no function `{function}` in {path}: the agent does not start"
        yield Problem(tool.where, message, hint, code=Code.FUNCTION_TOOL)
    elif isinstance(literals.constants(tree).get(function), _NO_FUNCTIONS):
        yield Problem(
            tool.where,
            f"`{function}` in {path} is no function: the agent does not start",
            hint,
            code=Code.FUNCTION_TOOL,
        )


def _elsewhere(tool: FunctionTool, is_file: IsFile) -> str:
    """Return a hint at the file that was meant, where it stands beside agents.yaml or beside the card."""
    file, _, function = tool.entry.rpartition(":")
    for path in (os.path.normpath(file), os.path.join(tool.folder, os.path.basename(file))):
        if not path.startswith(("/", "..")) and is_file(path):
            return f": there is {path}, write `{os.path.relpath(path, tool.folder or '.')}:{function}`"
    return ""
