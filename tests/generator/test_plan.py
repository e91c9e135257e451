"""What the plan decides from several keys together."""

from __future__ import annotations

import pytest

from pallas_contract.problems import Refused
from pallas_gen.project import load

ONE = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101%s}\n"
TWO = """\
name: x
agents:
  scout: {module: agents.scout, port: 8101, depends_on: {tech_two: {}, model: {required: false}}}
  tech_two: {module: agents.other, port: 8102}
services:
  model: {module: agents.model, port: 8103, provides: openai}
"""
CONFIG = {"fastagent__config__yaml": "default_model: openai.m\n"}


def test_edges_use_host_names_and_only_hard_ones_wait(plan) -> None:
    scout = plan(TWO).workload("scout")
    assert scout.calls == ("model", "tech-two")
    assert scout.waits_for == ("tech-two",)
    assert scout.env["PALLAS_PEERS"] == '{"tech_two":"http://tech-two:8080/mcp"}'


def test_the_registry_waits_for_nobody_and_calls_whom_it_probes(plan) -> None:
    shy = "  shy: {image: shy, port: 8104, health: {command: [check]}}\n"
    registry = plan(TWO + shy).workload("registry")
    assert registry.waits_for == ()
    assert registry.calls == ("model", "scout", "tech-two")
    assert registry.secrets == ()


@pytest.mark.parametrize(
    ("config", "servers", "egress"),
    [
        ("", "", False),
        ("default_model: passthrough\n", "", False),
        ("default_model: openai.m\n", "", True),
        ("", "mcp: {servers: {argos: {url: 'http://argos/mcp'}}}\n", True),
        ("", "mcp: {servers: {argos: {target: 'http://argos/mcp'}}}\n", True),
        ("", "mcp: {servers: {argos: {url: 'http://argos/sse', transport: sse}}}\n", True),
        ("", "mcp: {servers: {local: {command: x}}}\n", False),
        ("", "mcp: {servers: {local: {target: 'python -m x'}}}\n", False),
    ],
)
def test_egress_follows_from_model_and_servers(plan, config: str, servers: str, egress: bool) -> None:
    assert bool(plan(ONE % "", fastagent__config__yaml=config + servers).workload("scout").egress) is egress


def test_a_server_whose_url_is_a_secret_needs_egress_too(plan) -> None:
    made = plan(
        ONE % "", fastagent__secrets__yaml="mcp: {servers: {atlas: {url: 'https://atlas.example/mcp?key=x'}}}\n"
    )
    assert bool(made.workload("scout").egress) is True


def test_a_model_brought_along_needs_no_egress(plan) -> None:
    made = plan(TWO, **CONFIG)
    assert bool(made.workload("scout").egress) is False
    assert bool(made.workload("tech-two").egress) is True


def test_what_the_file_says_about_egress_wins(plan) -> None:
    assert bool(plan(ONE % ", egress: false", **CONFIG).workload("scout").egress) is False


@pytest.mark.parametrize(
    ("publish", "published"),
    [("", ("127.0.0.1", 8101)), (", publish: false", None), (", publish: 0.0.0.0", ("0.0.0.0", 8101))],
)
def test_ports_are_published_on_loopback_unless_said_otherwise(plan, publish: str, published) -> None:
    assert plan(ONE % publish).workload("scout").published == published


def test_behind_a_proxy_what_is_published_has_a_public_url(plan) -> None:
    made = plan("public_url: https://{name}.example.com\n" + ONE % "")
    assert made.workload("scout").public_url == "https://scout.example.com"
    assert made.workload("registry").public_url == "https://registry.example.com"
    hidden = plan("public_url: https://{name}.example.com\n" + ONE % ", publish: false")
    assert hidden.workload("scout").public_url == ""


@pytest.mark.parametrize(
    ("edit", "same"),
    [
        (", title: New", False),
        (", replicas: 2, instance_scope: request", False),
        (", functions: [fetch]", False),
        (", functions: []", True),
        (", env: {A: b}", True),
    ],
)
def test_the_fingerprint_is_of_what_only_the_file_says(plan, edit: str, same: bool) -> None:
    before = plan(ONE % "").workload("scout").fingerprint
    assert (plan(ONE % edit).workload("scout").fingerprint == before) is same


