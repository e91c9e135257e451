"""agents.yaml as written: the seed's keys, defaults and meaning."""

from __future__ import annotations

import pytest

from pallas_contract.documents import server_json
from pallas_contract.fleet import source
from pallas_contract.fleet.model import Need
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch import addresses, program, start_order
from pallas_contract.problems import Refused
from pallas_contract.validate import graph_rules, load

SEED = """\
name: my-project
version: "1.0.0"
host: my-host.example.com
namespace: com.example.project
registry_port: 8200
agents:
  jarvis:
    module: agents.jarvis
    port: 8201
    title: Jarvis
    description: "My assistant"
    depends_on: [research]
  research:
    module: agents.research
    port: 8250
    title: Research Agent
    description: "Web search and knowledge graph"
"""
MINIMAL = "name: x\nagents:\n  tech_research: {module: agents.scout, port: 8101}\n"


def parse(text: str) -> ResolvedFleet:
    return load.parse(source.parse(text, name="agents.yaml"))


def test_the_seeds_file_is_valid_as_it_stands() -> None:
    fleet = parse(SEED)
    assert fleet.registry_port == 8200
    assert fleet.agents["jarvis"].depends_on == {"research": Need(required=True)}
    assert not list(graph_rules.problems(fleet, source.parse(SEED, name="agents.yaml")))


def test_defaults_of_seed_001() -> None:
    fleet = parse(MINIMAL)
    agent = fleet.agents["tech_research"]
    assert (fleet.version, fleet.host, fleet.registry_port) == ("1.0.0", "localhost", 24200)
    assert (agent.title, agent.description, agent.depends_on, agent.replicas) == ("Tech Research", "", {}, 1)


@pytest.mark.parametrize("version", ["1.0", "banana", "v1.0.0", "1.0.0 ", "^1.2.3"])
def test_a_version_is_a_semantic_one(version: str) -> None:
    """Seed 001, `version`: a client of the catalogue may compare it."""
    with pytest.raises(Refused, match=r"version: must be a semantic version such as 1\.0\.0, not "):
        parse(f"version: {version!r}\n{MINIMAL}")
    assert parse(f"version: 2.1.0-rc.1+build.5\n{MINIMAL}").version == "2.1.0-rc.1+build.5"


def test_namespace_falls_back_to_a_local_one() -> None:
    assert parse(MINIMAL.replace("name: x", "name: My Project_2")).namespace == "local.my-project-2"


def test_defaults_are_merged_key_by_key() -> None:
    fleet = parse(
        MINIMAL.replace("port: 8101", "port: 8101, env: {B: own}, publish: 0.0.0.0")
        + "defaults: {env: {A: base, B: base}, publish: false, instance_scope: request, resources: {memory: 1Gi}}\n"
    )
    agent = fleet.agents["tech_research"]
    assert agent.env == {"A": "base", "B": "own"}
    assert (agent.publish, agent.instance_scope) == ("0.0.0.0", "request")
    assert agent.resources.memory == "1Gi"


def test_short_forms_of_image_and_networks() -> None:
    fleet = parse(MINIMAL + "image: example/fleet:1\nnetworks: flat\n")
    assert (fleet.image.agent, fleet.image.code) == ("example/fleet:1", "baked")
    assert fleet.networks.mode == "flat"


def test_soft_edges_do_not_order_the_start_and_may_close_a_circle() -> None:
    text = """\
name: x
agents:
  top: {module: a, port: 1, depends_on: [left, right]}
  left: {module: a, port: 2, depends_on: [model]}
  right: {module: a, port: 3, depends_on: {top: {required: false}}}
services:
  model: {module: m, port: 4, provides: openai}
"""
    fleet = parse(text)
    problems = graph_rules.problems(fleet, source.parse(text, name="agents.yaml"))
    assert [problem for problem in problems if problem.level == "error"] == []
    assert start_order.waves(fleet) == [["model", "right"], ["left"], ["top"]]
    assert start_order.subagents(fleet) == {"left", "right", "top"}
    assert program.peers(fleet, "left", "container") == {}
    assert program.agent(fleet, "left", "container").env["OPENAI_BASE_URL"] == "http://model:8080/v1"
    assert program.agent(fleet, "left", "local").env["OPENAI_BASE_URL"] == "http://127.0.0.1:4/v1"


def test_no_environment_key_can_be_forged_by_a_kubernetes_service() -> None:
    fleet = parse(SEED)
    keys = {*program.agent(fleet, "jarvis", "container").env, *program.registry(fleet, "local").env}
    assert keys
    assert not [key for key in keys if key.endswith(("_PORT", "_SERVICE_HOST", "_TCP", "_PROTO", "_ADDR"))]


def test_what_a_user_sets_in_env_wins() -> None:
    text = MINIMAL.replace("port: 8101", "port: 8101, env: {OPENAI_BASE_URL: 'http://gpu:1/v1'}, depends_on: [model]")
    fleet = parse(text + "services: {model: {module: m, port: 4, provides: openai}}\n")
    assert program.agent(fleet, "tech_research", "container").env["OPENAI_BASE_URL"] == "http://gpu:1/v1"


def test_all_problems_of_a_stage_come_at_once() -> None:
    with pytest.raises(Refused) as refused:
        parse("name: 1\nagents: {a: {port: x}}\nzzz: 1\n")
    assert len(refused.value.problems) == 3


