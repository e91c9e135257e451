"""The user's code against the fleet: modules, cards, the servers they name and the models they run on."""

from __future__ import annotations

import pytest

from pallas_contract.codes import Code
from pallas_contract.fleet import fastagent, source
from pallas_contract.fleet.fastagent import Config
from pallas_contract.validate import load
from pallas_contract.validate.code import rules
from pallas_contract.validate.code.rules import Surroundings
from tests.problem_lines import without_codes

FLEET = """\
name: trip
agents:
  planner: {%s, port: 24201, depends_on: [weather]}
  packer: {card: packer.yaml, port: 24202}
services:
  weather: {module: weather, port: 24203}
  model: {module: weather, port: 24204, provides: openai}
"""
START = 'from fast_agent import FastAgent\nfast = FastAgent("trip")\n'
AGENT = f'{START}@fast.agent(name="planner"%s)\nasync def planner() -> None: ...\n'
PLAIN = {"packer.yaml": "type: agent\n", "weather.py": "# PALLAS_BIND", "base.py": ""}
MODULE = "module: planner"
CARD = "card: planner.md"


def said(what: str, files: dict[str, str], config: Config | None = None, **around) -> list[str]:
    tree = source.parse(FLEET % what, name="agents.yaml")
    surroundings = Surroundings(config or Config(default_model="passthrough"), {**PLAIN, **files}.get, **around)
    return [
        without_codes(str(problem)) for problem in sorted(set(rules.problems(load.parse(tree), tree, surroundings)))
    ]


def in_module(text: str) -> list[str]:
    return said(MODULE, {"planner.py": text})


def in_card(text: str) -> list[str]:
    return said(CARD, {"planner.md": text})


@pytest.mark.parametrize(
    "text",
    [
        AGENT % "",
        AGENT % ', servers=["weather"], model="openai.gpt-4.1"',
        AGENT.replace("fast", "app").replace("app_agent", "fast_agent") % "",
        "from base import fast\n",
        "from base import *\n",
        "def make(): ...\nanything = make()\n",
        "def make(): ...\nanything: object = make()\n",
        f"{START}fast.load_agents('cards')\n",
        f"{START}register(fast)\n",
        f"{START}NAMES = ask()\n@fast.agent(name='planner', servers=NAMES)\ndef planner(): ...\n",
        f"{START}@fast.agent(name='Planner')\ndef a(): ...\n@fast.agent(name='b')\ndef b(): ...\n",
        f"{START}@fast.agent(name='a', default=True)\ndef a(): ...\n@fast.agent(name='b')\ndef b(): ...\n",
        f"{START}@fast.agent(name=ask())\ndef a(): ...\n@fast.agent(name='b')\ndef b(): ...\n",
        f"{START}@fast.agent\ndef a(): ...\n".replace("@fast.agent", "@fast.agent()"),
    ],
)
def test_modules_that_start_or_may(text: str) -> None:
    assert in_module(text) == []


def test_an_application_that_is_made_elsewhere() -> None:
    imported = {"planner.py": "from base import app\n", "base.py": "def make(): ...\napp = make()\n"}
    assert said(MODULE, imported) == []
    assert said(MODULE, {"planner.py": "from pack import app\n"}, distributions={"": frozenset({"pack"})}) == []
    assert said(MODULE, {"planner.py": "from base import app\n"}) == [
        'planner.py: has no FastAgent\n    define it: fast = FastAgent("name")'
    ]


