"""Everything that commands share: the fleet file, exit codes, problems as lines or as one document."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pallas_contract import names
from pallas_contract.problems import Problem, Refused

if TYPE_CHECKING:
    from pallas_gen.plan import Plan
    from pallas_gen.project.load import Loaded

# exit codes: done, the world is not as needed, the input is wrong
OK = 0
WORLD = 1
INPUT = 2

FleetPath = Annotated[
    Path | None,
    typer.Argument(
        metavar="[PATH]",
        help=f"The fleet file or its folder. Default: ${names.ENV_AGENTS_CONFIG}, else {names.AGENTS_FILE}.",
        show_default=False,
    ),
]
FleetOption = Annotated[Path | None, typer.Option("-f", "--file", metavar="PATH", help="The same as an option.")]
DEFAULT_FILE = Path(names.AGENTS_FILE)
Form = Literal["text", "json", "sarif"]
FormOption = Annotated[Form, typer.Option("--format", help="Problems as lines on stderr, or one document on stdout.")]
AllowPlainSecrets = Annotated[
    bool, typer.Option(names.ALLOW_PLAIN_SECRETS, help="Warn of secrets in plain text instead of refusing them.")
]

_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)
_VERBOSE: ContextVar[bool] = ContextVar("verbose", default=False)
_COLLECTED: ContextVar[list[Problem] | None] = ContextVar("collected", default=None)
"""Problems that become a document; None where each is a line at once."""


def _heed(variable: ContextVar[bool]) -> Callable[[bool], bool]:
    def heed(value: bool) -> bool:
        variable.set(value)
        return value

    return heed


_VOLUME = {
    "quiet": typer.Option(
        "-q", "--quiet", callback=_heed(_QUIET), help="Print errors, and what was asked for: no warnings, no notes."
    ),
    "verbose": typer.Option(
        "-v", "--verbose", callback=_heed(_VERBOSE), help="Also print where each problem is explained."
    ),
}
"""The options that all commands have; they set what `report` and `note` heed."""


def command(app: typer.Typer, name: str, example: str, **settings: Any) -> Callable[[Callable[..., None]], Any]:
    """Return the decorator that adds a command to `app`; `example` is the end of its help."""

    def add(function: Callable[..., None]) -> Any:
        return app.command(name, epilog=f"Example: {example}", **settings)(_with_volume(function))

    return add


def _with_volume(function: Callable[..., None]) -> Callable[..., None]:
    """Return `function` with the parameters of `_VOLUME`, which it does not see itself."""
    signature = inspect.signature(function, eval_str=True)
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, option])
        for name, option in _VOLUME.items()
    ]
    parameters = [*signature.parameters.values(), *more]

    @functools.wraps(function)
    def called(**values: Any) -> None:
        function(**{name: value for name, value in values.items() if name not in _VOLUME})

    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return called


def fleet_file(path: Path | None, option: Path | None) -> Path:
    """Return the fleet file that a command is about.

    Raises:
        typer.BadParameter: two are named.
    """
    if path and option and path != option:
        raise typer.BadParameter(f"names {path}, and -f names {option}: give one of the two", param_hint="PATH")
    return names.fleet_file(path or option, os.environ)


def read_plan(
    file: Path, *, mounted: bool = True, allow_plain_secrets: bool = False, relock: bool = False
) -> tuple[Loaded, Plan]:
    """Read the project of a fleet file, print its warnings and decide its plan.

    `mounted`: containers see the files themselves, so that it matters who may read them. `allow_plain_secrets` makes
    warnings of secrets in plain text, and `relock` lets a lock of servers be out of date.

    Raises:
        Refused: with every error in the fleet file and beside it.
    """
    from pallas_gen.plan import build_plan
    from pallas_gen.project import load

    loaded = load.load(file, os.environ, allow_plain_secrets=allow_plain_secrets, relock=relock)
    report([*loaded.warnings, *(loaded.unreadable if mounted else ())], file.parent)
    return loaded, build_plan(loaded.fleet, loaded.config, loaded.project)


@contextmanager
def reporting(form: Form, file: Path) -> Iterator[None]:
    """Print all problems in between as one document on stdout, where `form` is not text; `file` is the fleet file.

    Raises:
        typer.Exit: the project was refused, and the document says why.
    """
    if form == "text":
        yield
        return
    from pallas_contract import reports

    problems: list[Problem] = []
    token = _COLLECTED.set(problems)
    try:
        yield
    except Refused as refused:
        report(refused.problems, file.parent)
        typer.echo(reports.render(form, problems, tool="pallas-gen"), nl=False)
        raise typer.Exit(INPUT) from None
    except typer.Exit:
        typer.echo(reports.render(form, problems, tool="pallas-gen"), nl=False)
        raise
    else:
        typer.echo(reports.render(form, problems, tool="pallas-gen"), nl=False)
    finally:
        _COLLECTED.reset(token)


def report(problems: Iterable[Problem], folder: Path | None = None) -> None:
    """Print problems to stderr, one after the other, or keep them for the document.

    `folder` is the project where problems name files by their place in it; a document has them from here.
    """
    collected = _COLLECTED.get()
    for problem in problems:
        if _QUIET.get() and problem.level == "warning":
            continue
        if collected is None:
            typer.echo(problem.text(verbose=_VERBOSE.get()), err=True)
        else:
            from pallas_contract import reports

            collected.append(reports.located(problem, os.path.relpath(folder)) if folder else problem)


def is_quiet() -> bool:
    """Return whether errors alone, and what was asked for, are to be printed."""
    return _QUIET.get()


def is_verbose() -> bool:
    """Return whether each problem is to be printed with the place where it is explained."""
    return _VERBOSE.get()


def note(text: str) -> None:
    """Print a line about what was done to stdout, unless it is to be quiet there."""
    if not _QUIET.get() and _COLLECTED.get() is None:
        typer.echo(text)
