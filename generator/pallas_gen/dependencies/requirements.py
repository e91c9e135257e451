"""The packages a project's code needs: its files -> what is installed into the image. Pure, over a reader of files.

Read is the first there is of pylock.toml, uv.lock, requirements.lock, requirements.txt and the dependencies of
pyproject.toml. The kit and fast-agent are in the image already, and a project with these two alone needs no other one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Where
from pallas_gen.dependencies import markers

TextOf = Callable[[str], str | None]
"""Returns the text of a file by its path in the project, None where there is none."""
Files = Mapping[str, str]
"""Texts by name: `requirements.txt`, or `uv.lock` with its `pyproject.toml`."""

PYLOCK = "pylock.toml"
UV_LOCK = "uv.lock"
PYPROJECT = "pyproject.toml"
REQUIREMENTS = "requirements.txt"
CANDIDATES = (PYLOCK, UV_LOCK, "requirements.lock", REQUIREMENTS, PYPROJECT)

_PRESENT = frozenset({"pallas-kit", "fast-agent-mcp"})
_OPTION = re.compile(r"\s--")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_INCLUDE = re.compile(r"(-r|--requirement|-c|--constraint)[ =]\s*(\S+)")
_LOCAL = re.compile(r"(-e|--editable)\b|\.{0,2}/|file:|\S+ ?@ ?file:")
CREDENTIALS = re.compile(r"://[^/\s]+@")
_OF_THE_PROJECT = ({"virtual": "."}, {"editable": "."}, {"directory": "."})
"""Where uv.lock says that the project itself comes from."""
_NO_TOML = "cannot be read as TOML"


def find(text_of: TextOf, path: str | None, problems: list[Problem]) -> Files:
    """Return what is to be installed by the file at `path`, or by the first one of the project; empty for nothing.

    What is wrong in it goes to `problems`.
    """
    if path is not None:
        return _read(text_of, path, problems)
    for name in CANDIDATES:
        if text_of(name) is not None:
            return _read(text_of, name, problems)
    return {}


def packages(files: Files) -> frozenset[str]:
    """Return the names of the packages that are installed by `files` into the image, as they are written."""
    if UV_LOCK in files:
        return _exported(_tables(tomllib.loads(files[UV_LOCK]), "package"))
    lines = [line for line in files.get(REQUIREMENTS, "").splitlines() if markers.applies(_marker(line))]
    return frozenset(match[0] for line in lines if (match := _NAME.match(line)))


def _marker(line: str) -> str:
    """Return the marker of a requirement, empty where it has none; hashes and other options come behind it."""
    return _OPTION.split(line.partition(";")[2], maxsplit=1)[0]


def _exported(tables: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Return the packages of a uv.lock that the project's own dependencies lead to: no group's and no extra's of it.

    Where no package is the project's own, all of them count.
    """
    projects = [table["name"] for table in tables if table.get("source") in _OF_THE_PROJECT]
    if not projects:
        return frozenset(table["name"] for table in tables)
    reached: set[tuple[str, str]] = set()
    pending = [(name, "") for name in projects]
    while pending:
        if (node := pending.pop()) in reached:
            continue
        reached.add(node)
        name, extra = node
        for table in (table for table in tables if table["name"] == name):
            optional = table.get("optional-dependencies")
            extras = optional if isinstance(optional, Mapping) else {}
            for edge in _tables(extras, extra) if extra else _tables(table, "dependencies"):
                if not markers.applies(str(edge.get("marker", ""))):
                    continue
                pending += [(edge["name"], text) for text in ("", *map(str, _list(edge, "extra")))]
    return frozenset(name for name, _ in reached) - set(projects)


def _read(text_of: TextOf, path: str, problems: list[Problem]) -> Files:
    text = text_of(path)
    if text is None:
        problems.append(
            Problem(
                Where(path),
                "no such file",
                "create it, or take `requirements` out of the fleet file",
                code=Code.REQUIREMENTS,
            )
        )
        return {}
    name = PurePosixPath(path).name
    if name in (PYLOCK, UV_LOCK, PYPROJECT) or name.startswith("pylock."):
        return _toml(text_of, path, text, problems)
    return _files(list(_lines(text_of, [path], text, problems)))


