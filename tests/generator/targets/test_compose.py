"""The compose document: networks, secrets, hardening, and text that survives."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from pallas_contract.fleet.source import Loader
from pallas_gen.output import yaml as yaml_out
from pallas_gen.plan import Plan
from pallas_gen.project.contents import Contents
from pallas_gen.targets.compose import render as compose
from pallas_gen.targets.compose import subnets

HERE = PurePosixPath()
GRAPH = """\
name: My Fleet!
agents:
  top: {module: agents.scout, port: 8101, depends_on: [left]}
  left: {module: agents.scout, port: 8102, publish: false, depends_on: [tools]}
  right: {module: agents.scout, port: 8103, publish: false, egress: true}
services:
  tools: {module: agents.model, port: 8104}
"""
HARD = ["$HOME ${X} $$", "{{ .Values }}", "yes", "0123", "1e3", "0o17", "a: b # c", "ünï ☃", "l1\nl2\n", " x", "~", ""]


def document(plan: Plan) -> dict[str, Any]:
    return yaml.load(compose.render(plan, HERE, Contents())[compose.FILE], Loader)


def test_who_shares_a_network_with_whom(plan) -> None:
    services = document(plan(GRAPH))["services"]
    assert {name: sorted(service["networks"]) for name, service in services.items()} == {
        "top": ["agent.top", "call.top.left"],
        "left": ["agent.left", "call.left.tools", "call.top.left"],
        "right": ["agent.right"],
        "tools": ["call.left.tools", "call.registry.tools"],
        "registry": ["agent.left", "agent.right", "agent.top", "call.registry.tools", "registry"],
    }


def test_an_agent_listens_only_where_its_callers_are(plan) -> None:
    services = document(plan(GRAPH))["services"]
    left = services["left"]
    assert left["environment"]["PALLAS_LISTEN_ON"] == "from.registry,from.top"
    assert left["networks"] == {
        "agent.left": {"aliases": ["from.registry"]},
        "call.left.tools": {},
        "call.top.left": {"aliases": ["from.top"]},
    }
    assert services["top"]["networks"]["call.top.left"] == {}
    assert "PALLAS_LISTEN_ON" not in services["registry"]["environment"] | services["tools"]["environment"]
    flat = document(plan(GRAPH + "networks: flat\n"))["services"]
    assert "PALLAS_LISTEN_ON" not in flat["left"]["environment"]


def test_a_service_that_calls_back_has_one_network_with_its_agent_on_which_both_listen(plan) -> None:
    """Two networks would be one too many: Docker answers for a name from the first, and there the agent is silent."""
    services = document(plan(GRAPH.replace("port: 8104", "port: 8104, calls: [left]")))["services"]
    assert sorted(services["tools"]["networks"]) == ["call.registry.tools", "call.tools.left"]
    assert services["left"]["networks"] == {
        "agent.left": {"aliases": ["from.registry"]},
        "call.tools.left": {"aliases": ["from.tools"]},
        "call.top.left": {"aliases": ["from.top"]},
    }
    assert services["left"]["environment"]["PALLAS_LISTEN_ON"] == "from.registry,from.tools,from.top"


def test_the_gateway_reaches_what_it_names_and_is_reached_along_no_call(plan) -> None:
    fleet = """
name: x
gateway: {agents: [front], publish: 127.0.0.2, tenants: {acme: {}}, tools: {lookup_entity: memory}}
agents:
  front: {card: a.md, port: 8101, publish: false, depends_on: [back]}
  back: {card: a.md, port: 8102, publish: false}
services:
  memory: {module: memory, port: 8103}
"""
    files = {"a.md": "---\nname: a\nmodel: passthrough\n---\nText.\n", "memory.py": "PALLAS_BIND = 1\n"}
    made = document(plan(fleet, **files))
    gateway = made["services"]["gateway"]
    members = {
        name: {host for host in made["services"] if name in made["services"][host]["networks"]}
        for name in gateway["networks"]
    }
    assert members == {
        "call.gateway.front": {"gateway", "front"},
        "call.gateway.memory": {"gateway", "memory"},
        "gateway.gateway": {"gateway", "registry"},
    }
    assert [name for name in gateway["networks"] if not made["networks"][name].get("internal")] == ["gateway.gateway"]
    assert gateway["environment"]["PALLAS_LISTEN_ON"] == "from.registry"
    assert made["services"]["front"]["environment"]["PALLAS_LISTEN_ON"] == "from.gateway,from.registry"
    assert gateway["ports"][0]["host_ip"] == "127.0.0.2"
    assert gateway["image"] == made["services"]["front"]["image"]
    assert gateway["command"] == ["-P", "-m", "pallas_gateway"]


def test_replicas_of_the_gateway_have_no_volume_no_port_and_a_way_to_their_stores(plan) -> None:
    fleet = """
