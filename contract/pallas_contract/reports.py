"""Problems for programs instead of people: one JSON document, or a SARIF log (OASIS, 2.1.0) as code hosts take it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Literal
from urllib.parse import quote

from pallas_contract import __version__
from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Where

Form = Literal["json", "sarif"]
_SARIF = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render(form: Form, problems: Iterable[Problem], *, tool: str) -> str:
    """Return the document with all problems, each once and in order, ending in a newline; `tool` is the command."""
    unique = sorted(set(problems))
    document = _sarif(unique, tool) if form == "sarif" else _json(unique)
    return f"{json.dumps(document, indent=2, ensure_ascii=False)}\n"


def parse(text: str) -> list[Problem]:
    """Return the problems of a JSON document.

    Raises:
        ValueError: it is none.
    """
    try:
        return [_problem(entry) for entry in json.loads(text)["problems"]]
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from None


def located(problem: Problem, folder: str) -> Problem:
    """Return a problem with the path of its file below `folder`, where it has the path in the project."""
    where = problem.where
    path = str(PurePosixPath(folder, where.file)) if is_file(where) else where.file
    return replace(problem, where=replace(where, file=path))


def is_file(where: Where) -> bool:
    """Return whether a place is in a file, and not a variable (`$NAME`), an option (`-n`) or a word of the user's."""
    return bool(where.line) or (not where.file.startswith(("$", "-")) and "." in where.file)


def _json(problems: Sequence[Problem]) -> Mapping[str, Any]:
    counts = {f"{level}s": sum(problem.level == level for problem in problems) for level in ("error", "warning")}
    return {**counts, "problems": [_entry(problem) for problem in problems]}


def _entry(problem: Problem) -> Mapping[str, Any]:
    """Return one problem; keys that it has nothing for are left out."""
    where = problem.where
    entry = {
        "code": str(problem.code),
        "title": problem.code.label,
        "level": problem.level,
        "file": where.file,
        "line": where.line,
        "column": where.column,
        "field": where.field,
        "message": problem.message,
        "hint": problem.hint,
    }
    return {key: value for key, value in entry.items() if value}


def _problem(entry: Mapping[str, Any]) -> Problem:
    where = Where(entry["file"], entry.get("line", 0), entry.get("column", 0), entry.get("field", ""))
    return Problem(where, entry["message"], entry.get("hint", ""), entry["level"], code=Code(entry["code"]))


def _sarif(problems: Sequence[Problem], tool: str) -> Mapping[str, Any]:
    codes = sorted({problem.code for problem in problems})
    driver = {"name": tool, "version": __version__, "rules": [_rule(code) for code in codes]}
    results = [_result(problem, codes.index(problem.code)) for problem in problems]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SARIF, "version": "2.1.0", "runs": [run]}


def _rule(code: Code) -> Mapping[str, Any]:
    name = "".join(word.capitalize() for word in code.label.split("-"))
    return {"id": str(code), "name": name, "shortDescription": {"text": code.label.replace("-", " ")}}


def _result(problem: Problem, index: int) -> Mapping[str, Any]:
    text = f"{problem.message}\n{problem.hint}" if problem.hint else problem.message
    return {
        "ruleId": str(problem.code),
        "ruleIndex": index,
        "level": problem.level,
        "message": {"text": text},
        "locations": [_location(problem.where)],
    }


def _location(where: Where) -> Mapping[str, Any]:
    logical = where.field if is_file(where) else f"{where.file} {where.field}".rstrip()
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": logical}]} if logical else {}
    if is_file(where):
        physical: dict[str, Any] = {"artifactLocation": {"uri": quote(where.file)}}
        if where.line:
            physical["region"] = {"startLine": where.line, "startColumn": max(where.column, 1)}
        location["physicalLocation"] = physical
    return location
