"""One side of a comparison, read from where it is named: a fleet file or folder, a git revision, a running registry."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.documents import server_json
from pallas_contract.fleet import source
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.probe import http_client
from pallas_contract.problems import Problem, Refused, Where
from pallas_contract.validate import load, masking

GIT = "git:"
_PATIENCE = 30.0
"""Seconds for the document of a registry, and for git."""


class NoRegistry(Exception):
    """Nobody answers at a URL, or nobody who is a registry; the text is for the user."""


def is_registry(side: str) -> bool:
    """Return whether a side is the URL of a registry."""
    return side.startswith(("http://", "https://"))


def fleet(side: str, beside: Path) -> ResolvedFleet:
    """Return the fleet of a file, a folder, or `git:REVISION`, where the file is the one at the path `beside`.

    Raises:
        Refused: it is not there, or no fleet file.
    """
    if side.startswith(GIT):
        return load.parse(source.parse(_of_revision(side.removeprefix(GIT), beside), name=f"{side}:{beside.name}"))
    return load.parse(source.read(names.fleet_file(side, {})))


def _of_revision(revision: str, file: Path) -> str:
    """Return the text that a fleet file had in a revision of its repository."""
    folder = file.absolute().parent
    hint = "name a commit, branch or tag, as in git:main"
    where = Where(f"{GIT}{revision}")
    if not revision or revision.startswith("-"):
        raise Refused([Problem(where, "is no revision", hint, code=Code.NO_SUCH_REVISION)])
    command = ["git", "-C", str(folder), "show", "--no-textconv", f"{revision}:./{file.name}"]
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=_PATIENCE)  # noqa: S603 - git, by name
    except FileNotFoundError:
        raise Refused([Problem(where, "git is not here", "install it", code=Code.NO_SUCH_REVISION)]) from None
    except subprocess.TimeoutExpired:
        message = f"git has not answered in {_PATIENCE:g} s"
        raise Refused([Problem(where, message, hint, code=Code.NO_SUCH_REVISION)]) from None
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        message = f"cannot be read: {' '.join(reason).removeprefix('fatal: ')}"
        raise Refused([Problem(where, message, hint, code=Code.NO_SUCH_REVISION)])
    try:
        return done.stdout.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused([Problem(where, "is not UTF-8 text", code=Code.UNREADABLE_FILE)]) from None


def document(url: str) -> Mapping[str, Any]:
    """Return the document of the agents that the registry at `url` has.

    Raises:
        NoRegistry: there is none.
        Refused: it is no URL, or one with a user, whose password every message would have.
    """
    _refuse_unfit(url)
    return _answer(url, names.SERVER_JSON_PATH)


def services(url: str) -> Mapping[str, Any]:
    """Return the document of the services that the registry at `url` has, which says whose it is.

    Raises:
        NoRegistry: there is none, or an older one.
    """
    return _answer(url, names.SERVICES_PATH)


def _refuse_unfit(url: str) -> None:
    try:
        parts = urlsplit(url)
        fits = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:  # a bracket that is not closed, a port that is no number
        fits = False
    if not fits:
        where = Where(masking.masked(url)[:200])
        hint = "write it as http://127.0.0.1:24200; a registry asks for no password"
        raise Refused([Problem(where, "is no http(s) URL without a user", hint, code=Code.NOT_A_URL)])


def _answer(url: str, path: str) -> Mapping[str, Any]:
    try:
        return asyncio.run(_document(f"{url.rstrip('/')}{path}"))
    except http_client.Unreachable as error:
        raise NoRegistry(f"no registry answers at {url}: {error.reason.message}") from None
    except TimeoutError:
        raise NoRegistry(f"no registry answers at {url}: no answer in {_PATIENCE:g} s") from None
    except ValueError:
        raise NoRegistry(f"what answers at {url} is no registry of pallas-kit") from None


async def _document(url: str) -> Mapping[str, Any]:
    async with asyncio.timeout(_PATIENCE):
        response = await http_client.request("GET", url, limit=server_json.LARGEST)
    document = json.loads(response.body)
    if response.status != 200 or not isinstance(document, dict):
        raise ValueError(url)
    return document