FORWARDING = """\
name: x
access: {jwt: {issuer: https://id.example, audience: x, jwks_file: k}}
agents:
  scout: {module: agents.scout, port: 8101, depends_on: [other], access: {forward: [other]}}
  other: {module: agents.other, port: 8102%s, access: {tokens: {model: {file: t}}%s}}
  model: {module: agents.model, port: 8103, depends_on: [other], access: {tokens: {model: {file: t}}}}
"""


def test_the_rules_of_an_agent_that_tokens_go_on_to_are_read_by_who_forwards_them(plan) -> None:
    def changed(title: str, rule: str) -> set[str]:
        before, after = (plan(FORWARDING % edits) for edits in (("", ""), (title, rule)))
        agents = ("scout", "other", "model")
        return {name for name in agents if before.workload(name).fingerprint != after.workload(name).fingerprint}

    assert changed("", ", jwt: {issuer: https://id.example, audience: other, jwks_file: k}") == {"scout", "other"}
    assert changed(", title: New", "") == {"other"}


def test_egress_follows_from_fast_agents_own_names_too(plan, make) -> None:
    path = make(ONE % "")
    (path.parent / "fast-agent.yaml").write_text("default_model: openai.m\n")
    assert plan(ONE % "").workload("scout").egress


def test_secret_files_are_references_hidden_in_the_project_folder(plan) -> None:
    made = plan(
        ONE % ", secrets: {KEY: {file: ./keys/key.txt}, OUT: {file: /etc/key}}", fastagent__secrets__yaml="a: 1\n"
    )
    assert [(item.target, item.file) for item in made.workload("scout").secrets] == [
        ("fastagent.secrets.yaml", "fastagent.secrets.yaml"),
        ("KEY", "keys/key.txt"),
        ("OUT", "/etc/key"),
    ]
    assert made.hidden == ("fastagent.secrets.yaml", "keys/key.txt")
    assert made.entries == ("agents.yaml", "agents/scout.py")


def test_a_baked_image_needs_no_mount_except_for_the_registry(plan) -> None:
    made = plan("image: example/fleet:1\n" + ONE % "")
    assert (made.workload("scout").image, made.workload("scout").needs_code) == ("example/fleet:1", False)
    assert made.workload("registry").needs_code is True


PROTECTED = """\
name: x
public_url: https://{name}.x.example
access: {tokens: {ui: {file: s/ui}}, jwt: {issuer: https://id.example, jwks_%s}}
agents:
  scout: {module: agents.scout, port: 8101, depends_on: [other]}
  other: {module: agents.other, port: 8102, access: {tokens: {scout: {file: s/scout}}}}
"""


def test_tokens_are_secrets_of_those_who_check_and_of_those_who_present_them(plan) -> None:
    made = plan(PROTECTED % "file: keys.json")
    targets = {host: {item.target: item.file for item in made.workload(host).secrets} for host in ("scout", "other")}
    assert targets == {
        "scout": {"access.ui": "s/ui", "access.jwks.json": "keys.json", "PALLAS_CALL_OTHER_TOKEN": "s/scout"},
        "other": {"access.ui": "s/ui", "access.jwks.json": "keys.json", "access.scout": "s/scout"},
    }
    assert made.hidden == ("keys.json", "s/scout", "s/ui")
    assert made.workload("registry").secrets == ()


@pytest.mark.parametrize(("keys", "egress"), [("file: keys.json", False), ("url: https://id.example/keys", True)])
def test_keys_that_are_fetched_need_egress(plan, keys: str, egress: bool) -> None:
    assert bool(plan(PROTECTED % keys).workload("scout").egress) is egress


