"""From a module or a card to the agent that is served; and what is said when there is none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from fast_agent.core.exceptions import AgentConfigError
from fast_agent.llm.model_database import ModelDatabase
from fast_agent.llm.provider_types import Provider

from pallas_agent_runtime import serve
from pallas_agent_runtime.config import fastagent_yaml, settings
from pallas_agent_runtime.engine import check_files, check_models, definition, load, register_model, resolve_model
from pallas_agent_runtime.engine.definition import said
from pallas_contract.fleet import source
from pallas_contract.fleet.fastagent import Capabilities
from pallas_contract.fleet.providers import IN_EXTRAS, OFFLINE, PREFIXES
from pallas_contract.problems import Refused
from pallas_contract.validate import load as validate_load
from tests.problem_lines import without_codes

HEAD = "from fast_agent import FastAgent\nfast = FastAgent('X')\n"
AGENT = "@fast.agent(name='{}', instruction='x', servers={}, default={})\nasync def {}(): ...\n"


@pytest.fixture(autouse=True)
def _clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A home for fast-agent and import paths of this test only."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(sys, "argv", ["pallas", "--agent", "jarvis"])
    monkeypatch.setenv("FAST_AGENT_HOME", "")
    before = set(sys.modules)
    peers = {"argos": "http://x/mcp"}
    with serve.home(fastagent_yaml.build(None, None, prefix="passthrough", peers=peers, environ={}).data):
        yield
    for name in set(sys.modules) - before:
        if name.split(".")[0].startswith("made_"):
            del sys.modules[name]


def own(folder: Path, **agent: Any) -> settings.Settings:
    tree = source.parse(str({"name": "demo", "agents": {"jarvis": {"port": 8201, **agent}}}), name="agents.yaml")
    return settings.resolve(validate_load.parse(tree), tree, "jarvis", folder, environ={})


def defined(*agents: tuple[str, list[str], bool]) -> str:
    return HEAD + "".join(AGENT.format(name, servers, default, name) for name, servers, default in agents)


@pytest.mark.parametrize(
    ("code", "target"),
    [
        (defined(("other", [], False)), "other"),
        (defined(("other", [], False), ("jarvis", [], False)), "jarvis"),
        (defined(("other", [], False), ("main", [], True)), "main"),
        (defined(("Jarvis", [], False), ("main", [], True)), "Jarvis"),
        (defined(("Jarvis", [], False), ("JARVIS", [], False), ("main", [], True)), "main"),
    ],
)
def test_the_agent_of_that_name_or_the_only_or_the_default_one(
    toolkit: Any, tmp_path: Path, code: str, target: str
) -> None:
    code += "import sys\nassert sys.argv == ['pallas'], sys.argv\n"
    toolkit.write_files(tmp_path, {"made_one/__init__.py": "", "made_one/jarvis.py": code})
    loaded = load(own(tmp_path, module="made_one.jarvis"))
    assert loaded.target == target
    assert sys.argv == ["pallas", "--agent", "jarvis"]


@pytest.mark.parametrize("variables", ["agents", "agents = also"])
def test_the_variable_has_any_name_where_there_is_no_choice(toolkit: Any, tmp_path: Path, variables: str) -> None:
    code = defined(("jarvis", [], False)).replace("@fast", "@agents").replace("fast =", f"{variables} =")
    toolkit.write_files(tmp_path, {"made_any-name.py": code})
    assert load(own(tmp_path, module="made_any-name")).target == "jarvis"


def test_a_module_with_a_configuration_of_its_own_gets_the_kits(toolkit: Any, tmp_path: Path) -> None:
    code = defined(("jarvis", ["argos"], False)).replace("FastAgent('X')", "FastAgent('X', config_path='other.yaml')")
    toolkit.write_files(tmp_path, {"made_other.py": code, "other.yaml": "default_model: haiku\n"})
    app = load(own(tmp_path, module="made_other")).app
    assert (list(app.config["mcp"]["servers"]), app.config["default_model"]) == (["argos"], None)


def test_the_servers_of_all_its_agents_are_known(toolkit: Any, tmp_path: Path) -> None:
    toolkit.write_files(tmp_path, {"made_two.py": defined(("jarvis", ["argos"], False), ("b", ["neo4j"], False))})
    assert load(own(tmp_path, module="made_two")).servers == {"argos", "neo4j"}


@pytest.mark.parametrize("code", ["import made_up_package", "open('made_up.txt')"])
def test_what_a_container_lacks_may_be_the_projects_own(toolkit: Any, tmp_path: Path, code: str) -> None:
    toolkit.write_files(tmp_path, {"made_bad.py": code})
    settings = own(tmp_path, module="made_bad")
    for placement, told in (("local", False), ("container", True)):
        with pytest.raises(Refused) as refused:
            load(replace(settings, placement=placement))
        remedy = "; if it is the project's own, name it in `agents.jarvis.files`"
        assert str(refused.value).endswith(remedy) is told


@pytest.mark.parametrize(
    ("requirements", "named"),
    [
        (None, False),
        ("six\n", False),
        ("# made-up-package\n", False),
        ("six\nMade_Up.package>=1 ; x\n", True),
    ],
)
def test_what_the_requirements_name_is_installed_by_them(
    toolkit: Any, tmp_path: Path, requirements: str | None, named: bool
) -> None:
    files = {"made_bad.py": "import made_up_package.inner"} | (
        {"requirements.txt": requirements} if requirements else {}
    )
    toolkit.write_files(tmp_path, files)
    settings = own(tmp_path, module="made_bad")
    command = f"install what requirements.txt names: `{sys.executable} -m pip install -r {tmp_path}/requirements.txt`"
    for placement in ("local", "container"):  # nobody installs anything in a container
        with pytest.raises(Refused) as refused:
            load(replace(settings, placement=placement))
        assert (command in str(refused.value)) is (named and placement == "local")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (None, "there is no module `made_bad`\n    create made_bad.py in {folder}, or correct the name"),
        ("import made_up_package", "`made_bad` cannot be imported: No module named 'made_up_package' (made_bad.py:1)"),
        ("\nx = (", "`made_bad` cannot be imported: SyntaxError: '(' was never closed (made_bad.py, line 2)"),
        ("\n\n1 / 0", "`made_bad` cannot be imported: ZeroDivisionError: division by zero (made_bad.py:3)"),
        (
            "import pydantic\npydantic.TypeAdapter(int).validate_python('sk-never-shown')",
            "`made_bad` cannot be imported: ValidationError: : Input should be a valid integer, unable to parse",
        ),
        ("raise SystemExit(3)", "`made_bad` cannot be imported: SystemExit: 3 (made_bad.py:1)"),
        ("x = 1", '`made_bad` has no FastAgent\n    define it: fast = FastAgent("name")'),
        (
            HEAD.replace("fast =", "one = FastAgent('Y')\nother ="),
            "`made_bad` has several FastAgents: one, other\n    call the one that is served `fast`",
        ),
        ("fast = 1", "`fast` in `made_bad` is no FastAgent"),
        (HEAD, "defines no agent\n    decorate a function with @fast.agent(...)"),
        (
            defined(("a", [], False), ("b", [], False)),
            "defines a, b, but not `jarvis`\n    name the agent in agents.yaml after the one to serve, in lower case,",
        ),
    ],
)
def test_a_module_that_is_of_no_use_is_refused(toolkit: Any, tmp_path: Path, code: str | None, message: str) -> None:
    if code is not None:
        toolkit.write_files(tmp_path, {"made_bad.py": code})
    with pytest.raises(Refused) as refused:
        load(own(tmp_path, module="made_bad"))
    where = "agents.yaml:1:54 agents.jarvis.module: "
    assert without_codes(str(refused.value)).startswith(where + message.format(folder=tmp_path))
    assert "sk-never-shown" not in str(refused.value)


def test_a_card_is_an_agent_without_python(toolkit: Any, tmp_path: Path) -> None:
    toolkit.write_files(tmp_path, {"cards/x.md": "---\ntype: agent\nname: cardy\nservers: [argos]\n---\nYou help.\n"})
    loaded = load(own(tmp_path, card="cards/x.md"))
    assert (loaded.target, loaded.servers) == ("cardy", {"argos"})


@pytest.mark.parametrize(
    ("card", "message"),
    [
        (None, "agents.jarvis.card: no such file: x.yaml"),
        ("type: nonsense\nname: x\n", "agents.jarvis.card: fast-agent refuses it: Unsupported agent type 'nonsense'"),
        ("type: nonsense\nname: x\n", "\n    correct it in x.yaml"),
        ("type: [", "agents.jarvis.card: "),
    ],
)
def test_a_card_that_is_of_no_use_is_refused(toolkit: Any, tmp_path: Path, card: str | None, message: str) -> None:
    if card is not None:
        toolkit.write_files(tmp_path, {"x.yaml": card})
    with pytest.raises(Refused) as refused:
        load(own(tmp_path, card="x.yaml"))
    assert message in str(refused.value)


TOOLS = {
    "made_tools.py": "def add(a: int) -> int: ...\ndef star(*numbers): ...\n",
    "broken.py": "import no_such_module_here\ndef add(): ...\n",
    "raises.py": "def add(): ...\n1 / 0\n",
}


@pytest.mark.parametrize(
    ("tool", "message", "hint"),
    [
        ("gone.py:add", "there is no file gone.py, from which its tool `add` is loaded", "create it"),
        ("made_tools.py:ad", "there is no function `ad` in made_tools.py", "did you mean `add`?"),
        (
            "made_tools.py:star",
            "its tool `made_tools.py:star` cannot be loaded: ValueError: Functions with *args are not supported",
            "correct it, or remove it from `function_tools`",
        ),
        (
            "broken.py:add",
            "its tool `broken.py:add` cannot be loaded: ModuleNotFoundError: No module named 'no_such_module_here' "
            "(broken.py:1)",
            "install the package that brings `no_such_module_here`, or remove the import",
        ),
        (
            "raises.py:add",
            "its tool `raises.py:add` cannot be loaded: ZeroDivisionError: division by zero (",
            "correct",
        ),
    ],
)
def test_a_tool_that_cannot_be_loaded_is_refused_where_it_is_named(
    toolkit: Any, tmp_path: Path, tool: str, message: str, hint: str
) -> None:
    toolkit.write_files(tmp_path, {**TOOLS, "x.md": f"---\nfunction_tools: ['{tool}']\n---\nYou help.\n"})
    agent = own(tmp_path, card="x.md")
    loaded = load(agent)
    with pytest.raises(Refused) as refused:
        check_files(loaded, agent)
    (problem,) = refused.value.problems
    assert str(problem).startswith(f"x.md:2:18 function_tools.0: {message}")
    assert problem.hint.startswith(hint)


def test_tools_that_are_there_are_loaded_from_where_they_are(
    toolkit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"{HEAD}def own(a: int) -> int: ...\n{AGENT.format('jarvis', [], False, 'jarvis')}"
    code = code.replace("instruction=", "function_tools=[own, 'made_tools.py:add'], instruction=")
    card = "---\nfunction_tools: ../made_tools.py:add\n---\nYou help.\n"
    toolkit.write_files(tmp_path, {**TOOLS, "made_jarvis.py": code, "cards/x.md": card})
    monkeypatch.chdir(tmp_path)  # as the agent does, before it is loaded
    for agent in (own(tmp_path, card="cards/x.md"), own(tmp_path, module="made_jarvis")):
        check_files(load(agent), agent)


@pytest.mark.parametrize(("vision", "image"), [(True, True), (False, False)])
def test_an_unknown_model_is_registered_as_declared(vision: bool, image: bool) -> None:
    name = f"made-up-{vision}"
    assert register_model(Capabilities(name, vision, 65536, 4096), "openai")
    parameters = ModelDatabase.get_model_params(name)
    assert parameters is not None
    assert (parameters.context_window, parameters.max_output_tokens) == (65536, 4096)
    assert ("image/png" in parameters.tokenizes) is image
    assert not register_model(Capabilities(name), "openai")


@pytest.mark.parametrize(("model", "provider"), [("x", "passthrough"), ("", "openai"), ("gpt-4o", "openai")])
def test_known_models_and_offline_ones_are_left_alone(model: str, provider: str) -> None:
    assert not register_model(Capabilities(model), provider)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (AgentConfigError("Invalid agent", "type:\n  nonsense"), "Invalid agent: type: nonsense"),
        (AgentConfigError("Invalid agent"), "Invalid agent"),
        (ValueError("sk-never-shown"), "ValueError"),
    ],
)
def test_an_error_is_one_line_and_only_of_fast_agent_its_text(error: Exception, text: str) -> None:
    assert said(error) == text


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("openai.org/m.v1?temperature=1", ("openai", "org/m.v1")),
        ("gpt-4.1", ("openai", "gpt-4.1")),
        ("openai/m", ("openai", "m")),
        ("fast-agent.passthrough", ("fast-agent", "passthrough")),
        ("passthrough", ("passthrough", "")),
        ("$system.fast", ("openai", "gpt-4.1")),
        ("nobody-has-this", ("", "nobody-has-this")),
        ("$system.none", ("", "$system.none")),
        ("", ("", "")),
    ],
)
def test_a_model_is_read_as_fast_agent_does(text: str, resolved: tuple[str, str]) -> None:
    assert resolve_model(text, {"system": {"fast": "gpt-4.1"}}) == resolved


def test_an_alias_is_a_model_of_its_provider() -> None:
    provider, model = resolve_model("sonnet", None)
    assert provider == "anthropic"
    assert model.startswith("claude-sonnet")


CARD = "---\ntype: agent\nname: jarvis\n{}---\nHello\n"


@pytest.mark.parametrize(
    ("own_model", "default"), [("bedrock.x", ""), ("", "bedrock.x"), ("$system.aws", "passthrough")]
)
def test_a_model_whose_client_is_not_installed_is_refused_with_what_to_install(
    toolkit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_model: str, default: str
) -> None:
    toolkit.write_files(tmp_path, {"jarvis.md": CARD.format(f"model: {own_model}\n" if own_model else "")})
    resolved = own(tmp_path, card="jarvis.md")
    references = {"system": {"aws": "bedrock.x"}}
    absent = ["boto3"]
    monkeypatch.setattr(definition.extras, "missing", lambda *_, **__: absent)
    with pytest.raises(Refused) as refused:
        check_models(load(resolved), resolved, default, references)
    (problem,) = refused.value.problems
    assert "agents.jarvis.card: models of `bedrock` need what is not installed: boto3 [PAL213]\n" in str(problem)
    assert problem.hint == "pip install 'fast-agent-mcp[bedrock]'; for containers write boto3 into requirements.txt"
    absent.clear()
    check_models(load(resolved), resolved, default, references)


@pytest.mark.parametrize(
    ("text", "model", "environ", "refused"),
    [
        (CARD.format(""), "", {}, True),
        (CARD.format(""), "passthrough", {}, False),
        (CARD.format(""), "", {"FAST_AGENT_MODEL": "passthrough"}, False),
        (CARD.format("model: passthrough\n"), "", {}, False),
    ],
)
def test_an_agent_that_nothing_gives_a_model_is_refused(
    toolkit: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    text: str,
    model: str,
    environ: dict[str, str],
    refused: bool,
) -> None:
    monkeypatch.delenv("FAST_AGENT_MODEL", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    toolkit.write_files(tmp_path, {"jarvis.md": text})
    resolved = own(tmp_path, card="jarvis.md")
    loaded = load(resolved)
    if not refused:
        check_models(loaded, resolved, model, None)
        return
    with pytest.raises(
        Refused, match=r"names no model, and there is no default_model: it will not start \[PAL217\]\n    write `defa"
    ):
        check_models(loaded, resolved, model, None)


def test_the_client_of_any_other_provider_is_there(toolkit: Any, tmp_path: Path) -> None:
    toolkit.write_files(tmp_path, {"jarvis.md": CARD.format("model: groq.m\n")})
    resolved = own(tmp_path, card="jarvis.md")
    check_models(load(resolved), resolved, "passthrough", None)


def test_an_extra_of_fast_agent_has_the_client_of_each_provider_that_needs_one() -> None:
    assert "boto3" in set(definition.extras._packages(requires("fast-agent-mcp") or [], IN_EXTRAS))


def test_the_contract_has_every_prefix_of_fast_agent() -> None:
    assert {provider.value for provider in Provider} == PREFIXES - (OFFLINE - {"fast-agent"})
