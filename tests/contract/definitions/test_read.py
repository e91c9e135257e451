"""Everything one agent's code defines, over all files that it consists of."""

from __future__ import annotations

from typing import Any

import pytest

from pallas_contract.codes import Code
from pallas_contract.definitions import read
from pallas_contract.fleet.resolved import ResolvedAgent
from pallas_contract.problems import Problem, Refused, Where

AGENT = "@fast.agent(name='{0}', servers=['{0}'])\nasync def {0}(): ...\n"


def agent(**keys: Any) -> ResolvedAgent:
    return ResolvedAgent(name="scout", title="Scout", port=8001, **keys)


def test_a_module_and_what_it_imports_from_the_project() -> None:
    files = {
        "agents/__init__.py": "import top\n",
        "agents/scout.py": "import json\nfrom agents.shared import fast\nfrom . import more\n" + AGENT.format("a"),
        "agents/shared.py": "from agents import scout\n" + AGENT.format("b"),
        "agents/more/__init__.py": "from .deep import x\n",
        "agents/more/deep.py": AGENT.format("c"),
        "agents/sibling.py": AGENT.format("d"),
        "top.py": AGENT.format("e"),
    }
    modules = read.module_files("agents.scout", files.get)
    assert sorted(modules) == sorted(set(files) - {"agents/sibling.py"})
    assert next(iter(modules)) == "agents/scout.py"
    assert read.definitions(agent(module="agents.scout"), files.get).servers == {"a", "b", "c", "e"}


def test_a_card() -> None:
    definitions = read.definitions(agent(card="a.md"), {"a.md": "---\nservers: [a]\n---\n"}.get)
    assert (definitions.servers, definitions.unclear) == ({"a"}, ())


@pytest.mark.parametrize(
    ("keys", "files", "message"),
    [
        ({"card": "a.md"}, {}, "a.md: is not in the project folder"),
        ({"module": "a"}, {"b.py": ""}, "a: is not in the project folder"),
        ({"card": "a.md"}, {"a.md": "x"}, "a.md:1:1: has no frontmatter"),
        ({"card": "a.md"}, {"a.md": "---\nservers: a\n---\n"}, "a.md:2:1 servers: `servers` is no list of literal"),
        ({"module": "a"}, {"a.py": "import b\n", "b.py": "x ="}, "b.py:1:4: is not Python"),
        ({"module": "a"}, {"a.py": "fast = FastAgent('x')\nfast.load_agents(x)"}, "a.py:2:1: `load_agents` adds"),
    ],
)
def test_code_that_cannot_be_read_is_a_reason_and_no_error(
    keys: dict[str, str], files: dict[str, str], message: str
) -> None:
    (problem,) = read.definitions(agent(**keys), files.get).unclear
    assert str(problem).removeprefix("warning: ").startswith(message)


def test_a_file_that_cannot_be_opened_is_a_reason_too() -> None:
    def refuse(path: str) -> str | None:
        raise Refused([Problem(Where(path), "cannot be read", code=Code.UNREADABLE_FILE)])

    assert [problem.message for problem in read.definitions(agent(module="a"), refuse).unclear] == ["cannot be read"]
