"""Raw tree -> `ResolvedFleet`: the shape of agents.yaml, with every deviation as a problem that names its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pallas_contract.codes import Code
from pallas_contract.fleet import model, source
from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.resolved import ResolvedFleet, resolve
from pallas_contract.fleet.source import Source
from pallas_contract.problems import MOST, Problem, Refused, more, refuse_errors
from pallas_contract.validate import graph_rules, habits, secret_shapes
from pallas_contract.validate.suggestions import Suggestions, suggested

_BY_TYPE = {
    "string_type": "text",
    "string_too_short": "some text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "list_type": "a list",
    "model_type": "a mapping",
    "too_short": "a mapping with at least one entry",
}
_BY_KEY = {
    "publish": "true, false, or the IP address to listen on",
    "depends_on": "a list of names, or a mapping such as `research: {required: false}`",
    "networks": "`isolated`, `flat`, or a mapping with `mode` and `pool`",
    "pool": "an IPv4 network such as 10.213.0.0/16",
    "image": "the name of an image, or a mapping with `agent`, `registry` and `code`",
}
_REQUIRED = {"port": "add `port: 24201`, a free one", "name": "add `name: my-fleet`", "agents": "add `agents: {...}`"}
_REMEDIES = {
    "port": "choose a free one from 1024 to 65535, for example 24201",
    "registry_port": "choose a free one from 1024 to 65535, for example 24200",
    "version": "it is the version of your fleet; take it away if you have none",
    "card": "write the path as it is seen from the folder of agents.yaml: `agents/NAME.md`",
}
"""Remedies for values that cannot be, by their key."""
_MOST = 10 * MOST
"""Deviations of a shape that become problems, several of which can be at one place."""
_PRIVATE = frozenset({"otlp_endpoint", "url", "env", "secrets", "tokens", "access"})


def load(path: Path) -> tuple[ResolvedFleet, Source, list[Problem]]:
    """Read, check and cross-check agents.yaml, and merge its defaults; the third value is its warnings.

    Raises:
        Refused: with every error found.
    """
    tree = source.read(path)
    fleet, warnings = check(tree)
    return fleet, tree, warnings


def check(tree: Source, outside: Mapping[str, Any] | None = None) -> tuple[ResolvedFleet, list[Problem]]:
    """Check the shape of `tree` and every rule over several of its keys; the second value is its warnings.

    `outside` has the names of fast-agent's configured servers, for words about them.

    Raises:
        Refused: with every error of the shape, or of the rules.
    """
    fleet = parse(tree)
    return fleet, refuse_errors(graph_rules.problems(fleet, tree, outside or {}))


def parse(tree: Source) -> ResolvedFleet:
    """Validate the shape of `tree` and merge its defaults; `graph_rules` says whether it can be run.

    Raises:
        Refused: with one problem per deviation.
    """
    if not isinstance(tree.data, Mapping):
        hint = "see the README for a fleet file of five lines"
        raise Refused(
            [
                tree.problem(
                    message="must be a mapping with the keys `name` and `agents`", hint=hint, code=Code.WRONG_VALUE
                )
            ]
        )
    try:
        return resolve(Fleet.model_validate(tree.data))
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=True)
        suggestions = Suggestions()
        problems = [_problem(tree, detail, suggestions) for detail in details[:_MOST]]
        # Of several at one place, as from the branches of a union, the first one counts.
        single = {problem.where: problem for problem in reversed(_without_echoes(problems))}
        unread = [more(tree.where(), len(details) - _MOST)] if len(details) > _MOST else []
        raise Refused([*single.values(), *unread]) from None


def _without_echoes(problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems but those of a required key that an unknown one beside it was meant to be.

    Nor is a mapping no text where it is wrong as a mapping, the other branch of a union.
    """
    meant = set()
    inside = {problem.where.field.rpartition(".")[0] for problem in problems}
    problems = [
        problem for problem in problems if problem.message != "must be text" or problem.where.field not in inside
    ]
    for problem in problems:
        if problem.code is Code.UNKNOWN_KEY and (nearest := suggested(problem.hint)):
            parent, _, _ = problem.where.field.rpartition(".")
            meant.add(f"{parent}.{nearest}" if parent else nearest)
    return [problem for problem in problems if problem.code is not Code.MISSING_KEY or problem.where.field not in meant]


