"""What the gateway reads before it listens: routes and tokens, by process and by container."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_contract.problems import Refused
from pallas_gateway import serve, settings
from pallas_gateway.policy.route import Route
from tests.gateway.door import OWN, PHONE, UI

FLEET = """\
name: doors
access:
  tokens:
    ui: {file: ui.txt}
    gateway: {file: gateway.txt}
gateway:
  agents: [scout_one]
  access: {tokens: {phone: {file: phone.txt}}}
agents:
  scout_one: {card: a.md, port: 8101}
  oracle: {card: a.md, port: 8102}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {"agents.yaml": FLEET, "ui.txt": UI, "gateway.txt": f"{OWN}\n", "phone.txt": PHONE}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def read(project: Path, **environ: str) -> settings.Settings:
    return settings.read(project / "agents.yaml", environ, project / "secrets")


def test_processes_find_agents_at_their_ports(project: Path) -> None:
    found = read(project)
    assert found.routes == {"scout-one": Route("http://127.0.0.1:8101/mcp", OWN)}
    assert found.tokens == {"ui": UI, "phone": PHONE}  # its own token lets nobody in
    assert (found.host, found.port, found.listen_on) == ("127.0.0.1", 24190, ())
    assert "gateway:*" in found.allowed_hosts
    assert OWN not in repr(found)
    assert UI not in repr(found)


VARIABLES = "gateway:\n  env: {OTEL_SERVICE_NAME: door}\n  secrets: {HEADERS: {file: headers.txt}}\n"


def test_variables_are_those_of_the_file_and_of_secret_files(project: Path) -> None:
    (project / "agents.yaml").write_text(FLEET.replace("gateway:\n", VARIABLES))
    with pytest.raises(Refused, match=r"gateway\.secrets\.HEADERS: there is no file headers\.txt"):
        read(project)
    assert read(project, HEADERS="given").variables == {"OTEL_SERVICE_NAME": "door"}
    (project / "headers.txt").write_text("authorization=secret-0123\n")
    found = read(project)
    assert found.variables == {"OTEL_SERVICE_NAME": "door", "HEADERS": "authorization=secret-0123"}
    assert "secret-0123" not in repr(found)
    (project / "secrets").mkdir()
    (project / "secrets" / "HEADERS").write_text("mounted")
    assert read(project).variables["HEADERS"] == "mounted"


def test_tools_are_those_of_services_at_their_addresses(project: Path) -> None:
    path = project / "agents.yaml"
    tools = "  tenants: {acme: {callers: [ui]}}\n  tools: {lookup_entity: my_memory}\n"
    services = "services: {my_memory: {module: m, port: 8103}}\n"
    path.write_text(FLEET.replace("gateway:\n  agents", f"gateway:\n{tools}  agents") + services)
    assert read(project).tools == {"lookup_entity": ("my-memory", Route("http://127.0.0.1:8103/mcp"))}
    (project / "secrets").mkdir()
    for name in ("PALLAS_CALL_SCOUT_ONE_TOKEN", "access.phone", "access.ui"):
        (project / "secrets" / name).write_text(f"{name}-0123456789")
    found = read(project, PALLAS_PLACEMENT="container", PALLAS_BIND="0.0.0.0:8080")
    assert found.tools["lookup_entity"][1].url == "http://my-memory:8080/mcp"


def test_a_service_that_is_for_clients_too_is_open_and_the_application_is_of_the_project(project: Path) -> None:
    text = FLEET.replace("  agents: [scout_one]", "  agents: [scout_one]\n  services: [tools]\n  app: dashboard")
    (project / "agents.yaml").write_text(f"{text}services: {{tools: {{module: m, port: 8103, through: gateway}}}}\n")
    found = read(project)
    assert found.through == {"tools": Route("http://127.0.0.1:8103/mcp", kind="service")}
    assert found.app == project / "dashboard"


def test_what_is_through_it_is_open_to_those_who_depend_on_it(project: Path) -> None:
    text = FLEET.replace("port: 8101}", "port: 8101, depends_on: [oracle, my_memory]}")
    text = text.replace("port: 8102}", "port: 8102, through: gateway}").replace("{ui:", "{scout_one:")
    text = text.replace("    ui:", "    scout_one:")
    (project / "agents.yaml").write_text(
        f"{text}services: {{my_memory: {{module: m, port: 8103, through: gateway}}}}\n"
    )
    callers = frozenset({"scout_one"})
    found = read(project)
    assert found.through == {
        "oracle": Route("http://127.0.0.1:8102/mcp", OWN, callers=callers),
        "my-memory": Route("http://127.0.0.1:8103/mcp", kind="service", callers=callers),
    }
    assert found.routes == {"scout-one": Route("http://127.0.0.1:8101/mcp", OWN)}
    (project / "agents.yaml").write_text(
        text.replace("agents: [scout_one]", "agents: [scout_one, oracle]").replace(", my_memory", "")
    )
    found = read(project)  # what it leads to is open to all its callers
    assert (list(found.routes), found.through) == (["scout-one", "oracle"], {})
    assert found.routes["oracle"].callers is None


def test_containers_find_them_by_name_and_secrets_where_they_are_mounted(project: Path) -> None:
    (project / "secrets").mkdir()
    (project / "secrets/PALLAS_CALL_SCOUT_ONE_TOKEN").write_text("mounted-0123456789")
    (project / "secrets/access.phone").write_text("other-phone-0123456789")
    told = {"PALLAS_PLACEMENT": "container", "PALLAS_BIND": "0.0.0.0:8080", "PALLAS_LISTEN_ON": "from.registry"}
    found = read(project, **told)
    assert found.routes == {"scout-one": Route("http://scout-one:8080/mcp", "mounted-0123456789")}
    assert found.tokens["phone"] == "other-phone-0123456789"
    assert (found.host, found.port, found.listen_on) == ("0.0.0.0", 8080, ("from.registry",))


