"""`pallas-gen audit verify`: whether the records of a gateway are what the gateway has written."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Refused, Where
from pallas_gen.console import WORLD, FormOption, command, note, report, reporting

if TYPE_CHECKING:
    from pallas_contract.documents.audit_record import Link

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="A file of the audit, several, or the folder with all of them.")
]
KeyFile = Annotated[Path, typer.Option("--key-file", help="The secret file under `gateway.audit.key`.")]
Head = Annotated[
    str | None,
    typer.Option(metavar="N:MAC", help="A record that must be there, from the gateway's log or its /healthz."),
]
_HEAD = re.compile(r"([1-9][0-9]{0,15}):([0-9a-f]{64})")


def add_audit(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    audit = typer.Typer(help="Check what the gateway has recorded.", no_args_is_help=True)
    app.add_typer(audit, name="audit")
    command(audit, "verify", "pallas-gen audit verify .pallas/gateway/audit --key-file secrets/audit.key")(_verify)


def _verify(files: Files, *, key_file: KeyFile, head: Head = None, form: FormOption = "text") -> None:
    """Check that each record of a gateway's audit follows the one before, and name the first that does not.

    Exit 0 where all do, 1 where one does not, 2 where the input is wrong. A last record without an end is a warning: a
    gateway that was killed leaves one. An end that was cut off between two records shows only against `--head`.
    """
    from pallas_contract.documents import audit_check

    with reporting(form, Path("audit")):
        wanted = _link(head)
        key = _key(key_file)
        paths = _paths(files)
        with ExitStack() as stack:
            lines = [(str(path), stack.enter_context(_opened(path))) for path in paths]
            result = audit_check.check(lines, key, head=wanted, whole=any(path.is_dir() for path in files))
        report(result.problems)
        if any(problem.level == "error" for problem in result.problems):
            raise typer.Exit(WORLD)
        count = f"{result.records} record{'s' if result.records != 1 else ''}"
        note(f"{count}, each as it was written{f'; the last is {result.head}' if result.head else ''}")


def _link(head: str | None) -> Link | None:
    from pallas_contract.documents.audit_record import Link

    if head is None:
        return None
    match = _HEAD.fullmatch(head)
    if match is None:
        raise typer.BadParameter("is no N:MAC, as the gateway logs it", param_hint="--head")
    return Link(int(match[1]), match[2])


def _key(path: Path) -> bytes:
    try:
        key = path.read_bytes().removesuffix(b"\n").removesuffix(b"\r")
    except OSError as error:
        raise _unreadable(path, error) from None
    if not key:
        raise Refused([Problem(Where(str(path)), "is empty", "name the secret file", code=Code.UNREADABLE_INPUT)])
    return key


def _paths(files: list[Path]) -> list[Path]:
    """Return the files of the audit that were named, or lie in a folder that was, in the order of their records."""
    from pallas_contract.documents.audit_record import first_of

    paths: list[Path] = []
    for path in files:
        try:
            inside = sorted(path.iterdir()) if path.is_dir() else []
        except OSError as error:
            raise _unreadable(path, error) from None
        parts = [entry for entry in inside if first_of(entry.name) is not None]
        if path.is_dir() and not parts:
            hint = "its files are called audit-NUMBER.jsonl"
            raise Refused([Problem(Where(str(path)), "has no audit in it", hint, code=Code.UNREADABLE_INPUT)])
        paths += parts or [path]
    return sorted(set(paths), key=lambda path: (first_of(path.name) or 0, str(path)))


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> Refused:
    message = f"cannot be read: {(error.strerror or str(error)).lower()}"
    return Refused([Problem(Where(str(path)), message, code=Code.UNREADABLE_INPUT)])
