"""The programs of a fleet: one list for processes and containers, and what each of them is told."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

import pytest

from pallas_contract.fleet import source
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch import addresses, program, secret_files
from pallas_contract.launch.addresses import Placement
from pallas_contract.launch.program import programs
from pallas_contract.validate import graph_rules, load

TEXT = """\
name: x
registry_port: 8200
defaults: {secrets: {SHARED: {file: s/shared}, UNUSED: {file: s/unused}}}
access: {tokens: {ui: {file: s/ui}, top: {file: s/top}}}
agents:
  top:
    module: a
    port: 8201
    depends_on: {leaf: {}, model: {}, soft: {required: false}}
    secrets: {UNUSED: {file: s/own}}
  leaf: {module: a, port: 8202, secrets: {UNUSED: {file: s/own}, PALLAS_CALL_LEAF_TOKEN: {file: s/mine}}}
  soft: {card: a.md, port: 8203, keep_conversations: true, secrets: {UNUSED: {file: s/own}}}
services:
  model: {module: m, args: [fast], port: 8204, provides: openai, secrets: {TOKEN: {file: s/model}}}
registry: {registration: {store: true, tokens: {partner: {file: s/partner}}}}
"""
PLACEMENTS = get_args(Placement)


@pytest.fixture
def fleet() -> ResolvedFleet:
    return load.parse(source.parse(TEXT, name="agents.yaml"))


def test_the_same_programs_in_both_placements(fleet: ResolvedFleet) -> None:
    local, container = (programs(fleet, placement) for placement in ("local", "container"))
    assert [entry.name for entry in local] == ["registry", "model", "top", "leaf", "soft"]
    same = [[replace(entry, env={}, health_url="") for entry in entries] for entries in (local, container)]
    starter = "pallas_service.with_secrets"  # which only makes variables of files
    same[1] = [replace(entry, command=tuple(word for word in entry.command if word != starter)) for entry in same[1]]
    assert same[0] == same[1]
    assert [entry.needs for entry in local] == [(), (), ("leaf", "model"), (), ()]
    assert [entry.state for entry in local] == [True, False, False, False, True]


def test_a_service_that_keeps_something_has_a_folder_of_its_own() -> None:
    text = TEXT.replace("args: [fast]", "state: true")
    fleet = load.parse(source.parse(text, name="agents.yaml"))
    local, container = (program.service(fleet, "model", placement) for placement in ("local", "container"))
    assert (local.state, container.state) == (True, True)
    assert local.env["PALLAS_STATE"] == ".pallas/services/model"
    assert container.env["PALLAS_STATE"] == "/state"


GATEWAY = """
name: x
access:
  tokens: {ui: {file: s/ui}, gateway: {file: s/gateway}}
  jwt: {issuer: "https://i.example", jwks_file: s/keys, audience: x}
gateway: {port: 8300, publish: 127.0.0.2, agents: [leaf_one], access: {tokens: {phone: {file: s/phone}}}}
agents:
  leaf_one: {card: a.md, port: 8201, access: {tokens: {gateway: {file: s/own}}}}
  other: {card: a.md, port: 8202}