name: x
access: {tokens: {ui: {file: ui.txt}, phone: {file: phone.txt}, gateway: {file: own.txt}}}
gateway:
  agents: [front]
  replicas: 3
  tenants: {acme: {callers: [ui]}}
  confirm: [{agent: front, tools: [send_message], by: [phone]}]
  store: {url: {file: postgres.url}, service: database}
  counters: {url: {file: valkey.url}%s}
agents:
  front: {card: a.md, port: 8101, publish: false}
services:
  database: {image: "postgres:17", provides: other, port: 5432}
  counts: {image: "valkey:8", provides: other, port: 6379}
"""
    files = {"a.md": "---\nname: a\nmodel: passthrough\n---\nText.\n"}
    secrets = dict.fromkeys(("ui__txt", "phone__txt", "own__txt", "postgres__url", "valkey__url"), "x")
    inside, outside = (document(plan(fleet % where, **files, **secrets)) for where in (", service: counts", ""))
    gateway = inside["services"]["gateway"]
    assert gateway["deploy"]["replicas"] == 3
    assert "ports" not in gateway
    assert "volumes" not in gateway or all(mount["type"] == "bind" for mount in gateway["volumes"])
    assert {"call.gateway.database", "call.gateway.counts"} < set(gateway["networks"])
    mounted = {secret["target"] for secret in gateway["secrets"]}
    assert {"store.url", "counters.url"} < mounted
    led = [
        [name for name in made["services"]["gateway"]["networks"] if not made["networks"][name].get("internal")]
        for made in (inside, outside)
    ]
    assert led == [[], ["gateway.gateway"]]  # only for a database outside there is a way into the world


def test_a_gateway_before_agents_that_register_asks_the_registry_where_it_is_probed(plan) -> None:
    fleet = """
name: x
registry:
  registration: {tokens: {cleaner: {file: cleaner.txt, agents: [data_cleaner]}}, reach: [10.20.0.0/16]}
gateway: {agents: [front], publish: false, tenants: {acme: {}}, registered: [data_cleaner]}
agents:
  front: {card: a.md, port: 8101, publish: false}
"""
    files = {"a.md": "---\nname: a\nmodel: passthrough\n---\nText.\n"}
    made = document(plan(fleet, cleaner__txt="x" * 16, **files))
    gateway = made["services"]["gateway"]
    assert sorted(gateway["networks"]) == ["call.gateway.front", "gateway.gateway"]
    assert "internal" not in made["networks"]["gateway.gateway"]
    closed = fleet.replace(", registered: [data_cleaner]", "")
    made = document(plan(closed, cleaner__txt="x" * 16, **files))
    assert made["networks"]["gateway.gateway"]["internal"]


def test_what_is_through_the_gateway_shares_a_network_with_it_and_with_no_caller(plan) -> None:
    """The gateway and `front` call each other: of two networks, Docker's DNS would choose one by name."""
    fleet = """
name: x
access: {tokens: {front: {file: front.txt}, gateway: {file: own.txt}}}
gateway: {agents: [front]}
agents:
  front: {card: a.md, port: 8101, publish: false, depends_on: [below, tools]}
  below: {card: a.md, port: 8102, through: gateway}
services:
  tools: {module: memory, port: 8103, through: gateway}
"""
    files = {"a.md": "---\nname: a\nmodel: passthrough\n---\nText.\n", "memory.py": "PALLAS_BIND = 1\n"}
    services = document(plan(fleet, front__txt="x", own__txt="x", **files))["services"]
    assert {name: sorted(service["networks"]) for name, service in services.items() if name != "registry"} == {
        "below": ["agent.below", "call.gateway.below"],
        "front": ["agent.front", "call.gateway.front"],
        "gateway": ["call.gateway.below", "call.gateway.front", "call.gateway.tools", "gateway.gateway"],
        "tools": ["call.gateway.tools", "call.registry.tools"],
    }
    listens = {name: services[name]["environment"].get("PALLAS_LISTEN_ON") for name in services}
    assert listens["gateway"] == "from.front,from.registry"
    assert listens["front"] == listens["below"] == "from.gateway,from.registry"
    assert services["gateway"]["networks"]["call.gateway.front"] == {"aliases": ["from.front"]}
    assert services["front"]["networks"]["call.gateway.front"] == {"aliases": ["from.gateway"]}
    assert "ports" not in services["below"]
    assert list(services["front"]["depends_on"]) == ["gateway"]