def test_a_process_on_one_particular_address_is_called_there() -> None:
    fleet = parse(SEED.replace("port: 8250", "port: 8250\n    publish: 192.0.2.7"))
    env = program.agent(fleet, "jarvis", "local").env
    assert env["PALLAS_PEERS"] == '{"research":"http://192.0.2.7:8250/mcp"}'
    own = program.agent(fleet, "research", "local").env
    assert own["PALLAS_BIND"] == "192.0.2.7:8250"
    assert "192.0.2.7:*" in own["PALLAS_ALLOWED_HOSTS"]
    assert addresses.health_url(fleet, "research", "local") == "http://192.0.2.7:8250/mcp"
    assert (
        addresses.authority(parse(SEED.replace("port: 8250", "port: 8250\n    publish: 0.0.0.0")), "research", "local")
        == "127.0.0.1:8250"
    )


def test_an_ipv6_address_is_written_in_brackets() -> None:
    fleet = parse(SEED.replace("port: 8250", 'port: 8250\n    publish: "::1"'))
    assert program.agent(fleet, "research", "local").env["PALLAS_BIND"] == "[::1]:8250"
    assert addresses.mcp_url(fleet, "research", "local") == "http://[::1]:8250/mcp"


def test_replicas_share_no_host_port_so_containers_have_no_public_address() -> None:
    fleet = parse(SEED.replace("port: 8250", "port: 8250\n    replicas: 2\n    instance_scope: request"))
    urls = {place: server_json.server(fleet, "research", None, place)["remotes"] for place in ("container", "local")}
    assert [remote["url"] for remote in urls["container"]] == ["http://research:8080/mcp"]
    assert [remote["url"] for remote in urls["local"]] == ["http://my-host.example.com:8250/mcp"]


def test_behind_a_proxy_replicas_have_a_public_address_and_accept_its_name() -> None:
    text = SEED.replace("port: 8250", "port: 8250\n    replicas: 2\n    instance_scope: request")
    fleet = parse("public_url: https://{name}.example.com:8443\n" + text)
    urls = [remote["url"] for remote in server_json.server(fleet, "research", None, "container")["remotes"]]
    assert urls == ["https://research.example.com:8443/mcp", "http://research:8080/mcp"]
    accepted = program.agent(fleet, "research", "container").env["PALLAS_ALLOWED_HOSTS"].split(",")
    assert {"research.example.com", "research.example.com:*"} <= set(accepted)
    accepted = program.registry(fleet, "container").env["PALLAS_ALLOWED_HOSTS"].split(",")
    assert {"registry", "registry.example.com", "registry.example.com:*"} <= set(accepted)


def test_what_is_not_published_has_no_public_address() -> None:
    hidden = SEED.replace("port: 8250", "port: 8250\n    publish: false")
    fleet = parse("public_url: https://{name}.example.net\n" + hidden)
    urls = [remote["url"] for remote in server_json.server(fleet, "research", None, "container")["remotes"]]
    assert urls == ["http://research:8080/mcp"]
    assert "example.net" not in program.agent(fleet, "research", "container").env["PALLAS_ALLOWED_HOSTS"]
    unpublished = parse("public_url: https://{name}.example.net\nregistry: {publish: false}\n" + SEED)
    assert "example.net" not in program.registry(unpublished, "container").env["PALLAS_ALLOWED_HOSTS"]


GOOD_URLS = ["https://{name}.example.com", "http://{name}.localhost:8080/v1", "https://example.com/ai/{name}"]
BAD_URLS = [
    "https://example.com",
    "https://{name}.example.com/",
    "https://{name}.example.com/{name}",
    "https://user@{name}.example.com",
    "ftp://{name}.example.com",
    "https://x-{name}.example.com",
]


@pytest.mark.parametrize("url", GOOD_URLS)
def test_a_public_url_has_the_name_once(url: str) -> None:
    assert parse(f"public_url: '{url}'\n{SEED}").public_url == url


@pytest.mark.parametrize("url", BAD_URLS)
def test_a_public_url_by_which_a_proxy_cannot_tell_agents_apart_is_refused(url: str) -> None:
    with pytest.raises(Refused, match="a URL with one"):
        parse(f"public_url: '{url}'\n{SEED}")


@pytest.mark.parametrize("host", ["300.1.2.3", "1.2.3", "-a.example", "a b"])
def test_what_is_neither_a_host_nor_an_address_cannot_be_reached(host: str) -> None:
    registration = {"tokens": {"partners": {"file": "keys/p"}}, "reach": [host]}
    tree = source.parse(
        str({"name": "x", "registry": {"registration": registration}, "agents": {}}), name="agents.yaml"
    )
    with pytest.raises(Refused, match="must be a host name, an IP address, or a network"):
        load.parse(tree)


SERVICES = """\
name: x
agents: {scout: {card: a.md, port: 8201, depends_on: [tools]}}
services: {tools: {%s, port: 8202}, same: {image: acme/same:1, port: 8202}}
"""


@pytest.mark.parametrize(
    ("way", "refused"),
    [
        ("module: m", ["services.same"]),
        ("image: acme/tools:1", ["services.tools", "services.same"]),
        ("image: acme/tools:1, command: [tools]", ["services.same"]),
        ("image: acme/tools:1, url: 'http://localhost:1/mcp'", ["services.same"]),
    ],
)
def test_an_image_alone_is_no_process(way: str, refused: list[str]) -> None:
    tree = source.parse(SERVICES % way, name="agents.yaml")
    fleet, warnings = load.check(tree)  # two containers may listen on one port
    assert warnings == []
    problems = list(graph_rules.without_process(fleet, tree))
    assert [problem.where.field for problem in problems] == refused
    assert {problem.message for problem in problems} == {"has an image only, and `pallas` starts no containers"}