@pytest.mark.parametrize(
    ("text", "place", "rest"),
    [
        ("def planner(:\n", "planner.py:1:13: is not Python: invalid syntax", "mend this line"),
        ("x = 1\n", "planner.py: has no FastAgent", 'define it: fast = FastAgent("name")'),
        (START, "planner.py:2:1: defines no agent", "decorate a function with @fast.agent(...)"),
        (
            f"{START}@fast.agent(name='a')\ndef a(): ...\n@fast.agent(name='b')\ndef b(): ...\n",
            "planner.py:3:18: defines a, b, but not `planner`",
            "rename one of them to `planner`, or mark one with default=True",
        ),
        (
            AGENT % ', servers=["weather", "packer"]',
            "planner.py:3:49: `packer` is not in `depends_on` of `planner`, so it cannot be called",
            "add it in agents.yaml: `depends_on: [weather, packer]`",
        ),
        (
            AGENT % ', servers=["wether"]',
            "planner.py:3:38: there is no MCP server `wether`",
            "did you mean `weather`? else add it to `mcp: {servers: ...}` in fastagent.config.yaml, or to",
        ),
        (AGENT % ', servers=["model"]', "planner.py:3:38: `model` is a model, not an MCP server", "remove it"),
        (AGENT % ', model="gpt4o"', "planner.py:3:35: fast-agent knows no model `gpt4o`", "did you mean `gpt-4o`?"),
        (f'{AGENT % ""}KEY = "sk-proj-a1B2c3D4e5F6g7H8"\n', "planner.py:5:8: a key in plain text", "os.environ"),
    ],
)
def test_modules_that_do_not(text: str, place: str, rest: str) -> None:
    (problem,) = in_module(text)
    assert problem.startswith(place)
    assert rest in problem.partition("\n")[2]


def test_a_module_that_is_imported_is_read_too_and_reported_once() -> None:
    files = {"planner.py": f"import base\n{AGENT % ''}", "base.py": "def (\n", "weather.py": "import base\n"}
    assert said(MODULE, files) == [
        "base.py:1:5: is not Python: invalid syntax\n    mend this line, or the one before it"
    ]


def test_servers_of_an_imported_application_are_its_own() -> None:
    other = f'{START}@fast.agent(name="x", servers=["elsewhere"])\ndef x(): ...\n'
    assert said(MODULE, {"planner.py": f"import other\n{AGENT % ''}", "other.py": other}) == []


def test_a_service_is_python_too() -> None:
    assert said(MODULE, {"planner.py": AGENT % "", "weather.py": "def"}) == [
        "weather.py:1:4: is not Python: invalid syntax\n    mend this line, or the one before it"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "---\ntype: agent\nservers: [weather]\n---\nx",
        "---\nname: planner\nmodel: sonnet\n---\n",
        "---\ntype: smart\n---\n",
        "---\ntype: chain\nsequence: [a]\n---\n",
        "---\nservers: ['${NAME}']\n---\n",
    ],
)
def test_cards_that_load(text: str) -> None:
    assert in_card(text) == []


@pytest.mark.parametrize(
    ("text", "place", "rest"),
    [
        ("You plan.\n", "planner.md:1:1: has no frontmatter", "begin it with `---`"),
        ("---\ntype: agnet\n---\n", "planner.md:2:1 type: there is no type `agnet`", "did you mean `agent`?"),
        ("---\ntype: 5\n---\n", "planner.md:2:1 type: must be text", "one of MAKER, a2a, agent"),
        (
            "---\nsevers: [a]\n---\n",
            "planner.md:2:1 severs: unknown key",
            "did you mean `servers`?",
        ),
        ("---\ndepends_on: [a]\n---\n", "planner.md:2:1 depends_on: unknown key", "it belongs into agents.yaml"),
        (
            "---\ntype: chain\n---\n",
            "planner.md:2:1 type: a card of type `chain` needs `sequence`",
            "add `sequence: ...`",
        ),
        ("---\nservers: weather\n---\n", "planner.md:2:1 servers: must be a list", "`servers: [weather]`"),
        (
            "---\nservers: [weather, packer]\n---\n",
            "planner.md:2:20 servers.1: `packer` is not in `depends_on`",
            "add it in",
        ),
        ("---\nmodel: gpt4o\n---\n", "planner.md:2:1 model: fast-agent knows no model `gpt4o`", "did you mean"),
        ("---\na: [\n---\n", "planner.md:", "strings with ':' or '#' need quotes"),
    ],
)
def test_cards_that_do_not(text: str, place: str, rest: str) -> None:
    (problem,) = in_card(text)
    assert problem.startswith(place)
    assert rest in problem