def _toml(text_of: TextOf, path: str, text: str, problems: list[Problem]) -> Files:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problems.append(Problem(Where(path), f"{_NO_TOML}: {error}", code=Code.REQUIREMENTS))
        return {}
    name = PurePosixPath(path).name
    if name == PYPROJECT:
        return _files(_pyproject(path, data, problems))
    if name == UV_LOCK:
        beside = str(PurePosixPath(path).with_name(PYPROJECT))
        project = text_of(beside)
        if project is None:
            problems.append(
                Problem(Where(path), f"has no {PYPROJECT} beside it, which it locks", code=Code.REQUIREMENTS)
            )
            return {}
        wanted = _toml(text_of, beside, project, problems)
        return {PYPROJECT: project, UV_LOCK: text} if wanted else {}
    return _files(_pylock(path, data, problems))


def _pyproject(path: str, data: Mapping[str, Any], problems: list[Problem]) -> list[str]:
    project = data.get("project", {})
    listed = project.get("dependencies", []) if isinstance(project, Mapping) else None
    if not isinstance(listed, list) or not all(isinstance(line, str) for line in listed):
        problems.append(
            Problem(Where(path), "`project.dependencies` must be a list of requirements", code=Code.REQUIREMENTS)
        )
        return []
    if "dependencies" in _list(project, "dynamic"):
        hint = f"write them into {REQUIREMENTS}, or lock them: uv lock"
        problems.append(
            Problem(Where(path), "its dependencies are dynamic and cannot be read", hint, code=Code.REQUIREMENTS)
        )
    return [line for line in listed if _plain(line) not in _PRESENT]


def _pylock(path: str, data: Mapping[str, Any], problems: list[Problem]) -> list[str]:
    """Return the packages of a lock (PEP 751) as requirements with hashes."""
    lines = []
    for package in _tables(data, "packages"):
        archives = [*_list(package, "wheels"), *([package["sdist"]] if "sdist" in package else [])]
        digests = [archive.get("hashes") for archive in archives if isinstance(archive, Mapping)]
        hashes = sorted({str(each["sha256"]) for each in digests if isinstance(each, Mapping) and "sha256" in each})
        if not hashes or "version" not in package:
            message = f"`{package.get('name')}` has no version with hashes and cannot be installed from an index"
            problems.append(Problem(Where(path), message, code=Code.REQUIREMENTS))
            continue
        if _plain(package["name"]) not in _PRESENT:
            marker = f" ; {package['marker']}" if "marker" in package else ""
            pins = " ".join(f"--hash=sha256:{digest}" for digest in hashes)
            lines.append(f"{package['name']}=={package['version']}{marker} {pins}")
    return lines


def _lines(text_of: TextOf, paths: Sequence[str], text: str, problems: list[Problem]) -> Iterator[str]:
    """Yield the requirements of the last of `paths` and of those it names, without comments, one a line."""
    path = paths[-1]
    for number, line in _joined(text):
        where = Where(path, number, 1)
        if include := _INCLUDE.fullmatch(line):
            other = str(PurePosixPath(path).parent / include[2])
            included = text_of(other)
            if other in paths:
                problems.append(Problem(where, f"names `{other}`, by which it is named itself", code=Code.REQUIREMENTS))
            elif included is None:
                problems.append(Problem(where, f"there is no file `{other}` in the project", code=Code.REQUIREMENTS))
            elif include[1] in ("-r", "--requirement"):
                yield from _lines(text_of, [*paths, other], included, problems)
        elif _LOCAL.match(line):
            hint = "name a package of an index, or build an image of your own: `image`"
            problems.append(Problem(where, "a package of this machine reaches no image", hint, code=Code.REQUIREMENTS))
        elif CREDENTIALS.search(line):
            hint = "put the address into pip's own settings, which go into the build as a secret"
            problems.append(
                Problem(where, "a password stands in a URL, and would be copied", hint, code=Code.PLAIN_SECRET)
            )
        elif _plain(line) not in _PRESENT:
            yield line


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, those that end in a backslash joined with the next."""
    start = 0
    pending: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        start = start if pending else number
        pending.append(re.sub(r"(^|\s)#.*", "", line).strip().removesuffix("\\").strip())
        if line.rstrip().endswith("\\"):
            continue
        if joined := " ".join(filter(None, pending)):
            yield start, joined
        pending = []


def _tables(data: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the tables of a list of packages, each with a name; none where there is anything else."""
    return [table for table in _list(data, key) if isinstance(table, Mapping) and isinstance(table.get("name"), str)]


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    """Return the list at `key`, empty where there is anything else."""
    value = data.get(key)
    return value if isinstance(value, list) else []


def _files(lines: list[str]) -> Files:
    """Return the one file with `lines`; nothing where no line names a package."""
    named = any(not line.startswith("-") for line in lines)
    return {REQUIREMENTS: "".join(f"{line}\n" for line in lines)} if named else {}


def _plain(requirement: str) -> str:
    match = _NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", match[0]).lower() if match else ""