def test_a_server_that_nobody_calls_gets_no_token(make) -> None:
    text = ONE % ", access: {tokens: {ui: {file: s/ui}}, forward: [argos]}"
    with pytest.raises(Refused, match="`scout` calls no server `argos`"):
        load.load(make(text), {})
    config = {"fastagent__config__yaml": "mcp: {servers: {argos: {url: 'https://argos.example/mcp'}}}\n"}
    assert load.load(make(text, **config), {}).fleet.agents["scout"].access.forward == ["argos"]


def test_telemetry_is_for_agents_and_reaches_them_by_opentelemetrys_variables(plan) -> None:
    made = plan(TWO + "telemetry: {otlp_endpoint: 'http://otel:4318', sample: 0.25, content: true}\n", **CONFIG)
    scout = made.workload("scout")
    assert {key: value for key, value in scout.env.items() if "OTEL" in key or "TRACE" in key} == {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://otel:4318",
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": "0.25",
        "PALLAS_TRACE_CONTENT": "true",
    }
    assert (scout.collector.host, scout.collector.port, scout.collector.beside) == ("otel", 4318, True)
    others = [made.workload("model"), made.workload("registry")]
    assert [(item.collector, "OTEL_EXPORTER_OTLP_ENDPOINT" in item.env) for item in others] == [(None, False)] * 2
    assert bool(scout.egress) is False


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_a_collector_on_the_containers_own_loopback_is_warned_of(make, host: str) -> None:
    path = make(TWO + f"telemetry: {{otlp_endpoint: 'http://{host}:4318'}}\n", **CONFIG)
    (said,) = [str(one) for one in load.load(path, {}).warnings if "telemetry" in str(one)]
    assert "telemetry.otlp_endpoint: in a container localhost is the container itself" in said


def test_what_is_not_said_about_telemetry_is_left_to_opentelemetry(plan) -> None:
    assert plan(TWO).workload("scout").collector is None
    env = plan(TWO + "telemetry: {otlp_endpoint: 'https://in.example.com'}\n").workload("scout")
    assert not {"OTEL_TRACES_SAMPLER", "PALLAS_TRACE_CONTENT"} & set(env.env)
    assert (env.collector.port, env.collector.beside) == (443, False)
    plain = plan(TWO + "telemetry: {otlp_endpoint: 'http://in.example.com'}\n").workload("scout")
    assert plain.collector.port == 80  # a URL says so; the exporter adds no 4318 of its own


FOREIGN = """\
name: x
image: {agent: example/fleet:1, code: mounted}
agents: {scout: {module: agents.scout, port: 8101, depends_on: [db]}}
services: {db: {image: acme/db:1, port: 5432, provides: other, user: 999, writable: [/var/b, /var/a, /var/b]}}
"""


@pytest.mark.parametrize("code", ["mounted", "baked"])
def test_an_image_of_somebody_else_gets_its_files_and_no_image_of_the_kit_does(plan, code: str) -> None:
    text = FOREIGN.replace("mounted", code).replace("user: 999", "files: [tuning.conf]")
    made = plan(text, tuning__conf="cache = 1\n")
    database = made.workload("db")
    assert (database.needs_code, database.files, made.foreign_entries) == (True, ("tuning.conf",), ("tuning.conf",))
    assert made.entries == ("agents.yaml", "agents/scout.py")


def test_a_file_for_an_image_of_somebody_else_has_to_be_there_also_where_code_is_baked(plan) -> None:
    with pytest.raises(Refused, match=r"there is no file tuning\.conf that a container may get"):
        plan(FOREIGN.replace("mounted", "baked").replace("user: 999", "files: [tuning.conf]"))


def test_an_image_of_somebody_else_is_taken_as_it_is_and_gets_nothing_of_the_project(plan) -> None:
    made = plan(FOREIGN)
    database = made.workload("db")
    assert (database.image, database.port, database.needs_code, database.files) == ("acme/db:1", 5432, False, ())
    assert (database.egress, database.published) == ((), None)
    assert database.foreign is not None
    assert (database.foreign.user, database.foreign.writable) == (999, ("/var/a", "/var/b"))
    assert made.workload("scout").foreign is None
    assert database.url_for_others() == "tcp://db:5432"
