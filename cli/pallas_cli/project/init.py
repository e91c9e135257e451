"""`pallas init`: the files of a first project, or of one of the kit's examples, in a folder. Nothing is overwritten."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath

from pallas_cli.project import examples, starter
from pallas_cli.project.examples import SECRETS
from pallas_contract import extras, names
from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Refused, Where

_NO_NAME = "fleet"
_PACKAGES = PurePosixPath("requirements.lock")
"""What the code of a project imports besides."""
_UP = "in a terminal of its own; Ctrl-C stops it"


def run(options: Namespace) -> int:
    """Write the project and say what comes next; returns the exit code.

    Raises:
        Refused: a file of the project is there already; then nothing is written.
    """
    folder: Path = options.folder
    token = ""
    if options.example:
        token = examples.TOKENS.get(options.example, "")
        files: Mapping[PurePosixPath, str] = examples.files(options.example)
        agent, message = examples.QUESTIONS[options.example]
    else:
        files = starter.files(fleet_name(folder.resolve().name))
        agent, message = starter.AGENT, starter.MESSAGE
    beside = {path: text for path, text in starter.beside().items() if path not in files}
    retained = sorted(path for path in beside if (folder / path).exists())
    refuse_present(folder, files)
    write(folder, {**files} | {path: text for path, text in beside.items() if path not in retained})
    if options.quiet:
        return 0
    out = sys.stdout
    out.writelines(f"wrote {folder / path}\n" for path in sorted({*files, *beside} - set(retained)))
    out.writelines(f"left {folder / path} as it is\n" for path in retained)
    out.write("\nnext:\n")
    out.writelines(f"  {line}\n" for line in _next(folder, agent, message, packages=_PACKAGES in files, token=token))
    return 0


def fleet_name(folder: str) -> str:
    """Return the name of a fleet in a folder of that name: lower case, hyphens, at most as long as a name may be."""
    name = re.sub(r"[^a-z0-9]+", "-", folder.lower()).strip("-")[: names.MAX_NAME].strip("-")
    return name if names.is_name(name) else _NO_NAME


def write(folder: Path, files: Mapping[PurePosixPath, str]) -> None:
    """Write `files` below `folder`, all or none; one that is there is never written over.

    Raises:
        OSError: one cannot be written; those before it were taken away again.
    """
    written: list[Path] = []
    try:
        for path, text in files.items():
            target = folder / path
            is_secret = path.parts[0] == SECRETS
            mode = _secret_mode(target.parent) if is_secret else 0o666
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(target, "x", encoding="utf-8", opener=partial(os.open, mode=mode)) as file:
                written.append(target)
                if is_secret:
                    os.chmod(file.fileno(), mode)  # whatever the umask: with 077 no container could read it
                file.write(text)
    except OSError:
        for target in written:
            with contextlib.suppress(OSError):
                target.unlink()
        raise


def _secret_mode(folder: Path) -> int:
    """Return the mode of a secret file in a folder, which is made for its user alone where it is not there.

    In a folder that nobody else enters the file itself may be read: compose mounts it without its folder, and the
    containers' user owns nothing here (docs/decisions/0056). In one of before it is for its user alone.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(0o700)
    return 0o600 if folder.stat().st_mode & 0o077 else 0o644


def refuse_present(folder: Path, files: Iterable[PurePosixPath]) -> None:
    """Refuse, by name, files that are below `folder` already.

    Raises:
        Refused: with one problem per file.
    """
    hint = "nothing was written: choose another name or folder"
    present = [path for path in sorted(files) if (folder / path).exists() or (folder / path).is_symlink()]
    if present:
        raise Refused(
            [Problem(Where(str(folder / path)), "is there already", hint, code=Code.ALREADY_THERE) for path in present]
        )


def _next(folder: Path, agent: str, message: str, *, packages: bool, token: str) -> Iterable[str]:
    """Yield the commands that show the project at work."""
    if folder.resolve() != Path.cwd():
        yield f"cd {folder}"
    if extras.missing("agent", "registry", "testing"):
        yield f"pip install '{extras.DISTRIBUTION}[all]'"
    if packages:
        yield f"pip install -r {_PACKAGES}"
    yield f"pallas up        # {_UP}"
    shown = f"PALLAS_TOKEN=$(cat {token}) " if token else ""
    yield f'{shown}pallas call {agent} "{message}"'
