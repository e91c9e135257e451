"""Fleet -> processes: order, environment, and what is refused before anything starts."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from pallas_agent_runtime.local.programs import members
from pallas_agent_runtime.local.supervisor import main
from pallas_contract.problems import Refused
from pallas_contract.validate import load
from tests.problem_lines import without_codes

FLEET = """\
name: demo
registry_port: 9000
agents:
  harper: {module: agents.harper, port: 9001, depends_on: {research: {required: false}, tech: {}, model: {}}}
  research: {module: agents.research, port: 9002, depends_on: [tech]}
  tech: {module: agents.tech, port: 9003, publish: 0.0.0.0}
  loner: {module: agents.loner, port: 9004, secrets: {KEY: {file: key.txt}}}
services:
  model: {module: standins.model, port: 9010, provides: openai, args: [fast], secrets: {TOKEN: {file: token.txt}}}
"""

AGENT = "from fast_agent import FastAgent\nfast = FastAgent('x')\n@fast.agent(name='x')\ndef x(): ...\n"


@pytest.fixture
def project(tmp_path):
    (tmp_path / "agents.yaml").write_text(FLEET)
    (tmp_path / "key.txt").write_text("canary-key\n")
    (tmp_path / "token.txt").write_text("t1")
    return tmp_path


@pytest.fixture
def compiled(project):
    """The members of FLEET by name, in start order, and the file they came from."""

    def compile_(**environ: str):
        config = project / "agents.yaml"
        fleet, tree, _ = load.load(config)
        return {member.name: member for member in members(fleet, tree, config, environ)}, tree

    return compile_


def test_order_is_registry_and_services_then_subagents_then_top_level(compiled):
    found, _ = compiled()
    assert list(found) == ["registry", "model", "tech", "research", "harper", "loner"]
    assert [member.stage for member in found.values()] == [0, 0, 1, 2, 3, 3]


def test_only_hard_edges_hold_a_member_up(compiled):
    found, _ = compiled()
    assert found["harper"].needs == ("model", "tech")
    assert found["research"].needs == ("tech",)
    assert found["model"].needs == found["registry"].needs == ()


def test_commands_are_those_of_the_containers(compiled, project):
    found, _ = compiled()
    assert found["harper"].command == (sys.executable, "-P", "-m", "pallas_agent_runtime", "--agent", "harper")
    assert found["model"].command == (sys.executable, "-m", "standins.model", "fast")
    assert found["registry"].command == (sys.executable, "-P", "-m", "pallas_registry")
    assert {member.cwd for member in found.values() if member.kind != "agent"} == {project}
    assert {member.cwd for member in found.values() if member.kind == "agent"} == {Path.cwd()}


def test_the_environment_says_where_to_listen_and_whom_to_call(compiled, project):
    found, _ = compiled(HOME="/root")
    env = found["harper"].env
    assert env["HOME"] == "/root"
    assert env["PALLAS_AGENTS_CONFIG"] == str(project / "agents.yaml")
    assert env["PALLAS_BIND"] == "127.0.0.1:9001"
    assert env["PALLAS_PLACEMENT"] == found["registry"].env["PALLAS_PLACEMENT"] == "local"
    assert json.loads(env["PALLAS_PEERS"])["tech"] == "http://127.0.0.1:9003/mcp"
    assert env["OPENAI_BASE_URL"] == "http://127.0.0.1:9010/v1"
    assert json.loads(found["registry"].env["PALLAS_ADDRESSES"])["loner"] == "127.0.0.1:9004"


def test_agents_alone_have_a_folder_and_each_its_own(compiled):
    found, _ = compiled(PALLAS_HOME="/tmp/pallas-x")
    homes = {name: member.env["PALLAS_HOME"] for name, member in found.items() if "PALLAS_HOME" in member.env}
    assert homes == {name: f"/tmp/pallas-x/{name}" for name in ("harper", "research", "tech", "loner")}


def test_only_services_find_the_projects_code_by_path(compiled, project):
    found, _ = compiled(PYTHONPATH="/elsewhere")
    assert found["model"].env["PYTHONPATH"] == f"{project}:/elsewhere"
    assert found["harper"].env["PYTHONPATH"] == "/elsewhere"


def test_people_get_text_unless_they_ask_for_json(compiled):
    assert compiled()[0]["tech"].env["PALLAS_LOG_FORMAT"] == "text"
    assert compiled(PALLAS_LOG_FORMAT="json")[0]["tech"].env["PALLAS_LOG_FORMAT"] == "json"


def test_secrets_come_from_their_files_and_are_not_shown(compiled):
    found, _ = compiled()
    assert found["loner"].env["KEY"] == "canary-key"
    assert found["model"].env["TOKEN"] == "t1"
    assert "KEY" not in found["tech"].env
    assert "canary-key" not in repr(found["loner"])


def test_every_missing_secret_file_is_a_problem_at_its_place(compiled, project):
    (project / "key.txt").unlink()
    (project / "token.txt").unlink()
    with pytest.raises(Refused) as refused:
        compiled()
    assert [without_codes(str(problem)).partition("\n")[0] for problem in refused.value.problems] == [
        "agents.yaml:7:55 agents.loner.secrets.KEY: there is no file key.txt",
        "agents.yaml:9:89 services.model.secrets.TOKEN: there is no file token.txt",
    ]


@pytest.mark.parametrize("content", [b"a\0b", "key".encode("utf-16"), "key".encode("utf-16-le")])
def test_a_secret_that_no_environment_can_hold_is_a_problem_at_its_place(compiled, project, content):
    """PowerShell writes UTF-16."""
    (project / "key.txt").write_bytes(content)
    with pytest.raises(Refused) as refused:
        compiled()
    (problem,) = refused.value.problems
    assert str(problem).startswith(
        "agents.yaml:7:55 agents.loner.secrets.KEY: "
        "secret file key.txt cannot be read: is not UTF-8 text, or has a NUL in it"
    )


def test_a_secret_that_is_longer_than_a_variable_may_be_or_a_pipe_is_a_problem(compiled, project):
    (project / "key.txt").write_text("x" * (128 * 1024 - len("KEY=")))
    (project / "token.txt").unlink()
    os.mkfifo(project / "token.txt")
    with pytest.raises(Refused) as refused:
        compiled()
    assert [
        str(problem).partition(" cannot be read: ")[2].partition(" [")[0] for problem in refused.value.problems
    ] == [
        "larger than 128 KiB, the most that a variable may have",
        "Not a regular file",
    ]


def test_main_refuses_a_broken_file_with_every_problem_and_code_2(project, capsys):
    (project / "agents.yaml").write_text(FLEET.replace("port: 9002", "prot: 9002").replace("port: 9003", "port: x"))
    assert main(project / "agents.yaml") == 2
    said = capsys.readouterr().err
    assert "agents.research.prot: unknown key" in said
    assert "agents.tech.port: must be a whole number" in said


def test_main_says_which_ports_are_busy_and_returns_1(project, capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        fleet = FLEET.replace("port: 9001", f"port: {port}")
        (project / "agents.yaml").write_text(fleet + "host: puck.example.com\n")
        for module in ("agents/harper", "agents/research", "agents/tech", "agents/loner", "standins/model"):
            (project / f"{module}.py").parent.mkdir(exist_ok=True)
            (project / f"{module}.py").write_text("" if "model" in module else AGENT)
        (project / "fastagent.config.yaml").write_text("default_model: passthrough\n")
        assert main(project / "agents.yaml") == 1
    problems = capsys.readouterr().err
    assert f"harper cannot listen on 127.0.0.1:{port}: address already in use by " in problems
    assert "clients are told to call puck.example.com, but ports are published on 127.0.0.1 only" in problems


def test_main_refuses_a_key_in_plain_text_unless_it_is_allowed(project, capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:  # nothing starts in either case
        (project / "agents.yaml").write_text(
            f"name: demo\nagents: {{scout: {{card: scout.md, port: {server.getsockname()[1]}}}}}\n"
        )
        (project / "scout.md").write_text("---\ntype: agent\n---\nYou scout.\n")
        config = "default_model: passthrough\nopenai: {api_key: sk-proj-a1B2c3D4e5F6g7H8}\n"
        (project / "fastagent.config.yaml").write_text(config)
        assert main(project / "agents.yaml") == 2
        refused = capsys.readouterr().err
        assert refused.startswith("fastagent.config.yaml:2:10 openai.api_key: a secret in plain text")
        assert main(project / "agents.yaml", allow_plain_secrets=True) == 1
    allowed = capsys.readouterr().err
    assert allowed.startswith("warning: fastagent.config.yaml:2:10 openai.api_key: a secret in plain text")
    assert "scout cannot listen" in allowed


def test_main_says_which_code_is_not_there_and_returns_2(project, capsys):
    assert main(project / "agents.yaml") == 2
    said = capsys.readouterr().err
    assert said.count("there is no module `") == 5
    assert "agents.yaml:4:12 agents.harper.module: there is no module `agents.harper` in the project" in said


PROTECTED = """\
name: demo
registry_port: 9000
access: {tokens: {ui: {file: ui.txt}}}
agents:
  harper: {module: agents.harper, port: 9001, depends_on: [research]}
  research: {module: agents.research, port: 9002, access: {tokens: {harper: {file: harper.txt}}}}
