"""What every fleet gets: one Deployment and Service per program, hardened, probed, in order, with its files."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml

from .conftest import GRAPH, MODULE

pytestmark = pytest.mark.helm

HARD = [
    "$HOME ${X} $$ $(PATH)",
    "{{ .Values }}",
    "yes",
    "0123",
    "1e3",
    "a: b # c",
    "ünï ☃ 🦊",
    "l1\nl2\n",
    " x",
    "~",
    "",
]
AGENTS = {"top", "left-one", "right"}
HOSTS = {"top", "left-one", "right", "tools", "model", "registry"}


def test_each_program_has_a_deployment_a_service_and_an_account_of_its_host_name(plain) -> None:
    for kind in ("Deployment", "ServiceAccount"):
        assert set(plain.of(kind)) == HOSTS
    assert set(plain.of("Service")) == HOSTS | {"agents"} | {f"pallas-pods-{name}" for name in AGENTS}
    for name, service in plain.of("Service").items():
        (port,) = service["spec"]["ports"]
        assert port["port"] == 8080, name
        if name in HOSTS:
            labels = plain.one("Deployment", name)["spec"]["template"]["metadata"]["labels"]
            assert service["spec"]["selector"].items() <= labels.items()
            assert port["targetPort"] == plain.main(name)["ports"][0]["name"]


def test_one_headless_service_has_the_ready_replicas_of_all_agents_under_their_names(plain) -> None:
    """Nothing of it may change: while a release is upgraded, the registry of before reads it and sees the new pods."""
    spec = plain.one("Service", "agents")["spec"]
    assert (spec["clusterIP"], spec.get("publishNotReadyAddresses", False)) == ("None", False)
    assert {name for name, pod in plain.pods.items() if _selects(spec["selector"], pod)} == AGENTS
    for name in AGENTS:
        assert (plain.pod(name)["hostname"], plain.pod(name)["subdomain"]) == (name, "agents")
    assert _registry_env(plain)["PALLAS_REPLICA_DOMAIN"] == "agents.space.svc.cluster.local."


def test_another_one_has_the_pods_of_one_agent_ready_or_not(plain) -> None:
    for name in AGENTS:
        service = plain.one("Service", f"pallas-pods-{name}")
        assert (service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]) == ("None", True)
        assert {host for host, pod in plain.pods.items() if _selects(service["spec"]["selector"], pod)} == {name}
        assert service["metadata"]["labels"]["app.kubernetes.io/component"] == "fleet", "nobody scrapes it"
    assert _registry_env(plain)["PALLAS_PODS_DOMAIN"] == "space.svc.cluster.local."


def _registry_env(plain) -> dict[str, str]:
    return {item["name"]: item["value"] for item in plain.main("registry")["env"]}


def _selects(selector: dict[str, str], pod: dict) -> bool:
    return selector.items() <= pod["metadata"]["labels"].items()


def test_every_pod_meets_the_restricted_standard_and_holds_no_token(plain) -> None:
    assert set(plain.pods) == HOSTS | {"pallas-test"}
    for name, pod in plain.pods.items():
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["enableServiceLinks"] is False
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["securityContext"]["runAsUser"] == 10001
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "runAsNonRoot": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"].keys() >= {"cpu", "memory"}
        assert all("hostPath" not in volume for volume in spec.get("volumes", []))
    assert all(account["automountServiceAccountToken"] is False for account in plain.of("ServiceAccount").values())


def test_probes_ask_http_where_it_answers_and_mcp_elsewhere(plain) -> None:
    def asked(name: str) -> list[object]:
        main = plain.main(name)
        probes = [main[f"{kind}Probe"] for kind in ("startup", "liveness", "readiness")]
        return [probe.get("httpGet", {}).get("path") or probe["exec"]["command"][-1] for probe in probes]

    assert asked("top") == asked("registry") == ["/livez", "/livez", "/readyz"]
    assert asked("model") == ["/v1/models"] * 3
    assert asked("tools") == ["http://127.0.0.1:8080/mcp"] * 3


def test_a_program_that_asks_in_the_container_runs_half_as_often_as_a_get(plain) -> None:
    """But while it starts: that is how soon it is ready."""
    intervals = {
        name: [
            plain.main(name)[probe]["periodSeconds"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")
        ]
        for name in ("top", "tools")
    }
    assert intervals == {"top": [2, 5, 10], "tools": [2, 10, 20]}


def test_a_program_that_asks_in_the_container_waits_for_one_that_starts(plain) -> None:
    """As long in all as the others are asked, and where a question ends early too: it has the whole period."""
    startup = plain.main("tools")["startupProbe"]
    assert startup["exec"]["command"][-3:-1] == ["--wait", "2"]
    assert (startup["timeoutSeconds"], startup["failureThreshold"]) == (7, 90)
    assert plain.main("top")["startupProbe"]["failureThreshold"] == 90
    assert "--wait" not in plain.main("tools")["readinessProbe"]["exec"]["command"]


def test_a_pod_may_finish_its_calls(plain) -> None:
    assert plain.main("top")["lifecycle"] == {"preStop": {"sleep": {"seconds": 5}}}
    assert plain.pod("top")["terminationGracePeriodSeconds"] == 45


def test_a_hard_edge_holds_the_pod_and_a_soft_one_does_not(plain) -> None:
    _, wait = plain.pod("left-one")["initContainers"]
    assert wait["args"][-1:] == ["http://tools:8080/mcp"]
    assert wait["args"][:-1] == ["-P", "-m", "pallas_contract", "--wait", "300"]
    assert plain.pod("top")["initContainers"][1]["args"][-1] == "http://left-one:8080/mcp"
    assert [len(plain.pod(name).get("initContainers", [])) for name in ("right", "tools", "registry")] == [1, 1, 0]


def test_code_and_configuration_arrive_at_their_paths(plain) -> None:
    data = plain.one("ConfigMap", "pallas-code")["data"]
    assert {path: data[key] for key, path in json.loads(data[".paths.json"]).items()} == {
        f"agents/{name}.py": MODULE.format(name=name) for name in ("scout", "model")
    }
    assert "depends_on" in plain.one("ConfigMap", "pallas-config")["data"]["agents.yaml"]
    for name, kind in {"top": "emptyDir", "registry": "configMap"}.items():
        (project,) = (volume for volume in plain.pod(name)["volumes"] if volume["name"] == "project")
        (mount,) = (mount for mount in plain.main(name)["volumeMounts"] if mount["name"] == "project")
        assert kind in project
        assert mount == {"name": "project", "mountPath": "/project", "readOnly": True}


def test_the_copy_is_made_where_the_program_reads(plain) -> None:
    copying, *_ = plain.pod("top")["initContainers"]
    assert {mount["mountPath"]: (mount["name"], mount.get("readOnly", False)) for mount in copying["volumeMounts"]} == {
        "/project": ("project", False),
        "/delivered/config": ("config", True),
        "/delivered/code": ("code", True),
    }


def test_every_object_says_what_it_is(topologies) -> None:
    """Those of each kind, since test_kubernetes.py validates one of them."""
    for manifests in topologies.values():
        assert all(item.keys() >= {"apiVersion", "kind", "metadata"} for item in manifests.objects)


def test_the_copy_has_every_file_of_its_own_at_its_path(plain, tmp_path) -> None:
    copy, *_ = plain.pod("top")["initContainers"]
    assert copy["args"][:2] == ["-P", "-c"]
    volumes = {volume["name"]: volume["configMap"] for volume in plain.pod("top")["volumes"] if "configMap" in volume}
    for name in ("config", "code"):
        (tmp_path / "delivered" / name).mkdir(parents=True)
        data = plain.one("ConfigMap", volumes[name]["name"])["data"]
        for entry in volumes[name].get("items", [{"key": key, "path": key} for key in data]):
            (tmp_path / "delivered" / name / entry["path"]).write_text(data[entry["key"]])
    script = copy["args"][2].replace('"/delivered"', repr(str(tmp_path / "delivered")))
    subprocess.run([sys.executable, "-c", script.replace('"/project"', repr(str(tmp_path / "project")))], check=True)
    made = {str(path.relative_to(tmp_path / "project")) for path in (tmp_path / "project").rglob("*") if path.is_file()}
    assert made == {"agents.yaml", "agents/scout.py"}
    assert (tmp_path / "project" / "agents" / "scout.py").read_text() == MODULE.format(name="scout")


def test_code_baked_into_the_image_is_not_mounted(compiled) -> None:
    made = compiled("name: x\nimage: ghcr.io/acme/fleet:1\nagents:\n  a: {module: agents.scout, port: 8101}\n").render()
    assert set(made.of("ConfigMap")) == {"pallas-config"}
    assert made.main("a")["image"] == "ghcr.io/acme/fleet:1"
    assert [mount["name"] for mount in made.main("a")["volumeMounts"]] == ["tmp"]
    assert {mount["name"] for mount in made.main("registry")["volumeMounts"]} == {"tmp", "project"}


def test_an_agents_own_image_inherits_only_what_it_does_not_mention(compiled) -> None:
    text = "name: x\nimage: {agent: 'ghcr.io/acme/fleet:1', code: mounted}\nagents:\n"
    text += "  a: {module: agents.scout, port: 8101}\n  b: {module: agents.other, port: 8102}\n"
    text += "  c: {module: agents.scout, port: 8103, image: 'special:2'}\n"
    chart = compiled(text)
    assert [chart.render().main(name)["image"] for name in "abc"] == [*["ghcr.io/acme/fleet:1"] * 2, "special:2"]
    overlaid = chart.render({"agents": {"b": {"image": {"tag": "dev"}}}})
    assert overlaid.main("b")["image"] == "ghcr.io/acme/fleet:dev"


@pytest.mark.parametrize("baked", [False, True])
def test_an_image_of_somebody_else_gets_its_files_without_a_copy(compiled, baked: bool) -> None:
    image = "image: ghcr.io/acme/fleet:1\n" if baked else ""
    db = "services:\n  db: {image: acme/db:1, port: 5432, provides: other, files: [tuning.conf]}\n"
    agents = "agents:\n  a: {module: agents.scout, port: 8101}\n"
    made = compiled(f"name: x\n{image}{agents}{db}", tuning__conf="cache = 1\n").render()
    pod = made.pod("db")
    assert "initContainers" not in pod
    assert {"name": "code", "mountPath": "/project", "readOnly": True} in made.main("db")["volumeMounts"]
    (volume,) = [volume for volume in pod["volumes"] if volume["name"] == "code"]
    (entry,) = volume["configMap"]["items"]
    assert entry["path"] == "tuning.conf"
    code = made.one("ConfigMap", "pallas-code")["data"]
    assert code[entry["key"]] == "cache = 1\n"
    assert ("agents.scout.py" in code) is not baked
    assert made.main("a")["volumeMounts"] != made.main("db")["volumeMounts"]


def test_every_hard_text_reaches_env_args_and_files_unchanged(compiled) -> None:
    text = "|".join(HARD)
    quoted = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=10**6).strip()
    env = f"{{T: {quoted}, 'NO': 'false', 'null': '~'}}"
    made = compiled(
        f"name: {quoted}\nagents:\n  a: {{module: agents.scout, port: 8101, title: {quoted}, env: {env},"
        " files: [data.txt]}\n"
        f"services:\n  s: {{module: agents.model, port: 8102, args: [{quoted}]}}\n",
        data__txt=text,
    ).render()
    env = {item["name"]: item["value"] for item in made.main("a")["env"]}
    assert env["T"].replace("$$", "$") == text
    assert (env["NO"], env["null"]) == ("false", "~")
    assert made.main("s")["args"][-1].replace("$$", "$") == text
    assert made.one("ConfigMap", "pallas-code")["data"]["data.txt"] == text
    fleet = yaml.safe_load(made.one("ConfigMap", "pallas-config")["data"]["agents.yaml"])
    assert fleet["agents"]["a"]["title"] == text


@pytest.mark.parametrize("name", ["01-hello", "02-pallas", "03-data-pool", "04-percolate"])
def test_helm_lint_has_nothing_to_say(example, name: str) -> None:
    done = example(name).lint("--set", "secrets.fastagent-secrets-yaml.content=x")
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout
    wrong = example(name).lint("--set", "nonsense=1")
    assert wrong.returncode != 0


def test_no_list_says_a_name_twice(plain) -> None:
    """Server-side apply refuses such lists."""
    for pod in plain.pods.values():
        for container in pod["spec"]["containers"]:
            for key, of in (("env", "name"), ("volumeMounts", "mountPath"), ("ports", "containerPort")):
                seen = [item[of] for item in container.get(key, [])]
                assert len(seen) == len(set(seen))


def test_what_an_api_server_would_fill_into_a_policy_is_said(plain, compiled) -> None:
    """A policy's rules are one value to a server-side apply: another tool applying the same would meet a conflict."""
    traced = compiled(f"{GRAPH}telemetry: {{otlp_endpoint: 'http://otel:4318'}}\n").render()
    for policy in [*plain.of("NetworkPolicy").values(), *traced.of("NetworkPolicy").values()]:
        rules = [*policy["spec"].get("ingress", []), *policy["spec"].get("egress", [])]
        assert all({"port", "protocol"} <= port.keys() for rule in rules for port in rule.get("ports", []))


def test_agents_whose_name_is_a_yaml_word_stay_text(compiled) -> None:
    made = compiled(
        "name: x\nagents:\n  'null': {module: agents.scout, port: 1}\n  'yes': {module: agents.scout, port: 2}\n"
    )
    assert {"null", "yes"} <= set(made.render().of("Deployment"))


def test_the_registry_alone_gets_the_lock(compiled, plain) -> None:
    made = compiled(agents__lock='{"of": "the fleet"}').render()
    assert made.one("ConfigMap", "pallas-lock")["data"] == {"agents.lock": '{"of": "the fleet"}'}
    assert "agents.lock" not in made.one("ConfigMap", "pallas-config")["data"]
    readers = [name for name in made.pods if "pallas-lock" in str(made.pods[name])]
    assert readers == ["registry"]
    (project,) = (volume for volume in made.pod("registry")["volumes"] if volume["name"] == "project")
    assert [source["configMap"]["name"] for source in project["projected"]["sources"]] == [
        "pallas-config",
        "pallas-lock",
    ]
    changed = [name for name, pod in made.pods.items() if pod != plain.pods[name]]
    assert changed == ["registry"]