def test_a_card_by_its_suffix() -> None:
    (problem,) = said("card: planner.txt", {"planner.txt": "x"})
    assert problem.startswith("planner.txt: is no agent card\n    fast-agent reads cards by their suffix: .md, ")


def test_configured_servers_are_there(tmp_path) -> None:
    text = "default_model: passthrough\nmcp: {servers: {argos: {url: 'http://a'}}}"
    (tmp_path / "fastagent.config.yaml").write_text(text)
    config, _ = fastagent.load(tmp_path)
    assert said(MODULE, {"planner.py": AGENT % ', servers=["argos"]'}, config) == []


@pytest.mark.parametrize(
    ("section", "around", "warned"),
    [
        ("", {}, True),
        ("openai: {api_key: '${OPENAI_API_KEY}'}", {}, False),
        ("responses: {base_url: 'http://vllm:8000/v1'}", {}, False),
        ("", {"variables": {"OPENAI_API_KEY"}}, False),
        ("", {"variables": {"OPENAI_BASE_URL"}}, False),
        ("", {"variables": {"ANTHROPIC_API_KEY"}}, True),
    ],
)
@pytest.mark.parametrize("model", ["openai.gpt-4.1", "gpt-4.1", "responses.gpt-5"])
def test_the_key_of_the_default_model(section: str, around, warned: bool, model: str, tmp_path) -> None:
    (tmp_path / "fastagent.config.yaml").write_text(f"default_model: {model}\n{section}\n")
    config, _ = fastagent.load(tmp_path)
    problems = said(MODULE, {"planner.py": AGENT % ""}, config, **around)
    assert len(problems) == (1 if warned else 0)
    start = "warning: fastagent.config.yaml:1:1 default_model: nothing gives the key of `openai` (OPENAI_API_KEY)"
    for problem in problems:
        assert problem.startswith(f"{start} to `planner`, `packer`\n")
        assert "`defaults: {secrets: {OPENAI_API_KEY: {file: secrets/OPENAI_API_KEY.txt}}}`" in problem


@pytest.mark.parametrize(("variable", "warned"), [("ANTHROPIC_BASE_URL", True), ("ANTHROPIC_API_KEY", False)])
def test_an_address_of_anthropics_api_alone_is_no_key(variable: str, warned: bool, tmp_path) -> None:
    """An agent without a key is degraded there, wherever the address leads."""
    (tmp_path / "fastagent.config.yaml").write_text("default_model: anthropic.claude-sonnet-4-5\n")
    config, _ = fastagent.load(tmp_path)
    problems = said(MODULE, {"planner.py": AGENT % ""}, config, variables={variable})
    assert ["nothing gives the key of `anthropic`" in problem for problem in problems] == [True] * warned


@pytest.mark.parametrize(
    ("text", "around", "places"),
    [
        (AGENT % "", {}, ["packer.yaml:1:1", "planner.py:3:2"]),
        (AGENT % ', model="openai.gpt-4.1"', {}, ["packer.yaml:1:1"]),
        (AGENT % ", model=choose()", {}, ["packer.yaml:1:1"]),
        (AGENT.replace("agent(name", "chain(name") % "", {}, ["packer.yaml:1:1"]),
        (AGENT % "", {"variables": {"FAST_AGENT_MODEL"}}, []),
        (AGENT % "", {"variables": {"DEFAULT_MODEL"}}, []),
    ],
)
def test_agents_that_nothing_gives_a_model(text: str, around, places: list[str]) -> None:
    problems = said(MODULE, {"planner.py": text}, Config(), **around)
    assert [problem.partition(": names no model")[0] for problem in problems] == places
    for problem in problems:
        assert "it will not start\n    write `default_model: PROVIDER.MODEL` in fastagent.config.yaml" in problem


def test_each_agent_imports_what_its_own_image_has() -> None:
    own = "module: planner, requirements: own.txt"
    files = {"planner.py": f"import pandas\n{AGENT % ''}"}
    missing = "planner.py:1:1: imports `pandas`, which the agent image does not have"
    assert any(missing in problem for problem in said(own, files, distributions={"": frozenset({"pandas"})}))
    assert said(own, files, distributions={"own.txt": frozenset({"pandas"})}) == []
    assert said("module: planner, image: 'mine:1'", files) == []
    assert said(own, files, distributions=None) == []