def test_only_publishing_and_egress_open_a_network(plan) -> None:
    networks = document(plan(GRAPH))["networks"]
    assert sorted(name for name, network in networks.items() if not network.get("internal")) == [
        "agent.right",
        "agent.top",
        "registry",
    ]


def test_the_registry_gets_no_egress_by_probing_a_service_that_has_it(plan) -> None:
    made = document(plan(GRAPH.replace("port: 8104", "port: 8104, egress: true")))
    shared = set(made["services"]["registry"]["networks"]) & set(made["services"]["tools"]["networks"])
    assert shared == {"call.registry.tools"}
    assert made["networks"]["call.registry.tools"]["internal"] is True
    assert "internal" not in made["networks"]["service.tools"]


def test_an_image_of_somebody_else_gets_its_files_and_no_configuration(plan) -> None:
    db = "  db: {image: acme/db:1, port: 5432, provides: other, files: [tuning.conf]}\n"
    made = document(plan(GRAPH + db, tuning__conf="cache = 1\n"))["services"]
    (volume,) = made["db"]["volumes"]
    assert (volume["source"], volume["target"]) == ("tuning.conf", "/project/tuning.conf")
    assert volume["read_only"] is True
    assert "working_dir" not in made["db"]


def test_flat_networks_are_the_opt_out(plan) -> None:
    made = document(plan(GRAPH + "networks: flat\n"))
    assert "networks" not in made
    assert all("networks" not in service for service in made["services"].values())


def test_every_service_is_hardened(plan) -> None:
    for service in document(plan(GRAPH))["services"].values():
        assert service["read_only"] is service["init"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["user"] == "10001:10001"
        assert service["deploy"]["resources"]["limits"].keys() == {"cpus", "memory", "pids"}
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "3"}
        assert all(port["host_ip"] == "127.0.0.1" for port in service.get("ports", []))
        assert all(volume["read_only"] for volume in service["volumes"])


def test_one_host_port_is_not_shared_by_replicas(plan) -> None:
    made = document(plan(GRAPH.replace("port: 8101", "port: 8101, replicas: 2, instance_scope: request")))
    assert "ports" not in made["services"]["top"]
    assert made["networks"]["agent.top"]["internal"] is True


def test_start_is_gated_on_health_along_hard_edges(plan) -> None:
    services = document(plan(GRAPH))["services"]
    assert services["top"]["depends_on"] == {"left": {"condition": "service_healthy"}}
    assert services["left"]["depends_on"] == {"tools": {"condition": "service_healthy"}}
    assert "depends_on" not in services["registry"]


def test_secrets_are_files_that_no_mount_shows(plan) -> None:
    text = GRAPH.replace("port: 8103", "port: 8103, secrets: {API_KEY: {file: keys/a.txt}, B: {file: keys_a.txt}}")
    made = document(plan(text, fastagent__secrets__yaml="openai: {api_key: sk-canary}\n", keys_a__txt="sk-canary"))
    assert list(made["secrets"].values()) == [
        {"file": "fastagent.secrets.yaml"},
        {"file": "keys/a.txt"},
        {"file": "keys_a.txt"},
    ]
    assert [item["target"] for item in made["services"]["right"]["secrets"]] == [
        "fastagent.secrets.yaml",
        "API_KEY",
        "B",
    ]
    assert [item["source"] for item in made["services"]["right"]["volumes"]] == ["agents.yaml", "agents/scout.py"]
    assert "secrets" not in made["services"]["registry"]
    assert [item["source"] for item in made["services"]["registry"]["volumes"]] == ["agents.yaml"]
    assert "sk-canary" not in str(made)