"""


def test_of_tokens_only_those_that_are_presented_are_variables(tmp_path) -> None:
    path = tmp_path / "agents.yaml"
    path.write_text(PROTECTED)
    (tmp_path / "harper.txt").write_text("token-of-harper\n")
    fleet, tree, _ = load.load(path)
    with pytest.raises(Refused) as refused:
        members(fleet, tree, path, {})
    assert {str(problem.where) for problem in refused.value.problems} == {"agents.yaml:3:24 access.tokens.ui.file"}
    (tmp_path / "ui.txt").write_text("token-of-ui\n")
    env = {member.name: member.env for member in members(fleet, tree, path, {})}
    assert [key for key, text in env["harper"].items() if text.startswith("token-of")] == ["PALLAS_CALL_RESEARCH_TOKEN"]
    assert not any(text.startswith("token-of") for name in ("research", "registry") for text in env[name].values())


GUARDED = """\
name: demo
registry_port: 9000
access: {tokens: {gateway: {file: gateway.txt}}}
gateway: {agents: [scout], access: {tokens: {phone: {file: phone.txt}}}}
agents: {scout: {module: agents.scout, port: 9001}}
"""


def test_the_gateways_tokens_are_looked_at_before_anything_starts(tmp_path) -> None:
    path = tmp_path / "agents.yaml"
    path.write_text(GUARDED)
    fleet, tree, _ = load.load(path)
    with pytest.raises(Refused) as refused:
        members(fleet, tree, path, {})
    assert [problem.where.field for problem in refused.value.problems] == [
        "access.tokens.gateway.file",
        "gateway.access.tokens.phone.file",
    ]
    for name in ("gateway.txt", "phone.txt"):
        (tmp_path / name).write_text("token-of-somebody\n")
    env = {member.name: member.env for member in members(fleet, tree, path, {})}["gateway"]
    assert "token-of-somebody" not in env.values()


def test_who_calls_others_through_the_gateway_stops_no_later_than_it(tmp_path) -> None:
    path = tmp_path / "agents.yaml"
    path.write_text("""\