def test_a_default_model_in_the_secrets_is_one(tmp_path) -> None:
    (tmp_path / "fastagent.secrets.yaml").write_text("default_model: openai.gpt-4.1\nopenai: {api_key: x}\n")
    assert said(MODULE, {"planner.py": AGENT % ""}, fastagent.load(tmp_path)[0]) == []
    (tmp_path / "fastagent.secrets.yaml").write_text("default_model: gpt-44\n")
    (problem,) = said(MODULE, {"planner.py": AGENT % ""}, fastagent.load(tmp_path)[0])
    assert problem.startswith("fastagent.secrets.yaml:1:1 default_model: fast-agent knows no model `gpt-44`")


@pytest.mark.parametrize("text", ["", "# to be written\n", "\n\n"])
def test_an_empty_module_has_no_agent(text: str) -> None:
    (problem,) = in_module(text)
    assert problem.startswith(
        "planner.py: is empty: there is no agent `planner` in it\n    define it: fast = FastAgent("
    )


WORKFLOW = """\
name: desk
agents:
  boss: {module: desk, port: 24201, depends_on: [writer, checker]}
  writer: {module: desk, port: 24202, depends_on: [checker]}
  checker: {card: checker.md, port: 24203}
"""


def of_workflow(body: str, fleet: str = WORKFLOW) -> list[str]:
    """Return the lines about agents that run inside another; `body` is desk.py, or the card boss.md."""
    tree = source.parse(fleet, name="agents.yaml")
    files = {"desk.py": START + body, "boss.md": body, "checker.md": "---\ntype: agent\n---\n"}
    around = Surroundings(Config(default_model="passthrough"), files.get)
    problems = rules.problems(load.parse(tree), tree, around)
    return [without_codes(str(problem)) for problem in problems if problem.code == Code.CALLED_IN_PROCESS]


@pytest.mark.parametrize(
    ("arguments", "columns"),
    [
        ("agent('boss', agents=['writer', 'checker'])", {"writer": 29, "checker": 39}),
        ("chain('boss', sequence=['writer'])", {"writer": 31}),
        ("parallel('boss', fan_out=['checker'], fan_in='writer')", {"checker": 33, "writer": 52}),
        ("maker('boss', worker='writer')", {"writer": 28}),
        ("chain('boss', sequence=['inside'])", {}),
        ("agent('boss', agents=['writer'], servers=['writer'])", {}),
    ],
)
def test_an_agent_that_fast_agent_runs_inside_another_is_not_the_fleets(arguments: str, columns) -> None:
    problems = of_workflow(f"@fast.{arguments}\n@fast.agent('writer')\nasync def f(): ...\n")
    for problem, (child, column) in zip(problems, columns.items(), strict=True):
        assert problem == (
            f"warning: desk.py:3:{column}: `{child}` runs inside `boss` here: the `{child}` of agents.yaml is never "
            f'called\n    `servers=["{child}"]` calls that one; else remove `{child}` from agents.boss.depends_on'
        )


def test_a_workflow_that_hands_over_to_the_fleets_agent_calls_it() -> None:
    inside = "@fast.agent('ask', servers=['writer'])\n@fast.agent('checker', servers=['checker'])\n"
    assert of_workflow(f"{inside}@fast.chain('boss', sequence=['ask', 'checker'])\nasync def f(): ...\n") == []


def test_the_workflow_of_another_agent_in_the_same_module_is_not_its_own() -> None:
    boss = "@fast.agent('boss', agents=['checker'])\n@fast.agent('writer')\nasync def f(): ...\n"
    (problem,) = of_workflow(boss)
    assert "from agents.boss.depends_on" in problem


def test_a_card_names_agents_inside_it_too() -> None:
    fleet = WORKFLOW.replace("module: desk, port: 24201", "card: boss.md, port: 24201")
    (problem,) = of_workflow("---\nagents: [writer]\n---\n", fleet)
    assert problem.startswith("warning: boss.md:2:10 agents.0: `writer` runs inside `boss` here")