"""


def test_the_gateway_is_a_program_with_the_tokens_of_its_agents_alone() -> None:
    fleet = load.parse(source.parse(GATEWAY, name="agents.yaml"))
    local, container = (programs(fleet, placement)[1] for placement in ("local", "container"))
    assert (local.name, local.kind, local.command) == ("gateway", "gateway", ("-P", "-m", "pallas_gateway"))
    assert [(secret.target, secret.file) for secret in container.secrets] == [
        ("PALLAS_CALL_LEAF_ONE_TOKEN", "s/own"),
        ("access.jwks.json", "s/keys"),
        ("access.phone", "s/phone"),
        ("access.ui", "s/ui"),
    ]
    assert set(container.secrets) <= set(secret_files.of_fleet(fleet))
    paths = {secret.target: ".".join(secret.path) for secret in container.secrets}
    assert paths["PALLAS_CALL_LEAF_ONE_TOKEN"] == "agents.leaf_one.access.tokens.gateway.file"
    assert paths["access.phone"] == "gateway.access.tokens.phone.file"
    assert paths["access.ui"] == "access.tokens.ui.file"
    assert (local.env["PALLAS_BIND"], local.health_url) == ("127.0.0.2:8300", "http://127.0.0.2:8300/readyz")
    assert (container.env["PALLAS_BIND"], container.health_url) == ("0.0.0.0:8080", "http://127.0.0.1:8080/readyz")
    assert (container.needs, container.state) == ((), False)


def test_the_gateway_has_the_environment_that_the_file_gives_it() -> None:
    own = "gateway: {env: {OTEL_SERVICE_NAME: door}, secrets: {HEADERS: {file: s/headers}}, port"
    fleet = load.parse(source.parse(GATEWAY.replace("gateway: {port", own), name="agents.yaml"))
    for placement in ("local", "container"):
        made = programs(fleet, placement)[1]
        assert made.env["OTEL_SERVICE_NAME"] == "door"
        (headers,) = (secret for secret in made.secrets if secret.target == "HEADERS")
        assert (headers.file, headers.place) == ("s/headers", ("gateway", "secrets", "HEADERS"))
        assert "HEADERS" not in made.env


@pytest.mark.parametrize(
    ("tasks", "state"),
    [
        ("{durable: true}", True),
        ("{durable: true}, store: {url: {file: pg.url}}", False),
        ("{durable: false}", False),
        ("{}", False),
    ],
)
def test_a_gateway_with_durable_graphs_has_a_place_for_them(tasks: str, state: bool) -> None:
    gateway = f"{{agents: [a], tenants: {{t: {{}}}}, tasks: {tasks}}}"
    text = f"name: x\ngateway: {gateway}\nagents: {{a: {{card: a.md, port: 8201}}}}"
    fleet = load.parse(source.parse(text, name="agents.yaml"))
    local, container = (programs(fleet, placement)[1] for placement in ("local", "container"))
    assert (local.state, container.state) == (state, state)
    assert local.env.get("PALLAS_GATEWAY_STATE") == (".pallas/gateway" if state else None)
    assert container.env.get("PALLAS_GATEWAY_STATE") == ("/state" if state else None)


THROUGH = """
name: x
access: {tokens: {top: {file: s/top}, ui: {file: s/ui}, gateway: {file: s/own}}}
gateway: {agents: [top], port: 8300}
agents:
  top: {card: a.md, port: 8201, publish: false, depends_on: [low_one, my_tools]}
  low_one: {card: a.md, port: 8202, through: gateway}
services:
  my_tools: {module: m, port: 8203, through: gateway}
"""


def test_what_is_through_the_gateway_is_called_there_with_the_callers_own_token() -> None:
    fleet = load.parse(source.parse(THROUGH, name="agents.yaml"))
    assert list(graph_rules.problems(fleet, source.parse(THROUGH, name="agents.yaml"))) == []
    entries = {placement: {entry.name: entry for entry in programs(fleet, placement)} for placement in PLACEMENTS}
    assert json.loads(entries["container"]["top"].env["PALLAS_PEERS"]) == {
        "low_one": "http://gateway:8080/agents/low-one/mcp",
        "my_tools": "http://gateway:8080/services/my-tools/mcp",
    }
    assert json.loads(entries["local"]["top"].env["PALLAS_PEERS"]) == {
        "low_one": "http://127.0.0.1:8300/agents/low-one/mcp",
        "my_tools": "http://127.0.0.1:8300/services/my-tools/mcp",
    }
    # in a container it cannot see what is behind the gateway
    assert entries["container"]["top"].needs == ("gateway",)
    assert entries["local"]["top"].needs == ("gateway", "low_one", "my_tools")
    secrets = {
        name: {secret.target: secret.file for secret in entry.secrets} for name, entry in entries["local"].items()
    }
    assert secrets["top"] == {
        "PALLAS_CALL_LOW_ONE_TOKEN": "s/top",
        "PALLAS_CALL_MY_TOOLS_TOKEN": "s/top",
        "access.gateway": "s/own",
        "access.top": "s/top",
        "access.ui": "s/ui",
    }
    assert secrets["low_one"] == {"access.gateway": "s/own"}  # it takes no other
    assert secrets["gateway"]["PALLAS_CALL_LOW_ONE_TOKEN"] == "s/own"
    paths = {secret.target: ".".join(secret.path) for secret in entries["local"]["top"].secrets}
    assert paths["PALLAS_CALL_MY_TOOLS_TOKEN"] == "access.tokens.top.file"
    assert entries["local"]["low_one"].env["PALLAS_BIND"] == "127.0.0.1:8202"


def test_the_address_of_one_that_is_through_the_gateway_is_there() -> None:
    fleet = load.parse(source.parse(THROUGH, name="agents.yaml"))
    urls = [addresses.agent_url(fleet, "low_one", placement) for placement in PLACEMENTS]
    assert urls == ["http://localhost:8300/agents/low-one/mcp"] * 2
    hidden = load.parse(source.parse(THROUGH.replace("port: 8300", "publish: false"), name="agents.yaml"))
    assert addresses.agent_url(hidden, "low_one", "container") is None
    assert addresses.inside_urls("low-one")[1] == addresses.peer_url(hidden, "low_one", "container")


CALLING_BACK = """
name: x
agents:
  run_ner: {card: a.md, port: 8201, depends_on: [memory]}
  aside: {card: a.md, port: 8203, depends_on: [memory]}