def _problem(tree: Source, detail: ErrorDetails, suggestions: Suggestions) -> Problem:
    kind = detail["type"]
    value = detail["input"]
    path = _path(tree.data, detail["loc"])
    if kind == "missing":
        path = (*path, detail["loc"][-1])
    if kind == "extra_forbidden":
        keys = _known_keys(path[:-1])
        hint = habits.unknown(path) if path else ""
        if not hint and keys:
            hint = suggestions.hint(str(path[-1]) if path else "", keys, "known keys")
        return tree.problem(*path, message="unknown key", hint=hint, code=Code.UNKNOWN_KEY)
    if kind == "missing":
        return tree.problem(*path, message="is required", hint=_REQUIRED.get(str(path[-1]), ""), code=Code.MISSING_KEY)
    hint = habits.no_mapping(path, value) if kind in ("model_type", "dict_type") else habits.path_of(path, value)
    # YAML reads `version: 1.0` as a number, and quoted numbers and truth values as text.
    if kind == "string_type" and isinstance(value, int | float) and not secret_shapes.is_secret_key(str(path[-1])):
        hint = "put the value in quotes"
    elif kind in ("int_type", "float_type", "bool_type") and isinstance(value, str) and source.is_plain(value):
        hint = "write it without quotes"
    if kind == "list_type":
        hint = hint or habits.no_list(path)
    hint = hint or _REMEDIES.get(str(path[-1]) if path else "", "")
    if path == ("agents",):
        hint = hint or "write `agents: {scout: {module: agents.scout, port: 24201}}`"
    return tree.problem(*path, message=f"{_message(path, detail)}{_got(path, value)}", hint=hint, code=Code.WRONG_VALUE)


def _path(data: Any, location: Sequence[str | int]) -> tuple[str | int, ...]:
    """Return the parts of `location` that lead through `data`.

    The others are pydantic's own: the branch of a union that it tried (`bool`, `dict[str,Need]`), or `[key]`. A key of
    the file may be spelled like any of them, so their text does not tell.
    """
    path: list[str | int] = []
    for part in location:
        inside = data if isinstance(data, Mapping) else range(len(data)) if isinstance(data, list) else ()
        if part in inside:
            data = data[part]
            path.append(part)
    return tuple(path)


def _message(path: tuple[str | int, ...], detail: ErrorDetails) -> str:
    if detail["type"] == "string_pattern_mismatch":
        return f"must be {model.PATTERNS[detail['ctx']['pattern']]}"
    by_key = [_BY_KEY[part] for part in reversed(path) if part in _BY_KEY]
    if by_key and (path[-1] in _BY_KEY or isinstance(path[-1], int)):
        return f"must be {by_key[0]}"
    if detail["type"] == "too_short" and detail["ctx"]["field_type"] == "List":
        return "must be a list with at least one entry"
    if detail["type"] in _BY_TYPE:
        return f"must be {_BY_TYPE[detail['type']]}"
    message = detail["msg"].replace("Input should be", "must be").removeprefix("Value error, ")
    return message[0].lower() + message[1:]


def _got(path: tuple[str | int, ...], value: Any) -> str:
    """Return the refused value as an end of the message, unless it may be somebody's secret."""
    text = repr(value)
    if _PRIVATE & set(path) or isinstance(value, Mapping | list) or secret_shapes.known_shape(text):
        return ""
    return f", not {text if len(text) <= 60 else text[:57] + '...'}"


def _known_keys(path: tuple[str | int, ...]) -> list[str]:
    """Return the keys allowed at `path`, by walking the models along it; none where they do not lead there."""
    at: Any = Fleet
    for part in path:
        if _is_model(at):
            at = _plain(at.model_fields[str(part)].annotation) if str(part) in at.model_fields else None
        else:
            # `dict[K, V]` or `list[V]`: a path goes on into the last one.
            at = _plain(get_args(at)[-1]) if get_args(at) else None
    return sorted(at.model_fields) if _is_model(at) else []


def _plain(annotation: Any) -> Any:
    """Return the model or container behind `X | None` and the like."""
    if get_origin(annotation) in (Union, UnionType):
        options = [_plain(option) for option in get_args(annotation)]
        known = sorted(options, key=lambda option: not _is_model(option))
        return next((option for option in known if _is_model(option) or get_origin(option)), annotation)
    return annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
