"""A fleet on a machine: whose its ports are, where its keys are, which images and names are missing, how it is."""

from __future__ import annotations

import pytest

from pallas_contract.codes import Code
from pallas_contract.fleet import source
from pallas_contract.launch import compose_containers, run_files
from pallas_contract.launch.listeners import Listener
from pallas_gen.doctor import fleet
from pallas_gen.doctor.finding import Finding
from pallas_gen.doctor.machine import Machine
from pallas_gen.plan import build_plan
from pallas_gen.project import load
from pallas_gen.project.load import Loaded
from pallas_gen.running.tool import Done

ONE = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101, secrets: {KEY: {file: key}}}\n"
CONFIG = "default_model: openai.gpt-4.1\nmcp: {servers: {web: {url: 'https://web.example:8443/${PART}'}}}\n"


@pytest.fixture
def loaded(make) -> Loaded:
    text = "from fast_agent import FastAgent\nfast = FastAgent('x')\n\n\n@fast.agent(name='scout', servers=['web'])\n"
    dotenv = "PART=canary\nOPENAI_API_KEY=canary\n"
    path = make(ONE, **{"fastagent.config__yaml": CONFIG, "key": "canary", "__env": dotenv})
    (path.parent / "agents" / "scout.py").write_text(f"{text}async def main(): ...\n")
    return load.load(path, {})


def lines(findings) -> list[str]:
    return [f"{finding.state} {finding.subject}: {finding.message}" for finding in findings]


def test_keys_are_named_with_where_they_are_and_never_shown(loaded: Loaded, machine) -> None:
    findings = lines(fleet.keys(loaded, machine()))
    assert findings == ["ok OPENAI_API_KEY: is set in .env", "ok PART: is set in .env", "ok KEY: is the file key"]
    assert "canary" not in str(findings)


def test_a_key_of_the_environment_reaches_no_container(loaded: Loaded, machine) -> None:
    (loaded.folder / ".env").unlink()
    (first, _) = fleet.keys(loaded, machine(environ={"PART": "canary"}))
    assert first.message == "is set in the environment; containers get it from .env alone"
    assert lines(fleet.keys(loaded, machine())) == ["ok KEY: is the file key"]


def ports(loaded: Loaded, machine) -> list[Finding]:
    path = loaded.folder / "agents.yaml"
    return list(fleet.ports(loaded, source.read(path), path, machine))


def busy(host: str, port: int) -> str:
    return "address already in use" if port == 8101 else ""


def test_a_port_that_somebody_has_names_them_and_what_to_do(loaded: Loaded, machine) -> None:
    assert lines(ports(loaded, machine())) == ["ok 24200, 8101: free"]
    taken, free = ports(loaded, machine(refusal=busy, listeners=lambda port: [Listener(7, "nginx")]))
    assert taken.subject.endswith("agents.yaml:3:33 agents.scout.port")
    assert taken.message == "scout cannot listen on 127.0.0.1:8101: address already in use by nginx (pid 7)"
    assert (taken.state, taken.code, taken.hint) == ("error", Code.PORT_TAKEN, "stop it, or change the port")
    assert free.subject == "24200"


@pytest.mark.parametrize(
    ("targets", "numbers"),
    [
        ((), "24200, 24199, 8101, 8102, 8103, 8111"),
        (("processes", "compose"), "24200, 24199, 8101, 8102, 8103, 8111"),
        (("compose", "helm"), "24200, 24199, 8101"),
        (("helm",), ""),
    ],
)
def test_the_ports_are_those_of_the_target(make, targets: tuple[str, ...], numbers: str, machine) -> None:
    """Containers have those of the machine that are published, pods none."""
    path = make(
        "name: x\ngateway: {port: 24199, agents: [scout]}\nservices: {tides: {module: agents.scout, port: 8111}}\n"
        "agents:\n"
        "  scout: {module: agents.scout, port: 8101}\n  hidden: {module: agents.scout, port: 8102, publish: false}\n"
        "  many: {module: agents.scout, port: 8103, replicas: 2, instance_scope: request}\n"
    )
    read = load.load(path, {})
    findings = list(fleet.ports(read, source.read(path), path, machine(), targets=targets))
    assert sorted(", ".join(finding.subject for finding in findings).split(", ")) == sorted(numbers.split(", "))