services:
  memory: {module: m, port: 8202, calls: [run_ner]}
"""


def test_a_service_is_told_where_the_agents_are_that_it_calls_back_and_waits_for_none() -> None:
    fleet = load.parse(source.parse(CALLING_BACK, name="agents.yaml"))
    peers = {}
    for placement in PLACEMENTS:
        entry = next(entry for entry in programs(fleet, placement) if entry.name == "memory")
        assert entry.needs == ()
        peers[placement] = json.loads(entry.env["PALLAS_PEERS"])
    assert peers == {
        "container": {"run_ner": "http://run-ner:8080/mcp"},
        "local": {"run_ner": "http://127.0.0.1:8201/mcp"},
    }


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_each_program_of_ours_is_told_where_it_runs(fleet: ResolvedFleet, placement: Placement) -> None:
    told = {
        entry.name: addresses.placement(entry.env) for entry in programs(fleet, placement) if entry.kind != "service"
    }
    assert told == dict.fromkeys(["registry", *fleet.agents], placement)


@pytest.mark.parametrize(
    ("publish", "placement", "url"),
    [
        (None, "local", "http://127.0.0.1:24100/readyz"),
        ("0.0.0.0", "local", "http://127.0.0.1:24100/readyz"),
        ("192.0.2.7", "local", "http://192.0.2.7:24100/readyz"),
        ("2001:db8::7", "local", "http://[2001:db8::7]:24100/readyz"),
        ("192.0.2.7", "container", "http://127.0.0.1:8080/readyz"),
    ],
)
def test_a_registry_is_asked_where_it_listens(
    fleet: ResolvedFleet, publish: str | None, placement: Placement, url: str
) -> None:
    """As a process it listens on the one address it is published on, and nowhere else."""
    registry = fleet.registry.model_copy(update={"publish": publish})
    published = replace(fleet, registry_port=24100, registry=registry)
    (url_asked,) = [entry.health_url for entry in programs(published, placement) if entry.kind == "registry"]
    assert url_asked == url


def test_by_hand_it_is_a_process_and_other_words_are_refused() -> None:
    assert addresses.placement({}) == addresses.placement({"PALLAS_PLACEMENT": ""}) == "local"
    with pytest.raises(ValueError, match="must be `container` or `local`, not 'pod'"):
        addresses.placement({"PALLAS_PLACEMENT": "pod"})


def test_every_secret_of_a_program_with_its_place(fleet: ResolvedFleet) -> None:
    found = {
        entry.name: [(secret.target, secret.file, ".".join(secret.path)) for secret in entry.secrets]
        for entry in programs(fleet, "container")
    }
    assert found["top"] == [
        ("PALLAS_CALL_LEAF_TOKEN", "s/top", "access.tokens.top.file"),
        ("PALLAS_CALL_SOFT_TOKEN", "s/top", "access.tokens.top.file"),
        ("SHARED", "s/shared", "defaults.secrets.SHARED.file"),
        ("UNUSED", "s/own", "agents.top.secrets.UNUSED.file"),
        ("access.top", "s/top", "access.tokens.top.file"),
        ("access.ui", "s/ui", "access.tokens.ui.file"),
    ]
    assert ("PALLAS_CALL_LEAF_TOKEN", "s/mine", "agents.leaf.secrets.PALLAS_CALL_LEAF_TOKEN.file") in found["leaf"]
    assert found["model"] == [("TOKEN", "s/model", "services.model.secrets.TOKEN.file")]
    assert found["registry"] == [
        ("registration-partner", "s/partner", "registry.registration.tokens.partner.file"),
    ]


def test_a_service_with_a_secret_is_started_with_it_as_a_variable(fleet: ResolvedFleet) -> None:
    local, container = (program.service(fleet, "model", placement) for placement in ("local", "container"))
    assert container.command == ("-m", "pallas_service.with_secrets", *local.command[1:])


def test_a_secret_in_defaults_that_no_agent_takes_is_one_all_the_same(fleet: ResolvedFleet) -> None:
    """Its file must not be handed to the containers with the code."""
    assert {secret.file for secret in secret_files.of_fleet(fleet)} == {
        *("s/shared", "s/unused", "s/own", "s/mine", "s/ui", "s/top", "s/model", "s/partner"),
    }


def test_an_environment_is_not_shown() -> None:
    """A process's holds its secrets."""
    fleet = load.parse(source.parse("name: x\nagents: {a: {module: a, port: 1, env: {K: canary}}}", name="agents.yaml"))
    assert "canary" not in repr(program.agent(fleet, "a", "local"))


