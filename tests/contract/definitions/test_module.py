"""What a Python module says of its agents, by its syntax tree."""

from __future__ import annotations

import pytest

from pallas_contract.definitions import module
from pallas_contract.problems import Refused
from tests.problem_lines import without_codes

HEAD = "from fast_agent import FastAgent\nfast = FastAgent('x')\n"


def parse(body: str, head: str = HEAD) -> module.Module:
    return module.parse(head + body, name="agents/scout.py", package=("agents",))


def test_an_agent_with_its_servers_model_and_positions() -> None:
    (agent,) = parse("@fast.agent(name='scout', servers=['a', 'b'], model='openai.x')\nasync def f(): ...\n").agents
    assert (agent.name, agent.kind, agent.servers, agent.model) == ("scout", "agent", ("a", "b"), "openai.x")
    assert str(agent.where) == "agents/scout.py:3:2"
    assert str(agent.where_of("servers.1")) == "agents/scout.py:3:41"
    assert agent.where_of("tools") == agent.where


def test_agents_that_run_inside_it_with_their_places() -> None:
    (agent,) = parse(
        "TEAM = ['b']\n@fast.parallel('scout', fan_out=['a', *TEAM, name()], fan_in='c')\ndef f(): ...\n"
    ).agents
    assert {name: str(where) for name, where in agent.children.items()} == {
        "a": "agents/scout.py:4:34",
        "b": "agents/scout.py:4:39",
        "c": "agents/scout.py:4:62",
    }


def test_what_is_not_written_is_left_to_the_defaults() -> None:
    (agent,) = parse("@fast.agent()\nasync def f(): ...\n").agents
    assert (agent.name, agent.servers, agent.model) == ("default", (), "")


@pytest.mark.parametrize(
    ("decorator", "name"),
    [
        ("fast.agent('scout', 'You scout.')", "scout"),
        ("fast.custom(Cls, 'scout')", "scout"),
        ("fast.custom(Cls, name='scout')", "scout"),
        ("fast.router(name='scout', agents=['x'])", "scout"),
        ("fast.agent(name=f'{x}')", None),
        ("fast.agent(**options)", None),
    ],
)
def test_the_name_of_an_agent(decorator: str, name: str | None) -> None:
    (agent,) = parse(f"@{decorator}\nasync def f(): ...\n").agents
    assert agent.name == name


@pytest.mark.parametrize(
    ("head", "servers", "expected"),
    [
        ("", "('a', 'b')", ("a", "b")),
        ("", "None", ()),
        ("", "[]", ()),
        ("MORE = ['b']\n", "['a', *MORE]", ("a", "b")),
        ("MORE: list[str] = ['b']\nA = 'a'\n", "[A] + MORE", ("a", "b")),
        ("MORE = ['b']\nMORE.append('c')\n", "MORE", None),
        ("MORE = ['b']\nMORE += ['c']\n", "MORE", None),
        ("A = B\nB = A\n", "A", None),
        ("", "os.environ['SERVERS'].split()", None),
        ("", "['a', name()]", None),
        ("", "'a'", None),
    ],
)
def test_servers_as_far_as_they_are_literals(head: str, servers: str, expected: tuple[str, ...] | None) -> None:
    found = parse(f"{head}@fast.agent(name='scout', servers={servers})\nasync def f(): ...\n")
    assert found.agents[0].servers == expected
    assert [problem.message for problem in found.unclear] == (
        ["`servers` is no list of literal names"] if expected is None else []
    )


def test_options_in_a_mapping_may_hold_anything() -> None:
    found = parse("@fast.agent(name='scout', **options)\nasync def f(): ...\n")
    assert (found.agents[0].servers, found.agents[0].model) == (None, None)
    assert found.unclear


