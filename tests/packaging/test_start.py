"""A command imports what it needs: `--help` and `--version` hardly more than the declarations, `validate` no target.

Shells that complete, editors, CI steps and tests start these commands by the hundred. `benchmarks/command_start.py` has
the times; here stands what they come from.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PROGRAM = """
import atexit, sys
standing = frozenset(sys.modules)
atexit.register(lambda: sys.stderr.write("\\0" + " ".join(sys.modules.keys() - standing)))
from {module} import {function} as program
sys.exit(program())
"""
HEAVY = frozenset(
    {
        "asyncio",
        "concurrent",
        "email",
        "http",
        "importlib.metadata",
        "logging",
        "multiprocessing",
        "ssl",
        "tomllib",
        "xml",
    }
)
"""Of the standard library what costs more than a hundredth of a second."""
DECLARATIONS = frozenset(
    {
        "pallas_contract",
        "pallas_contract.codes",
        "pallas_contract.names",
        "pallas_contract.problems",
        "pallas_gen",
        "pallas_gen.__main__",
        "pallas_gen.cli",
        "pallas_gen.arguments",
        "pallas_gen.commands",
        "pallas_gen.commands.audit",
        "pallas_gen.commands.audit.verify",
        "pallas_gen.commands.building",
        "pallas_gen.commands.building.build",
        "pallas_gen.commands.bundle",
        "pallas_gen.commands.clients",
        "pallas_gen.commands.diff",
        "pallas_gen.commands.doctor",
        "pallas_gen.commands.drawing",
        "pallas_gen.commands.drawing.graph",
        "pallas_gen.commands.lock",
        "pallas_gen.commands.targets",
        "pallas_gen.console",
        "pallas_gen.images",
        "pallas_gen.images.docker",
        "pallas_gen.targets",
        "pallas_gen.targets.base",
        "pallas_gen.targets.compose",
        "pallas_gen.targets.compose.target",
        "pallas_gen.targets.helm",
        "pallas_gen.targets.helm.target",
        "pallas_gen.targets.image",
        "pallas_gen.targets.observability",
        "pallas_gen.targets.table",
    }
)
"""Options and the table of targets, with what they are made of."""
FLEET_FILE = frozenset({"pallas_contract.fleet", "pallas_contract.fleet.source", "pallas_contract.limited_file"})
PROGRAMS = frozenset(
    {
        "pallas_contract",
        "pallas_contract.codes",
        "pallas_contract.extras",
        "pallas_contract.names",
        "pallas_contract.problems",
        "pallas_service",
        "pallas_service.argument_parser",
    }
)
"""What the command lines of `pallas` and `pallas-registry` share."""
RUNTIME = frozenset({"pallas_agent_runtime", "pallas_agent_runtime.cli"})
VERBS = frozenset({"pallas_cli", "pallas_cli.arguments", "pallas_cli.main", "pallas_cli.trouble"})
"""The verbs of `pallas` and their options."""
REGISTRY = frozenset({"pallas_registry", "pallas_registry.__main__", "pallas_service.program"})
TYPER = frozenset({"annotated_doc", "shellingham", "typer"})
READING = frozenset({"annotated_types", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection", "yaml"})
"""Packages that read a fleet file."""
WRITING = ("pallas_gen.images", "pallas_gen.targets", "pallas_gen.verify")


def imported(program: str, *arguments: str, folder: Path, code: int = 0) -> frozenset[str]:
    """Return the modules that `program` (`module:function`) has imported when it ends with the exit code `code`."""
    module, _, function = program.partition(":")
    command = [sys.executable, "-P", "-c", PROGRAM.format(module=module, function=function), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return frozenset(done.stderr.rpartition("\0")[2].split())


def packages(modules: frozenset[str]) -> set[str]:
    """Return the installed packages among modules: neither ours nor of the standard library."""
    names = {name.partition(".")[0] for name in modules}
    # Cython makes modules of its own, Python one of its settings
    names -= {name for name in names if name.startswith("_") or name == "cython_runtime"}
    return {name for name in names if name not in sys.stdlib_module_names and not name.startswith("pallas_")}


def ours(modules: frozenset[str]) -> set[str]:
    return {name for name in modules if name.startswith("pallas_")}


@pytest.mark.parametrize(
    ("arguments", "code"), [("--help", 0), ("--version", 0), ("compose --help", 0), ("nonsense", 2)]
)
def test_the_generator_imports_declarations_until_a_command_runs(arguments: str, code: int, tmp_path: Path) -> None:
    modules = imported("pallas_gen.__main__:main", *arguments.split(), folder=tmp_path, code=code)
    assert ours(modules) == DECLARATIONS
    assert packages(modules) == TYPER
    assert modules & HEAVY == set()


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("pallas_gen.__main__:main", "--help"),
        ("pallas_gen.__main__:main", "validate"),
        ("pallas_cli.main:main", "status"),
        ("pallas_agent_runtime.cli:main", "--agent hello --check"),
    ],
)
def test_a_short_command_looks_for_garbage_hardly_ever(program: str, arguments: str) -> None:
    module, function = program.split(":")
    code = f"""
