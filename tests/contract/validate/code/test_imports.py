"""Imports that nothing brings into the image."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest

from pallas_contract.definitions import module
from pallas_contract.validate.code import imports
from tests.problem_lines import without_codes


def test_the_modules_of_the_image_are_those_of_its_lock(root: Path, expected) -> None:
    lock = (root / "requirements" / "agent.lock").read_text()
    locked = {imports.normalized(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", lock, re.MULTILINE)}
    brought = metadata.packages_distributions()
    here = {imports.normalized(name) for names in brought.values() for name in names}
    assert {name for name in locked if name not in here} <= NO_MODULE
    modules = {
        name for name, packages in brought.items() if {imports.normalized(package) for package in packages} & locked
    }
    public = {name for name in modules if name.isidentifier()} | OURS
    expected(imports.PATH, "".join(f"{name}\n" for name in sorted(public)))


NO_MODULE: set[str] = set()
"""Packages of the lock that bring no module of their own."""
OURS = {"pallas_agent_runtime", "pallas_contract", "pallas_service", "pallas_testing"}
FILES = {"agents/__init__.py": "", "agents/coded.py": "", "lib/tools.py": ""}


def said(text: str, *declared: str) -> list[str]:
    parsed = module.parse(text, name="agents/scout.py", package=("agents",))
    return [without_codes(str(problem)) for problem in imports.problems(parsed, FILES.get, declared)]


@pytest.mark.parametrize(
    "text",
    ["from mcp.server.fastmcp import FastMCP\n", "from mcp.server import fastmcp\n", "import mcp.server.fastmcp\n"],
)
def test_what_the_sdk_of_before_had_is_a_warning_with_what_it_is_called_now(text: str) -> None:
    with pytest.raises(ImportError):
        exec(text)
    (warning,) = said(text)
    assert warning.startswith(
        "warning: agents/scout.py:1:1: imports `mcp.server.fastmcp`, which version 2 of the MCP SDK"
    )
    assert said("from mcp.server import MCPServer\n") == []


@pytest.mark.parametrize(
    "text",
    [
        "import os, json.decoder\nfrom __future__ import annotations\n",
        "import agents.coded\nfrom agents import coded\nfrom agents.coded import x\nfrom lib import tools\n",
        "from . import coded\nfrom .coded import x\n",
        "import fast_agent, httpx, pydantic\nimport yaml\n",
        "try:\n    import pandas\nexcept ImportError:\n    pandas = None\n",
        "if TYPE_CHECKING:\n    import pandas\n",
        "def later():\n    import pandas\n",
    ],
)
def test_what_is_there_or_may_be_missing(text: str) -> None:
    assert said(text) == []


def test_what_nothing_brings_is_a_warning_with_its_line() -> None:
    (problem,) = said("import os\n\nimport pandas as pd\n")
    assert problem.startswith("warning: agents/scout.py:3:1: imports `pandas`, which the agent image does not have\n")
    assert "name `pandas` in requirements.txt" in problem


BROUGHT = [("import sklearn.svm", "scikit-learn"), ("from my_lib import x", "My.Lib"), ("import cv2", "opencv-python")]


@pytest.mark.parametrize(("text", "package"), BROUGHT)
def test_a_declared_package_is_brought(text: str, package: str) -> None:
    assert len(said(text)) == 1
    assert said(text, package) == []


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("import pandas\n", ["agents/scout.py:1:1: imports `pandas`, which is not installed here: it does not start"]),
        ("import json, six\nfrom lib import tools\nimport agents.coded\nfrom . import coded\n", []),
        ("try:\n    import pandas\nexcept ImportError: ...\n", []),
        ("import sys\nsys.path.insert(0, 'vendored')\nimport pandas\n", []),
        ("import __main__\n", []),
    ],
)
def test_what_an_agent_that_is_a_process_here_cannot_import(text: str, places: list[str]) -> None:
    parsed = module.parse(text, name="agents/scout.py", package=("agents",))
    problems = list(imports.not_here(parsed, FILES.get, {"six"}.__contains__))
    assert [without_codes(str(problem)).partition("\n")[0] for problem in problems] == places
    assert all("`pip install pandas`" in problem.hint and problem.level == "error" for problem in problems)


def test_what_the_sdk_of_before_had_does_not_start_as_a_process_here() -> None:
    parsed = module.parse("from mcp.server.fastmcp import FastMCP\n", name="tools/weather.py", package=("tools",))
    (problem,) = imports.not_here(parsed, FILES.get, {"mcp"}.__contains__)
    assert (problem.level, problem.where.line) == ("error", 1)
    assert "version 2 of the MCP SDK here does not have: it does not start" in problem.message
    assert problem.hint.startswith("write `from mcp.server import MCPServer`")
