"""Secret files of a program: where they are in a container and beside agents.yaml, and the text in them."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from pathlib import Path

from pallas_contract import limited_file
from pallas_contract.codes import Code
from pallas_contract.fleet.source import Source
from pallas_contract.launch.secret_files import Secret
from pallas_contract.problems import Problem, Refused, Where, refuse_errors


def locate(key: str, file: str, project: Path, secrets: Path) -> Path:
    """Return the path of a secret file: `key` in the secrets folder of a container, else what agents.yaml says."""
    mounted = secrets / key
    return mounted if mounted.is_file() else project / file


def read(path: Path) -> str:
    """Return the text of a secret file.

    Raises:
        Refused: it cannot be read, naming the file and the user that tried.
    """
    try:
        text = limited_file.text(path)
    except OSError as error:
        message = f"cannot be read by uid {os.getuid()}: {limited_file.reason(error)}"
        hint = "make it readable for that user: `chmod o+r`, or change its owner"
        if isinstance(error, limited_file.TooLarge):
            hint = "it is no secret: name another file"
        raise Refused([Problem(Where(str(path)), message, hint, code=Code.SECRET_FILE)]) from None
    except UnicodeDecodeError as error:
        raise Refused(
            [Problem(Where(str(path)), f"is not UTF-8 text (byte {error.start})", code=Code.SECRET_FILE)]
        ) from None
    if "\0" in text:  # no environment can hold it
        raise Refused(
            [
                Problem(
                    Where(str(path)),
                    f"has a NUL in it (byte {text.encode().index(0)})",
                    "save it as UTF-8",
                    code=Code.SECRET_FILE,
                )
            ]
        )
    return text


def value(text: str) -> str:
    """Return the value in the text of a secret file: one trailing newline is not part of it."""
    return text.removesuffix("\n").removesuffix("\r")


def variables(
    known: Iterable[Secret], tree: Source, defined: Container[str], *, project: Path, secrets: Path
) -> dict[str, str]:
    """Return the environment variables among `known`, from their files; one that is `defined` already is left alone.

    `secrets` is the folder of a container's secret files, `project` that of agents.yaml.

    Raises:
        Refused: files are missing, each of them named, or one cannot be read.
    """
    values = {}
    problems = []
    for secret in known:
        if not secret.is_variable or secret.target in defined:
            continue
        path = locate(secret.target, secret.file, project, secrets)
        if path.is_file():
            values[secret.target] = value(read(path))
        else:
            hint = f"create it, or set the environment variable {secret.target}"
            message = f"there is no file {secret.file}"
            problems.append(tree.problem(*secret.place, message=message, hint=hint, code=Code.SECRET_FILE))
    refuse_errors(problems)
    return values