name: demo
registry_port: 9000
access: {tokens: {middle: {file: middle.txt}, gateway: {file: gateway.txt}}}
gateway: {agents: [top]}
agents:
  top: {module: agents.top, port: 9001, depends_on: [middle], access: {tokens: {top: {file: top.txt}}}}
  middle: {module: agents.middle, port: 9002, depends_on: [low], access: {tokens: {top: {file: top.txt}}}}
  low: {module: agents.low, port: 9003, through: gateway}
""")
    for name in ("gateway.txt", "middle.txt", "top.txt"):
        (tmp_path / name).write_text(f"token-of-{name}-0123456789\n")
    fleet, tree, _ = load.load(path)
    stages = {member.name: member.stage for member in members(fleet, tree, path, {})}
    assert stages["low"] < stages["gateway"] <= stages["middle"] < stages["top"]


FOREIGN = """\
name: x
agents: {scout: {card: a.md, port: 8201}}
services: {tools: {image: acme/tools:1, port: 8202, %s}}
"""


def test_the_command_of_an_image_is_run_as_it_is_written(tmp_path) -> None:
    path = tmp_path / "agents.yaml"
    path.write_text(FOREIGN % "command: [tools, '${PORT}'], secrets: {KEY: {file: key.txt}}")
    (tmp_path / "key.txt").write_text("sesame\n")
    fleet, tree, _ = load.load(path)
    (tools,) = [member for member in members(fleet, tree, path, {}) if member.name == "tools"]
    assert tools.command == ("tools", "8202")
    assert tools.env["KEY"] == "sesame"
    assert "PYTHONPATH" not in tools.env


def test_main_refuses_an_image_that_no_process_stands_for(tmp_path, capsys) -> None:
    (tmp_path / "a.md").write_text("Hi\n")
    path = tmp_path / "agents.yaml"
    path.write_text(FOREIGN % "provides: other")
    assert main(path) == 2
    message = "agents.yaml:3:12 services.tools: has an image only, and `pallas` starts no containers"
    assert message in capsys.readouterr().err
