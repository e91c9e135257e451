"""Tools that are functions in files: is the file there, and the function in it?"""

from __future__ import annotations

import pytest

from pallas_contract.definitions.definition import Definition, FunctionTool
from pallas_contract.problems import Where
from pallas_contract.validate.code import function_tools
from pallas_contract.validate.suggestions import Suggestions

WHERE = Where("agents/scout.md", 3, 5)
FILES = {
    "tools.py": "from x import borrowed\nLIMIT = 3\nLATER = [1]\nLATER.append(2)\nf = lambda: 1\ndef add(): ...\n",
    "agents/near.py": "async def look(): ...\n",
    "open.py": "from x import *\n",
    "broken.py": "def (\n",
    "notes.txt": "add",
    "empty.py": "",
}


def problems(entry: str, folder: str = "") -> list[str]:
    definition = Definition("scout", "agent", WHERE, function_tools=(FunctionTool(entry, WHERE, folder),))
    found = function_tools.problems(
        definition, FILES.get, lambda path: path in FILES or path == "link.py", Suggestions()
    )
    return list(map(str, found))


@pytest.mark.parametrize(
    ("entry", "folder"),
    [
        ("tools.py:add", ""),
        (" tools.py : add ", ""),
        ("tools.py:borrowed", ""),
        ("tools.py:f", ""),
        ("tools.py:LATER", ""),
        ("near.py:look", "agents"),
        ("../tools.py:add", "agents"),
        ("open.py:anything", ""),
        ("link.py:anything", ""),
        ("/opt/tools.py:add", ""),
        ("../tools.py:add", ""),
        ("~/tools.py:add", ""),
    ],
)
def test_what_is_there_or_cannot_be_known(entry: str, folder: str) -> None:
    assert problems(entry, folder) == []


@pytest.mark.parametrize(
    ("entry", "folder", "message", "hint"),
    [
        ("tools.add", "", "`tools.add` names no function in a file", "as it is seen from the folder of agents.yaml"),
        ("near.py:", "agents", "`near.py:` names no function in a file", "as it is seen from this card's folder"),
        (
            "gone.py:add",
            "",
            "there is no file gone.py, from which its tool `add` is loaded: the agent does not start",
            "create it, or correct the path",
        ),
        (
            "agents/near.py:look",
            "agents",
            "there is no file agents/agents/near.py, from which",
            "or correct the path: there is agents/near.py, write `near.py:look`",
        ),
        (
            "tools.py:add",
            "agents",
            "there is no file agents/tools.py, from which",
            "or correct the path: there is tools.py, write `../tools.py:add`",
        ),
        ("lib/near.py:look", "agents", "no file agents/lib/near.py", "there is agents/near.py, write `near.py:look`"),
        ("notes.txt:add", "", "notes.txt is no Python file", "rename it"),
        ("tools.py:ad", "", "there is no function `ad` in tools.py", "did you mean `add`?"),
        ("tools.py:wholly_other", "", "there is no function `wholly_other`", "define it there, or name one of: add"),
        ("empty.py:add", "", "there is no function `add` in empty.py", "define it there"),
        ("tools.py:LIMIT", "", "`LIMIT` in tools.py is no function: the agent does not start", "name one of: add"),
    ],
)
def test_what_is_not_there(entry: str, folder: str, message: str, hint: str) -> None:
    (problem,) = problems(entry, folder)
    first, _, rest = problem.partition("\n    ")
    assert first.startswith(f"agents/scout.md:3:5: {message}") or message in first
    assert hint in rest


def test_a_file_that_is_not_python_is_a_problem_of_the_file() -> None:
    assert problems("broken.py:add") == [
        "broken.py:1:5: is not Python: invalid syntax [PAL204]\n    mend this line, or the one before it"
    ]
