"""Import the user's agent module, and say what is wrong with it in the user's terms."""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from fast_agent.tools.function_tool_loader import build_default_function_tool, load_function_from_spec
from pydantic import ValidationError

from pallas_agent_runtime.config.settings import Settings
from pallas_contract.codes import Code
from pallas_contract.definitions import read
from pallas_contract.problems import Problem, Refused, refuse_errors
from pallas_contract.project import code
from pallas_contract.validate.code import imports, rules

_REQUIREMENTS = "requirements.txt"
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def load_module(settings: Settings, name: str) -> ModuleType:
    """Import module `name` of the project. The process's own arguments are hidden from it: `FastAgent` parses them.

    Raises:
        Refused: it cannot be imported, with the reason and the line of the project it comes from.
    """
    keys = ("agents", settings.name, "module")
    try:
        with hidden_arguments(), importable(settings.project):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # The module, or a package on the path to it; any other name is an import in the user's code.
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            hint = f"create {name.replace('.', '/')}.py in {settings.project}, or correct the name"
            raise Refused(
                [settings.tree.problem(*keys, message=f"there is no module `{name}`", hint=hint, code=Code.NO_MODULE)]
            ) from None
        hint = f"{_installing(error.name or '', settings)}, or remove the import{_undelivered(settings)}"
        message = f"`{name}` cannot be imported: {error}{_origin(error, settings.project)}"
        raise Refused([settings.tree.problem(*keys, message=message, hint=hint, code=Code.CODE_FAILS)]) from None
    # A script that calls sys.exit() when imported must not end the agent without a message.
    except (Exception, SystemExit) as error:
        message = f"`{name}` cannot be imported: {reason(error)}{_origin(error, settings.project)}"
        statement = f"import {name}" if name.replace(".", "").isidentifier() else f'__import__("{name}")'
        hint = f"try it alone: python -c '{statement}'"
        if isinstance(error, FileNotFoundError):
            hint += _undelivered(settings)
        raise Refused([settings.tree.problem(*keys, message=message, hint=hint, code=Code.CODE_FAILS)]) from None


def check_files(settings: Settings, agents: Iterable[Mapping[str, Any]]) -> None:
    """Check that all is there that fast-agent makes `agents` from, which it finds out only then: files and tools.

    Tools that are functions in files are loaded as it does: their files are the user's code, and run.

    Raises:
        Refused: something is not there, or cannot be loaded.
    """
    project = settings.project
    text_of = code.reader(project)
    refuse_errors(rules.absent_files(settings.agent, text_of, code.files(project)))
    definitions = read.definitions(settings.agent, text_of).agents
    places = {tool.entry: tool.where for definition in definitions for tool in definition.function_tools}
    key = settings.tree.where("agents", settings.name, "module" if settings.agent.module else "card")
    problems = []
    for data in agents:
        written = data["config"].function_tools or data.get("function_tools") or []
        folder = Path(data["source_path"]).parent if data.get("source_path") else None
        for entry in [written] if isinstance(written, str) else written:
            try:
                _load_tool(entry, folder)
            except Exception as error:  # whatever the user's code raises
                cause = error.__cause__ or error
                tool = getattr(entry, "entrypoint", None) or getattr(entry, "__name__", None) or entry
                message = f"its tool `{tool}` cannot be loaded: {reason(cause)}{_origin(cause, project)}"
                hint = "correct it, or remove it from `function_tools`"
                if isinstance(cause, ModuleNotFoundError):
                    hint = f"{_installing(cause.name or '', settings)}, or remove the import{_undelivered(settings)}"
                problems.append(Problem(places.get(str(tool), key), message, hint, code=Code.CODE_FAILS))
    refuse_errors(problems)


def _load_tool(entry: Any, folder: Path | None) -> None:
    """Make a tool as fast-agent does of an entry of `function_tools`: a function, alone or named, or a file's."""
    spec = entry if isinstance(entry, str) else getattr(entry, "entrypoint", None)
    function = load_function_from_spec(spec, folder) if isinstance(spec, str) else getattr(entry, "function", entry)
    if callable(function):
        build_default_function_tool(function)


def reason(error: BaseException) -> str:
    """Kind and text of an error on one line, without the values that pydantic quotes: one of them may be a secret."""
    if isinstance(error, ValidationError):
        details = error.errors(include_url=False, include_input=False, include_context=False)
        text = "; ".join(f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in details)
    else:
        text = str(error)
    return " ".join(f"{type(error).__name__}: {text}".split())[:300]


@contextmanager
def hidden_arguments() -> Iterator[None]:
    arguments, sys.argv = sys.argv, sys.argv[:1]
    try:
        yield
    finally:
        sys.argv = arguments


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Put `folder` first on the import path; it stays there, as the agent may import more of its own code later."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
    yield


def _installing(module: str, settings: Settings) -> str:
    """Return how to install what brings a module: with the project's requirements, where they name it."""
    path = settings.project / _REQUIREMENTS
    text = path.read_text("utf-8", errors="replace") if path.is_file() else ""
    named = [match[0] for line in text.splitlines() if (match := _PACKAGE.match(line))]
    if settings.placement != "container" and imports.is_brought(module.partition(".")[0], named):
        return f"install what {_REQUIREMENTS} names: `{sys.executable} -m pip install -r {path}`"
    return f"install the package that brings `{module}`"


def _undelivered(settings: Settings) -> str:
    """Return one more thing to do in a container, which has of the project only what code and cards name."""
    key = f"`agents.{settings.name}.files`"
    return f"; if it is the project's own, name it in {key}" if settings.placement == "container" else ""


def _origin(error: BaseException, project: Path) -> str:
    """` (agents/jarvis.py:3)`: the innermost line of the project that led to `error`, or nothing."""
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_relative_to(project):
        return f" ({Path(error.filename).relative_to(project)}:{error.lineno})"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        # The project's virtual environment often lies in its folder; the mistake is rarely there.
        if path.is_relative_to(project) and "site-packages" not in path.parts:
            return f" ({path.relative_to(project)}:{frame.lineno})"
    return ""