def test_all_that_is_wrong_is_said_with_its_place_and_without_secrets(project: Path) -> None:
    with pytest.raises(Refused) as refused:
        read(project, PALLAS_BIND="8080", PALLAS_PLACEMENT="moon", PALLAS_MAX_BODY="0")
    assert [problem.where.field or problem.where.file for problem in refused.value.problems] == [
        "$PALLAS_BIND",
        "$PALLAS_MAX_BODY",
        "$PALLAS_PLACEMENT",
    ]
    (project / "gateway.txt").write_text("two words of it")
    with pytest.raises(Refused) as refused:
        read(project)
    (problem,) = refused.value.problems
    assert problem.where.field == "access.tokens.gateway.file"
    assert "two words" not in str(problem)


def test_no_caller_has_the_token_that_agents_know_the_gateway_by(project: Path) -> None:
    (project / "phone.txt").write_text(f"{OWN}\n")
    with pytest.raises(Refused) as refused:
        read(project)
    (problem,) = refused.value.problems
    assert problem.where.field == "gateway.access.tokens.phone.file"
    assert problem.message == "phone.txt has the token that the gateway shows to `scout-one`"


def test_a_file_without_a_gateway_is_refused(project: Path) -> None:
    path = project / "agents.yaml"
    path.write_text("name: x\nagents: {scout: {card: a.md, port: 8101}}\n")
    with pytest.raises(Refused, match="has no `gateway`"):
        read(project)


def test_the_gate_is_that_of_the_fleet_and_its_own(project: Path) -> None:
    arrangement = serve.guard(read(project))
    assert arrangement.gate is not None
    assert arrangement.gate.resource == "http://localhost:24190"
    path = project / "agents.yaml"
    path.write_text("name: x\ngateway: {agents: [scout]}\nagents: {scout: {card: a.md, port: 8101}}\n")
    assert serve.guard(read(project)).gate is None


def test_an_audit_has_its_key_and_its_folder(project: Path) -> None:
    assert (read(project).audit_key, read(project).gateway.audit) == (b"", None)
    path = project / "agents.yaml"
    path.write_text(FLEET.replace("gateway:\n  agents", "gateway:\n  audit: {key: {file: audit.txt}}\n  agents"))
    with pytest.raises(Refused) as refused:
        read(project)
    (problem,) = refused.value.problems
    assert (problem.where.field, problem.message) == ("gateway.audit.key.file", "audit.txt does not exist")
    (project / "audit.txt").write_text("audit-0123456789abcdef\n")
    found = read(project)
    assert (found.audit_key, found.state) == (b"audit-0123456789abcdef", project / ".pallas/gateway")
    assert found.gateway.audit is not None
    assert found.gateway.audit.bytes == 256 << 20
    assert "audit-0123456789abcdef" not in repr(found)
    contained = read(project, PALLAS_PLACEMENT="container", PALLAS_GATEWAY_STATE="/state")
    assert contained.state == Path("/state")


SHARED = """\
  store: {url: {file: postgres.url}%s}
  counters: {url: {file: valkey.url}}
"""
DATABASE = 'services: {database: {image: "postgres:17", provides: other, port: 5433}}\n'


def stores(
    project: Path, service: str = "", url: str = "postgresql://doors:hunter2@db.example.com/doors?sslmode=require"
) -> None:
    more = SHARED % (f", service: {service}" if service else "")
    (project / "agents.yaml").write_text(FLEET.replace("gateway:\n  agents", f"gateway:\n{more}  agents") + DATABASE)
    (project / "postgres.url").write_text(f"{url}\n")
    (project / "valkey.url").write_text("valkey://:hunter2@counts.example.com:6379/1")


def test_what_replicas_share_is_where_the_secret_files_say(project: Path) -> None:
    stores(project)
    found = read(project)
    assert found.store == "postgresql://doors:hunter2@db.example.com/doors?sslmode=require"
    assert found.counters == "valkey://:hunter2@counts.example.com:6379/1"
    assert "hunter2" not in repr(found)


def test_a_service_that_is_a_store_is_found_where_it_runs(project: Path) -> None:
    stores(project, "database")
    assert read(project).store == "postgresql://doors:hunter2@127.0.0.1:5433/doors?sslmode=require"
    (project / "secrets").mkdir()
    for name in ("PALLAS_CALL_SCOUT_ONE_TOKEN", "access.phone", "access.ui"):
        (project / "secrets" / name).write_text(f"{name}-0123456789")
    (project / "secrets/store.url").write_text("postgresql://doors@localhost/mounted")
    found = read(project, PALLAS_PLACEMENT="container", PALLAS_BIND="0.0.0.0:8080")
    assert found.store == "postgresql://doors@database:5433/mounted"


@pytest.mark.parametrize(
    "url", ["", "db.example.com", "valkey://db.example.com", "postgresql:///x", "postgresql://h:x/y"]
)
def test_what_is_no_address_of_a_store_is_refused_without_being_shown(project: Path, url: str) -> None:
    stores(project, url=url)
    with pytest.raises(Refused) as refused:
        read(project)
    (problem,) = refused.value.problems
    assert str(problem).splitlines()[0].endswith("postgres.url has no address of such a database in it [PAL444]")
    assert "gateway.store.url.file" in str(problem)
    assert not url or url not in str(problem)