IMAGES = """\
name: x
agents:
  scout: {card: a.md, port: 8201, depends_on: [tools, odd, llm, db]}
services:
  tools: {image: acme/tools:1, port: 8000, args: [a], command: [tools, "--port=${PORT}"], secrets: {KEY: {file: k}}}
  odd: {image: acme/odd:1, port: 8001, path: /api/, url: "https://odd.example/api/"}
  llm: {image: acme/llm:1, port: 8002, provides: openai, path: /openai/v1, url: "http://localhost:9000"}
  db: {image: acme/db:1, port: 8003, provides: other, health: {command: [ready]}, url: "http://localhost:9001"}
"""


@pytest.fixture
def images() -> ResolvedFleet:
    return load.parse(source.parse(IMAGES, name="agents.yaml"))


@pytest.mark.parametrize(
    ("placement", "peers", "model", "address"),
    [
        (
            "container",
            {"odd": "http://odd:8001/api/", "tools": "http://tools:8000/mcp"},
            "http://llm:8002/openai/v1",
            "db:8003",
        ),
        (
            "local",
            {"odd": "https://odd.example/api/", "tools": "http://127.0.0.1:8000/mcp"},
            "http://localhost:9000/openai/v1",
            "localhost:9001",
        ),
    ],
)
def test_an_image_is_called_at_its_own_port_or_where_its_url_says(
    images: ResolvedFleet, placement: Placement, peers: dict[str, str], model: str, address: str
) -> None:
    assert program.peers(images, "scout", placement) == peers
    env = program.agent(images, "scout", placement).env
    assert env["OPENAI_BASE_URL"] == model
    assert env["PALLAS_ADDRESS_DB"] == address


def test_as_processes_only_commands_are_started_and_waited_for(images: ResolvedFleet) -> None:
    started = {entry.name: entry for entry in programs(images, "local")}
    assert [*started] == ["registry", "tools", "scout"]
    assert started["scout"].needs == ("tools",)
    assert started["tools"].command == ("tools", "--port=8000")
    assert started["tools"].env == {"PALLAS_BIND": "127.0.0.1:8000", "PALLAS_SERVICE": "tools"}


def test_a_container_of_an_image_gets_its_own_arguments_and_the_paths_of_its_secrets(images: ResolvedFleet) -> None:
    tools = program.service(images, "tools", "container")
    assert tools.command == ("a",)
    assert tools.env == {"KEY_FILE": "/run/secrets/KEY"}


def test_what_is_no_mcp_at_the_usual_path_is_asked_for_its_models_or_its_port(images: ResolvedFleet) -> None:
    asked = {name: addresses.health_url(images, name, "container") for name in images.services}
    assert asked == {
        "tools": "http://127.0.0.1:8000/mcp",
        "odd": "tcp://127.0.0.1:8001",
        "llm": "http://127.0.0.1:8002/openai/v1/models",
        "db": "tcp://127.0.0.1:8003",
    }
    paths = {name: program.service(images, name, "container").health_paths for name in images.services}
    assert paths == {"tools": None, "odd": None, "llm": ("/openai/v1/models",) * 2, "db": None}