def test_files_under_fast_agents_own_names_are_delivered_alike(plan, make) -> None:
    path = make(GRAPH)
    (path.parent / "fast-agent.yaml").write_text("default_model: openai.m\n")
    (path.parent / "fast-agent.secrets.yaml").write_text("openai: {api_key: sk-canary}\n")
    services = document(plan(GRAPH))["services"]
    assert [entry["source"] for entry in services["right"]["volumes"]] == [
        "agents.yaml",
        "agents/scout.py",
        "fast-agent.yaml",
    ]
    assert {entry["target"] for entry in services["right"]["secrets"]} == {"fast-agent.secrets.yaml"}
    assert [entry["source"] for entry in services["registry"]["volumes"]] == ["agents.yaml", "fast-agent.yaml"]


@pytest.mark.parametrize("text", HARD)
def test_user_text_survives_the_way_through_yaml_and_compose(plan, text: str) -> None:
    made = plan("name: x\nagents:\n  scout: {module: agents.scout, port: 8101, env: {T: " + yaml_flow(text) + "}}\n")
    written = compose.render(made, HERE, Contents())[compose.FILE]
    value = yaml.safe_load(written)["services"]["scout"]["environment"]["T"]
    assert isinstance(value, str)
    assert value.replace("$$", "$") == text
    assert value.count("$") == 2 * text.count("$")


def yaml_flow(text: str) -> str:
    return yaml.safe_dump(text, default_style='"', width=10**6).strip()


@pytest.mark.parametrize(
    "text", ["yes", "No", "1e3", "0o17", "0x1F", "1_000", "12:30", "null", "~", "-", "?", ".5", "="]
)
def test_text_that_other_parsers_read_as_something_else_is_quoted(text: str) -> None:
    assert f'k: "{text}"' in yaml_out.dump({"k": text}, source="s", override="o")


@pytest.mark.parametrize(
    ("more", "made_here"),
    [
        ("", {"top", "left", "right", "tools", "registry"}),
        ("image: {names: '{name}-of-mine:1'}\n", {"top", "left", "right", "tools", "registry"}),
        ("image: {names: 'ghcr.io/team/{name}'}\n", set()),
        ("image: {names: 'team/{name}'}\n", set()),
        ("image: mine:1\n", {"registry"}),
        ("image: {registry: 'mine:1'}\n", {"top", "left", "right", "tools"}),
    ],
)
def test_no_registry_is_asked_for_what_is_made_here(plan, more: str, made_here: set[str]) -> None:
    services = document(plan(GRAPH + more))["services"]
    assert {name for name, service in services.items() if service.get("pull_policy") == "never"} == made_here
    told = [service["build"]["context"] for service in services.values() if "build" in service]
    assert len(told) == len(made_here)
    assert {text for text in told if "pallas-gen build" not in text} == set()


def test_an_image_of_the_fleet_is_made_here_and_one_of_others_is_not(plan) -> None:
    others = "  db: {image: 'redis:8', port: 6379, provides: other, url: 'http://localhost:6379/'}\n"
    services = document(plan(GRAPH + others, requirements__txt="six\n"))["services"]
    assert services["top"]["image"].startswith("my-fleet-agent:")
    assert services["top"]["pull_policy"] == "never"
    assert "build" not in services["db"]


def test_bytes_are_a_function_of_input(plan) -> None:
    assert compose.render(plan(GRAPH), HERE, Contents()) == compose.render(plan(GRAPH), HERE, Contents())


def test_networks_get_subnets_that_do_not_overlap(plan) -> None:
    agents = "".join(f"  a{i}: {{module: agents.scout, port: {9000 + i}}}\n" for i in range(40))
    networks = document(plan("name: x\nagents:\n" + agents))["networks"]
    taken = [IPv4Network(network["ipam"]["config"][0]["subnet"]) for network in networks.values()]
    assert len(taken) == 41
    assert all(subnet.subnet_of(IPv4Network("10.213.0.0/16")) for subnet in taken)
    assert not any(a.overlaps(b) for i, a in enumerate(taken) for b in taken[:i])


def test_adding_a_network_leaves_the_others_where_they_were() -> None:
    pool = IPv4Network("10.213.0.0/16")
    members = {f"agent.a{i}": 2 for i in range(60)}
    before = subnets.allocate("x", members, pool)
    after = subnets.allocate("x", members | {"agent.new": 2}, pool)
    assert sum(before[name] != after[name] for name in members) <= 1


