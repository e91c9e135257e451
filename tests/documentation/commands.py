"""A block of shell -> its commands, and what is wrong with each: no such program, no such option. Nothing is run."""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from typer._click.exceptions import UsageError
from typer.core import TyperGroup
from typer.main import get_command

from pallas_agent_runtime import cli as runtime
from pallas_cli import arguments as pallas_verbs
from pallas_gen import cli as generator
from pallas_testing import cli as testing
from tests.documentation.blocks import ROOT

_HEREDOC = re.compile(r"<<'(?P<word>\w+)'(?P<rest>[^\n]*)\n(?P<body>.*?)^(?P=word)$", re.MULTILINE | re.DOTALL)
_QUOTED_OR_COMMENT = re.compile(r"('[^']*'|\"(?:\\.|[^\"\\])*\")|(?<!\S)#[^\n]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_OPERATORS = ";&|()<>\n"
BUILT_IN = frozenset({"cd", "command", "export"})
"""Commands of the shell itself."""


def heredocs(script: str, program: str) -> list[str]:
    """Return what is handed to a program's standard input in place: `python - <<'END'`."""
    lines = [(script[: match.start()].rpartition("\n")[2], match["body"]) for match in _HEREDOC.finditer(script)]
    return [body for line, body in lines if line.split()[:1] == [program]]


def simple(script: str) -> list[list[str]]:
    """Return the words of each command, without assignments before it, redirections and comments."""
    text = _HEREDOC.sub(lambda match: match["rest"], script).replace("\\\n", " ")
    text = _QUOTED_OR_COMMENT.sub(lambda match: match[1] or "", text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t", "", True
    commands: list[list[str]] = [[]]
    redirected = False
    for token in lexer:
        operator = set(token) <= set(_OPERATORS)
        if operator and not redirected and set(token) <= {"<", ">"}:
            redirected = True
        elif operator:
            commands.append([])
        elif redirected:
            redirected = False
        elif commands[-1] or not _ASSIGNMENT.match(token):
            commands[-1].append(token)
    return [command for command in commands if command]


def program(command: Sequence[str]) -> str:
    """Return the name that a program is known by here: `.venv/bin/pallas-gen` is `pallas-gen`."""
    return command[0].rpartition("/")[2].removeprefix("$")


def problems(command: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with a command of the kit; other programs only have to be known."""
    name, arguments = program(command), list(command[1:])
    if name == "pallas-gen":
        yield from _typer(pallas_gen(), arguments, name)
    elif name == "pallas":
        plain = not arguments or arguments[0].startswith("-")
        yield from _argparse(runtime.parser() if plain else pallas_verbs.parser(), arguments)
    elif name == "pallas-testing":
        yield from _argparse(testing.parser(), arguments)
    elif name == "python":
        yield from _python(arguments)
    elif name == "make":
        verbs = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        yield from (f"no verb {word}" for word in arguments if "=" not in word and word not in verbs)
    elif name not in BUILT_IN and name not in OTHERS and not shutil.which(name):
        yield f"no program {name} is here, nor does OTHERS name it"


OTHERS = frozenset({"docker", "gh", "gunzip", "gzip", "helm", "kubectl", "npx", "openssl", "pip", "pipx", "psql"})
"""Programs that need not be on a machine with the quick tests."""


@cache
def pallas_gen() -> Any:
    """Return the command with all its verbs; typer makes each of its function, for 10 ms."""
    return get_command(generator.app)


def _typer(command: Any, arguments: list[str], path: str) -> Iterator[str]:
    context = command.context_class(command, info_name=path)
    if isinstance(command, TyperGroup) and arguments and not arguments[0].startswith("-"):
        sub = command.get_command(context, arguments[0])
        if sub is None:
            yield f"no command {path} {arguments[0]}"
        else:
            yield from _typer(sub, arguments[1:], f"{path} {arguments[0]}")
        return
    try:
        _, rest, _ = command.make_parser(context).parse_args(list(arguments))
    except UsageError as error:
        yield f"{path}: {error.format_message()}"
    else:
        yield from (f"{path}: takes no argument {word}" for word in rest)


def _argparse(parser: argparse.ArgumentParser, arguments: list[str]) -> Iterator[str]:
    try:
        _, unknown = parser.parse_known_args(arguments)
    except SystemExit:  # argparse has printed why
        yield f"{parser.prog}: does not take {' '.join(arguments)}"
        return
    yield from (f"{parser.prog}: no option {word}" for word in unknown)


def _python(arguments: list[str]) -> Iterator[str]:
    if arguments[:1] == ["-m"] and not (_in_an_example(arguments[1]) or importlib.util.find_spec(arguments[1])):
        yield f"no module {arguments[1]}"


def _in_an_example(module: str) -> bool:
    """Return whether a module is a file of an example, in whose folder its page says to be."""
    return any(ROOT.glob(f"examples/*/{module.replace('.', '/')}.py"))


def imports(code: str) -> Iterator[str]:
    """Yield what a piece of Python imports and is not there; it may await at its top level.

    Raises:
        SyntaxError: it is no Python.
    """
    tree = compile(code, "block", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if importlib.util.find_spec(alias.name) is None)
        elif isinstance(node, ast.ImportFrom) and node.module:
            module: Any = importlib.import_module(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names if not hasattr(module, alias.name))


def absent_options(command: Sequence[str]) -> Iterator[str]:
    """Yield the options of another program's command that its own help does not name, or that there is no program."""
    if shutil.which(command[0]) is None:
        yield f"{command[0]} is not on this machine, so its options cannot be looked up: install it"
        return
    path = [command[0]]
    texts = [_help(tuple(path))]
    options = []
    for word in command[1:]:
        if word.startswith("-") and word != "-":
            options.append(word.partition("=")[0])
        elif re.search(rf"(^|\s){re.escape(word)}\*?(\s|,|$)", texts[-1]):
            path.append(word)
            texts.append(_help(tuple(path)))
    for option in options:
        letters = [option] if option.startswith("--") else [option, *(f"-{letter}" for letter in option[1:])]
        named = [bool(re.search(rf"(?<![\w-]){re.escape(text)}(?![\w-])", "\n".join(texts))) for text in letters]
        if not named[0] and not (named[1:] and all(named[1:])):
            yield f"{shlex.join(path)}: no option {option}"


_HELP = {("curl",): ("curl", "--help", "all"), ("kubectl",): ("kubectl", "options"), ("openssl",): ("openssl", "help")}
"""What to ask where `--help` is not all."""


@cache
def _help(path: tuple[str, ...]) -> str:
    """Return what a program says of itself, on whichever stream and with whichever code."""
    texts = []
    for command in {(*path, "--help"), _HELP.get(path, (*path, "--help"))}:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        texts += [done.stdout, done.stderr]
    return "\n".join(texts)