def test_agents_on_an_application_from_elsewhere_and_without_a_decorator() -> None:
    assert len(parse("@fast.agent(name='a')\nasync def f(): ...\n", "from x import fast\n").agents) == 1
    assert len(parse("fast.agent(name='a')(g)\n").agents) == 1
    assert len(parse("other.agent(name='a')\nclient.chain('b')\n").agents) == 0


def test_agents_that_are_loaded_from_elsewhere_are_not_known() -> None:
    (problem,) = parse("fast.load_agents('cards')\n").unclear
    assert without_codes(str(problem)) == "warning: agents/scout.py:3:1: `load_agents` adds agents from elsewhere"


@pytest.mark.parametrize(
    "head",
    [
        "import fast_agent\nfast = fast_agent.FastAgent('x')\n",
        "from fast_agent import FastAgent as App\nfast: App = App('x')\n",
        "from fast_agent import FastAgent\nif True:\n    fast = FastAgent('x')\n",
    ],
)
def test_the_applications_of_a_module(head: str) -> None:
    assert list(parse("", head).applications) == ["fast"]
    assert list(parse("fast = build()\n", "").applications) == []


def test_the_modules_it_imports_the_likeliest_first() -> None:
    text = (
        "import json, lib.text\nfrom lib import tools\nfrom . import own\nfrom .. import above\n"
        "from .deep.er import x\nfrom lib.all import *\n"
        "importlib.import_module('plug.in')\n__import__('other')\nimport_module('.rel')\n"
        "def f():\n    import late\n"
    )
    assert parse(text, "").imports == (
        ("json",),
        ("lib.text",),
        ("lib.tools", "lib"),
        ("agents.own", "agents"),
        ("above",),
        ("agents.deep.er.x", "agents.deep.er"),
        ("lib.all",),
        ("plug.in",),
        ("other",),
        ("late",),
    )


def test_a_module_that_is_not_python_with_the_line() -> None:
    with pytest.raises(Refused, match=r"^agents/scout.py:3:5: is not Python: "):
        parse("a = = b\n")
    with pytest.raises(Refused, match="is not Python"):
        parse("a = '\0'\n")
    with pytest.raises(Refused, match="is not Python"):
        parse("(" * 5000)


def test_function_tools_by_their_files_and_what_the_instruction_is_read_from() -> None:
    body = (
        "TOOLS = [add, 'tools.py:sub']\n"
        "@fast.agent('a', Path('a.md'), function_tools=['tools.py:add', add])\ndef a(): ...\n"
        "@fast.agent('b', instruction='Read {{file:b.md}}', function_tools=TOOLS)\ndef b(): ...\n"
        "@fast.agent('c', instruction=make(), function_tools=tools())\ndef c(): ...\n"
    )
    first, second, third = parse(body).agents
    assert [(tool.entry, str(tool.where), tool.folder) for tool in first.function_tools] == [
        ("tools.py:add", "agents/scout.py:4:48", "")
    ]
    assert [(file.path, str(file.where)) for file in first.files] == [("a.md", "agents/scout.py:4:18")]
    assert [tool.entry for tool in second.function_tools] == ["tools.py:sub"]
    assert [file.path for file in second.files] == ["b.md"]
    assert (third.function_tools, third.files) == ((), ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a.b, c as d\nfrom e import f, g as h\n", {"a", "d", "f", "h"}),
        ("def a():\n    b = 1\nclass C:\n    d = 1\n", {"a", "C"}),
        ("if x:\n    a = b = 1\ntry:\n    c: int = 2\nexcept E:\n    d = lambda e: e\n", {"a", "b", "c", "d"}),
        ("def make():\n    global late\n    late = 1\n", {"make", "late"}),
        ("from a import *\n", None),
        ("def __getattr__(name): ...\n", None),
        ("globals()['a'] = 1\n", None),
    ],
)
def test_what_a_module_has_once_it_was_imported(text: str, expected: set[str] | None) -> None:
    names = module.names(module.parse(text, name="a.py").tree)
    assert (None if names is None else set(names)) == expected