def test_the_ports_of_this_fleet_are_in_nobodys_way(loaded: Loaded, machine) -> None:
    own = [Listener(7, "python3", "ab/scout", str(loaded.folder / "agents.yaml"))]
    assert lines(ports(loaded, machine(refusal=busy, listeners=lambda port: own))) == [
        "ok 24200: free",
        "ok 8101: this fleet runs there",
    ]
    by_another_path = loaded.folder / ".." / loaded.folder.name / "agents.yaml"
    here = machine(refusal=busy, listeners=lambda port: own)
    findings = fleet.ports(loaded, source.read(by_another_path), by_another_path, here)
    assert {finding.state for finding in findings} == {"ok"}
    other = [Listener(7, "python3", "ab/scout", "/elsewhere/agents.yaml")]
    assert ports(loaded, machine(refusal=busy, listeners=lambda port: other))[0].state == "error"


@pytest.mark.parametrize(("made_by", "state"), [("compose.yaml", "ok"), ("copy/compose.yaml", "error")])
def test_so_are_those_of_its_own_containers(loaded: Loaded, machine, made_by: str, state: str) -> None:
    file = loaded.folder / made_by
    file.parent.mkdir(exist_ok=True)
    file.write_text("")
    containers = {"docker ps": Done(0, f"agent\t{file}\n")}
    findings = ports(loaded, machine(containers, refusal=busy, listeners=lambda port: [Listener()]))
    assert {finding.state for finding in findings if "8101" in f"{finding.subject} {finding.message}"} == {state}


def test_the_compose_project_may_have_its_name_from_the_env_file(loaded: Loaded, machine) -> None:
    file = loaded.folder / "compose.yaml"
    file.touch()
    (loaded.folder / ".env").write_text("COMPOSE_PROJECT_NAME=second\n")
    tools = {
        f"{' '.join(compose_containers.listing('label=com.docker.compose.project=second'))} ": Done(
            0, f"agent\t{file}\n"
        )
    }
    findings = ports(loaded, machine(tools, refusal=busy, listeners=lambda port: [Listener()]))
    assert lines(findings) == ["ok 24200: free", "ok 8101: this fleet runs there"]


def test_an_image_of_the_kit_is_built_and_others_are_pulled(make, machine) -> None:
    path = make(f"{ONE}services: {{db: {{image: 'postgres:17', port: 5432, provides: other}}}}\n", key="x" * 20)
    read = load.load(path, {})
    plan = build_plan(read.fleet, read.config, read.project)
    absent = {"docker image inspect": Done(1, "", "no such image")}
    findings = list(fleet.images(plan, path, machine(absent), "warning"))
    assert [(finding.subject.partition(":")[0], finding.state) for finding in findings] == [
        ("pallas-agent", "warning"),
        ("pallas-registry", "warning"),
        ("postgres", "note"),
    ]
    assert findings[0].hint.startswith(f"`pallas-gen build -f {path}` makes it")
    assert findings[2].hint.endswith("`docker pull postgres:17` does so now")
    assert {finding.state for finding in fleet.images(plan, path, machine(), "warning")} == {"ok"}


def test_names_outside_of_the_fleet_are_looked_up(loaded: Loaded, machine) -> None:
    assert lines(fleet.hosts(loaded, machine())) == ["ok api.openai.com: known to DNS"]
    unresolved = machine(unresolved=lambda hosts: dict.fromkeys(hosts, "name or service not known"))
    (finding,) = fleet.hosts(loaded, unresolved)
    assert (finding.state, finding.message) == ("warning", "has no address here: name or service not known")
    (finding,) = fleet.hosts(loaded, machine(environ={"https_proxy": "http://u:canary@p"}, unresolved=None))
    assert (finding.state, "canary" in str(finding)) == ("ok", False)