import atexit, gc, sys
from {module} import {function} as program
before = sum(generation["collections"] for generation in gc.get_stats())
atexit.register(lambda: print("\\0", sum(generation["collections"] for generation in gc.get_stats()) - before))
sys.exit(program())
"""
    command = [sys.executable, "-c", code, *arguments.split()]
    folder = ROOT / "examples" / "01-hello"
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=60)
    assert int(done.stdout.partition("\0")[2]) < 8, done.stderr  # an agent's options are read before


def test_to_validate_a_fleet_no_target_is_imported() -> None:
    modules = imported("pallas_gen.__main__:main", "validate", folder=ROOT / "examples" / "01-hello")
    assert "pallas_contract.validate.load" in modules
    assert packages(modules) == TYPER | READING
    assert {name for name in ours(modules) if name.startswith(WRITING)} <= DECLARATIONS
    assert modules & HEAVY <= {"email", "importlib.metadata", "tomllib"}


@pytest.mark.parametrize(
    ("program", "option", "expected"),
    [
        ("pallas_agent_runtime.cli:main", "--help", PROGRAMS | FLEET_FILE | RUNTIME),
        ("pallas_agent_runtime.cli:main", "--version", PROGRAMS | RUNTIME),
        ("pallas_cli.main:main", "--help", PROGRAMS | FLEET_FILE | RUNTIME | VERBS | {"pallas_cli.runtime"}),
        ("pallas_cli.main:main", "--version", PROGRAMS | RUNTIME | VERBS | {"pallas_cli.runtime"}),
        ("pallas_cli.main:main", "up --help", PROGRAMS | VERBS),
        ("pallas_registry.__main__:command", "--help", PROGRAMS | REGISTRY),
        ("pallas_registry.__main__:command", "--version", PROGRAMS | REGISTRY),
    ],
)
def test_programs_say_what_they_are_without_what_they_serve_with(
    program: str, option: str, expected: frozenset[str], tmp_path: Path
) -> None:
    """`pallas --help` reads the fleet file of the folder, of which it says the name."""
    modules = imported(program, *option.split(), folder=tmp_path)
    assert ours(modules) == expected
    assert packages(modules) == ({"yaml"} if expected >= FLEET_FILE else set())
    assert modules & HEAVY == set()


def test_a_check_imports_what_an_agent_is_made_of_where_it_loads_one_alone(tmp_path: Path) -> None:
    """Each agent of a fleet is loaded in a process of its own, in the way of those that are served."""
    (tmp_path / "agents.yaml").write_text("name: desk\nagents: {desk: {card: none.md, port: 24201}}\n")
    fleet = imported("pallas_agent_runtime.cli:main", "--check", folder=tmp_path, code=2)
    assert "pallas_agent_runtime.check" in fleet
    assert packages(fleet) & {"fast_agent", "mcp", "uvicorn"} == set()
    agent = imported("pallas_agent_runtime.cli:main", "--check", "--agent", "desk", folder=tmp_path, code=2)
    assert {"fast_agent", "mcp"} <= packages(agent)
    assert packages(agent) & {"cryptography", "jsonschema", "watchfiles"} == set(), "nobody has used them"


def test_a_call_builds_the_models_that_it_uses(tmp_path: Path) -> None:
    code = (
        "from pallas_cli.main import main\n"
        "assert main(['call', 'http://127.0.0.1:9/mcp', 'hello']) == 1\n"  # nobody listens
        "import mcp_types\n"
        "from pydantic import BaseModel\n"
        "class Later(BaseModel): pass\n"
        "print(mcp_types.ElicitResult.__pydantic_complete__, Later.__pydantic_complete__)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, "connection attempts failed" in done.stderr) == ("False True\n", True), done.stderr