def test_a_network_is_as_large_as_its_members_need() -> None:
    sizes = subnets.allocate("x", {"a": 2, "b": 5, "c": 6, "d": 13, "e": 14}, IPv4Network("10.0.0.0/16"))
    assert [sizes[name].prefixlen for name in "abcde"] == [29, 29, 28, 28, 27]


@pytest.mark.parametrize(
    ("name", "project"),
    [("My Fleet!", "my-fleet"), ("_x", "x"), ("a.b", "a-b"), ("Флот 2", "2-23fc1c"), ("Мост 2", "2-9fa47f")],
)
def test_project_name_is_one_compose_accepts(plan, name: str, project: str) -> None:
    assert document(plan(GRAPH.replace("My Fleet!", name)))["name"] == project


@pytest.mark.parametrize("name", ["Мой флот", "舰队", "!?"])
def test_a_name_that_leaves_nothing_for_compose_is_refused(make, run, name: str) -> None:
    path = make(GRAPH.replace("My Fleet!", yaml_flow(name)))
    code, _, err = run("compose", "-f", str(path))
    assert code == 2
    assert f"name: no compose project can be called `{name}`: it has no letter from a to z and no digit\n" in err
    assert not path.with_name("compose.yaml").exists()


def test_a_collector_beside_the_fleet_has_a_network_with_the_agents(plan) -> None:
    made = document(plan(GRAPH + "telemetry: {otlp_endpoint: 'http://otel:4318'}\n"))
    before = document(plan(GRAPH))
    on = {name for name, service in made["services"].items() if "telemetry" in service["networks"]}
    assert on == {"top", "left", "right"}
    assert made["networks"].pop("telemetry")["internal"] is True
    assert made["networks"] == before["networks"]
    assert list(made["services"]["left"]["networks"])[-1] == "telemetry"  # Docker asks them in this order
    assert [made["services"][name]["networks"]["telemetry"] for name in on] == [{}, {}, {}]
    for name in on:  # nobody is called there
        listen_on = "PALLAS_LISTEN_ON"
        assert made["services"][name]["environment"][listen_on] == before["services"][name]["environment"][listen_on]
    assert made["services"]["left"]["environment"]["PALLAS_LISTEN_ON"] == "from.registry,from.top"


def test_the_gateway_sends_its_spans_too(plan) -> None:
    door = "gateway: {agents: [left]}\ntelemetry: {otlp_endpoint: 'http://otel:4318', sample: 0.5, content: true}\n"
    gateway = document(plan(GRAPH + door))["services"]["gateway"]
    assert gateway["networks"]["telemetry"] == {}
    told = {key: value for key, value in gateway["environment"].items() if key.startswith(("OTEL", "PALLAS_TRACE"))}
    assert told == {  # what is said is nothing that it has
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://otel:4318",
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": "0.5",
    }
    assert gateway["environment"]["PALLAS_LISTEN_ON"] == "from.registry"


def test_a_collector_outside_opens_the_networks_of_the_agents(plan) -> None:
    made = document(plan(GRAPH + "telemetry: {otlp_endpoint: 'https://in.example.com'}\n"))
    opened = {name for name, network in made["networks"].items() if not network.get("internal")}
    assert opened == {"agent.left", "agent.right", "agent.top", "registry"}
    assert "telemetry" not in made["networks"]


def test_flat_networks_are_flat_for_a_collector_too(plan) -> None:
    made = document(plan(GRAPH + "networks: flat\ntelemetry: {otlp_endpoint: 'http://otel:4318'}\n"))
    assert "networks" not in made
    assert "networks" not in made["services"]["left"]


@pytest.mark.parametrize(("name", "project"), [("My Trip", "my-trip"), ("trip", "")])
def test_a_name_that_compose_does_not_take_is_said_with_what_it_becomes(name: str, project: str, make, run) -> None:
    path = make(f"name: {name}\nagents:\n  scout: {{module: agents.scout, port: 8101}}\n")
    lines = run("compose", "-f", str(path))[1].splitlines()
    expected = [f"the compose project is `{project}`: `{name}` cannot be the name of one"] if project else []
    assert [line for line in lines if "compose project" in line] == expected