def test_the_host_of_a_model_is_known_by_its_name_alone(loaded: Loaded, machine) -> None:
    (loaded.folder / "fastagent.config.yaml").write_text(CONFIG.replace("openai.gpt-4.1", "sonnet"))
    found = load.load(loaded.folder / "agents.yaml", {})
    assert lines(fleet.hosts(found, machine())) == ["ok api.anthropic.com: known to DNS"]


def running(loaded: Loaded, made: Machine) -> list[Finding]:
    return list(fleet.running(loaded, loaded.folder / "agents.yaml", made))


def entry(name: str, **health: str) -> dict[str, object]:
    return {"server": {"name": f"local.x/{name}"}, "_meta": {"io.pallas-kit/health": health}}


def test_a_fleet_that_runs_is_as_its_registry_has_it(loaded: Loaded, machine) -> None:
    entries = [
        entry("scout", status="ok"),
        entry("slow", status="starting"),
        entry("weak", status="degraded", message="no model"),
        entry("dead", status="error", message="connection refused"),
    ]
    asked = []
    findings = list(running(loaded, machine(document=lambda url: asked.append(url) or {"servers": entries})))
    assert asked == ["http://localhost:24200"]
    assert lines(findings) == [
        "ok registry: answers at http://localhost:24200",
        "ok scout: ok",
        "note slow: starting",
        "warning weak: degraded: no model",
        "error dead: error: connection refused",
    ]
    assert findings[-1].hint == "`pallas logs dead` shows what it has printed"


def test_who_refuses_credentials_is_told_with_where_they_belong(loaded: Loaded, machine) -> None:
    message = "Unreachable: far; Refused by: locked, scout; LLM: openai: no API key"
    entries = [entry("weak", status="degraded", message=message)]
    *_, finding = running(loaded, machine(document=lambda _: {"servers": entries}))
    assert finding.hint.split("; ") == [
        "the MCP server `locked` refuses its credentials (HTTP 401 or 403): put them into `headers` or `auth` of "
        "`mcp.servers.locked` in fastagent.config.yaml (docs/secrets.md)",
        "`access` of `scout` needs a token under the name of this agent (docs/access.md)",
        "`pallas logs weak` shows what it has printed",
    ]


@pytest.mark.parametrize(
    ("owner", "other"),
    [
        ({"name": "y", "placement": "container"}, "fleet, `y`; "),
        ({"name": "x", "placement": "local", "project": "0" * 16}, "fleet of this name, whose fleet file is not "),
        ({"name": "x", "placement": "container"}, "fleet of this name, that of "),
    ],
    ids=["name", "processes", "containers"],
)
def test_the_agents_of_another_fleet_are_not_shown_as_its_own(
    owner: dict[str, str], other: str, loaded: Loaded, machine
) -> None:
    file = loaded.folder / "copy" / "compose.yaml"
    file.parent.mkdir()
    file.write_text("      PALLAS_AGENTS_CONFIG: /f\n      source: ./agents.yaml\n      target: /f\n")
    tools = {"docker ps": Done(0, f"second\t{file}\t127.0.0.1:24200->8080/tcp\n")}
    answers = {"document": lambda url: {"servers": [entry("scout", status="ok")]}}
    (finding,) = running(loaded, machine(tools, **answers, services=lambda url: {"fleet": owner}))
    assert (finding.state, finding.code) == ("error", Code.NOT_WELL)
    assert finding.message.startswith(f"the registry at http://localhost:24200 is that of another {other}")
    assert finding.hint.startswith("end that fleet where it was started, or give ")
    own = {"name": "x", "placement": "local", "project": run_files.project_id(loaded.folder / "agents.yaml")}
    assert lines(running(loaded, machine(tools, **answers, services=lambda url: {"fleet": own})))[1:] == [
        "ok scout: ok"
    ]


def test_where_nobody_or_a_stranger_answers(loaded: Loaded, machine) -> None:
    (finding,) = running(loaded, machine())
    assert (finding.state, finding.message) == (
        "note",
        "no registry answers at http://localhost:24200: connection refused",
    )
    (finding,) = running(loaded, machine(document=lambda url: {"hello": "world"}))
    assert (finding.state, finding.hint) == ("error", "stop what answers there, or change `registry_port`")
