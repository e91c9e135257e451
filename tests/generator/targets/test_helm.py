"""Plan to values: what is said of each workload, what is refused, what is copied."""

from __future__ import annotations

import base64
import compileall
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from pallas_contract.fleet.source import Loader
from pallas_contract.problems import Refused
from pallas_gen.output import drift, write
from pallas_gen.plan import Plan, build_plan
from pallas_gen.project import configmaps, contents, load
from pallas_gen.project.configmaps import Delivery
from pallas_gen.targets.helm import chart
from pallas_gen.targets.helm import render as helm

ONE = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101%s}\n"
HARD = ["$HOME ${X}", "{{ .Values }}", "yes", "0123", "1e3", "a: b # c", "ünï ☃", "l1\nl2\n", " x", "~", ""]


def document(plan: Plan, delivered: Delivery | None = None, *, complete: bool = False) -> dict[str, Any]:
    files = helm.render_values(plan, delivered or Delivery(), complete=complete)
    return yaml.load(files[helm.FILE], Loader)


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("pallas-agent:1", ("", "pallas-agent", "1", "")),
        ("acme/fleet", ("", "acme/fleet", "", "")),
        ("ghcr.io/acme/fleet:1@sha256:ab", ("ghcr.io", "acme/fleet", "1", "sha256:ab")),
        ("localhost/fleet", ("localhost", "fleet", "", "")),
        ("host:5000/a/b/fleet:v2", ("host:5000", "a/b/fleet", "v2", "")),
    ],
)
def test_an_image_is_taken_apart_as_runtimes_do(reference: str, parts: tuple[str, ...]) -> None:
    made = helm.image(reference)
    assert (made.registry, made.repository, made.tag, made.digest) == parts


@pytest.mark.parametrize("text", HARD)
def test_user_text_is_the_same_in_values(plan, text: str) -> None:
    quoted = yaml.safe_dump(text, default_style='"', width=10**6).strip()
    made = document(plan(ONE % f", env: {{T: {quoted}}}"))
    assert made["agents"]["scout"]["env"]["T"] == text


@pytest.mark.parametrize(("size", "volume"), [("256Mi", "1Gi"), ("1Gi", "2Gi"), ("64Gi", "81Gi")])
def test_an_audit_has_a_volume_that_it_does_not_fill(plan, size: str, volume: str) -> None:
    guarded = f"gateway: {{agents: [scout], audit: {{key: {{file: audit.txt}}, size: {size}}}}}\n"
    made = document(plan(ONE.replace("agents:", guarded + "agents:", 1) % ""))
    assert made["gateway"]["state"]["size"] == volume


def test_values_alone_are_what_differs_from_the_charts_defaults(plan) -> None:
    made = plan(ONE % "")
    assert document(made).keys() == {"project", "images", "agents", "registry", "defaults", "networkPolicy"}
    assert document(made, complete=True).keys() == helm.defaults().keys()
    assert document(made, complete=True)["agents"] == document(made)["agents"]


def test_the_chart_is_copied_byte_for_byte(plan) -> None:
    copies = chart.read()
    made = helm.render(plan(ONE % ""), Delivery(), copies)
    assert {path: text for path, text in made.items() if path != helm.FILE} == {
        path: text for path, text in copies.items() if path != helm.FILE
    }


def test_the_chart_is_exactly_what_is_committed(root: Path) -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "."]
    folder = root / "deploy" / "helm" / "pallas"
    done = subprocess.run(command, check=True, cwd=folder, capture_output=True, text=True, timeout=300)
    assert {str(path) for path in chart.read()} == set(done.stdout.split())


def test_what_pip_and_editors_leave_in_an_installed_chart_is_not_read(tmp_path: Path, monkeypatch) -> None:
    before = chart.read()
    installed = shutil.copytree(chart.chart_dir(), tmp_path / "chart", ignore=shutil.ignore_patterns("__pycache__"))
    assert compileall.compile_dir(installed, quiet=2)
    (installed / "templates" / "ingress.yaml~").write_text("x")
    assert list(installed.rglob("*.pyc"))
    monkeypatch.setattr(chart, "chart_dir", lambda: installed)
    assert chart.read() == before


def test_secrets_are_named_never_read(plan) -> None:
    made = plan(
        ONE % ", secrets: {KEY: {file: keys/a.txt}, OTHER: {file: keys-a.txt}}",
        fastagent__secrets__yaml="openai: {api_key: sk-canary}\n",
    )
    names = helm.secret_names(made)
    assert names["fastagent.secrets.yaml"] == "fastagent-secrets-yaml"
    assert len(set(names.values())) == 3
    said = document(made)
    assert said["secrets"]["fastagent-secrets-yaml"] == {"file": "fastagent.secrets.yaml"}
    assert said["agents"]["scout"]["secrets"]["KEY"] == names["keys/a.txt"]
    assert "sk-canary" not in str(said)
    (command,) = (line for line in helm.next_steps(made, "chart", ".", "pallas-gen build") if "--set-file" in line)
    assert "--set-file secrets.fastagent-secrets-yaml.content=fastagent.secrets.yaml" in command


@pytest.mark.helm
@pytest.mark.parametrize("file", ["my keys/a.txt", "$HOME.txt", "a,b.txt", "it's.txt", "{a}.txt", "a\\b.txt"])
def test_the_command_that_installs_can_be_pasted(plan, tmp_path: Path, file: str) -> None:
    """The shell takes it apart first, and then helm at each comma."""
    assert shutil.which("helm"), "helm is not here: tools/machine helm"
    made = plan(ONE % f", secrets: {{KEY: {{file: {json.dumps(file)}}}}}")
    chart_folder = tmp_path / "my charts" / "chart"
    (tmp_path / "my project" / file).parent.mkdir(parents=True)
    (tmp_path / "my project" / file).write_text("content of a key")
    write.write(helm.render(made, Delivery(), chart.read()), chart_folder)
    (command,) = helm.next_steps(made, "my charts/chart", "my project", "")
    script = command.removeprefix("next: ").replace("upgrade --install", "template")
    done = subprocess.run(["sh", "-c", script], check=False, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (secret,) = (item for item in yaml.safe_load_all(done.stdout) if item and item["kind"] == "Secret")
    assert [base64.b64decode(text) for text in secret["data"].values()] == [b"content of a key"]


def test_a_request_never_exceeds_the_limit(plan) -> None:
    small = document(plan(ONE % ", resources: {memory: 64Mi, cpus: 0.02}"))["agents"]["scout"]["resources"]
    assert small == {"limits": {"cpu": "0.02", "memory": "64Mi"}, "requests": {"cpu": "0.02", "memory": "64Mi"}}
    assert "requests" not in document(plan(ONE % ", resources: {memory: 2Gi}"))["agents"]["scout"]["resources"]


@pytest.mark.parametrize(
    ("label", "good"),
    [
        ("team: research", True),
        ("acme.io/team: a_b.c", True),
        ("team: 'two words'", False),
        ("'two words': x", False),
        ("app.kubernetes.io/name: x", False),
        (f"team: {'x' * 64}", False),
    ],
)
def test_a_label_that_kubernetes_would_refuse_is_refused_here(plan, label: str, good: bool) -> None:
    found = list(helm.problems(plan(ONE % f", labels: {{{label}}}")))
    assert (found == []) is good
    assert all(problem.where.field.startswith("agents.scout.labels.") and problem.hint for problem in found)


@pytest.mark.parametrize(
    ("path", "concerned"),
    [
        ("agents/scout.py", {"scout", "twin"}),
        ("agents/other.py", {"other"}),
        ("shared/data.txt", {"other", "carded"}),
        ("agents/card.md", {"carded"}),
        ("agents/helpers.py", set()),
    ],
)
def test_a_file_concerns_those_who_get_it(plan, tmp_path: Path, path: str, concerned: set[str]) -> None:
    (tmp_path / "agents").mkdir(exist_ok=True)
    (tmp_path / "agents" / "card.md").write_text("---\ntype: agent\nmodel: passthrough\n---\n")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "data.txt").touch()
    made = plan(
        "name: x\nagents:\n  scout: {module: agents.scout, port: 1}\n"
        "  other: {module: agents.other, port: 2, files: [shared]}\n"
        "  carded: {card: agents/card.md, port: 3, files: [shared/]}\n"
        "services:\n  twin: {module: agents.scout, port: 4}\n"
    )
    programs = [item for item in made.workloads if item.kind != "registry"]
    before, after = contents.fingerprints(made, {}), contents.fingerprints(made, {path: "x"})
    assert {item.name for item in programs if before[item.host] != after[item.host]} == concerned


def test_a_limit_of_processes_is_warned_about(plan) -> None:
    (problem,) = helm.problems(plan(ONE % ", resources: {pids: 99}"))
    assert (problem.level, problem.where.field) == ("warning", "agents.scout.resources.pids")


def test_names_that_the_chart_has_for_itself_are_refused(plan) -> None:
    (problem,) = helm.problems(plan("name: x\nagents:\n  pallas_test: {module: agents.scout, port: 8101}\n"))
    assert (problem.level, problem.where.field) == ("error", "agents.pallas_test")


def test_flat_networks_switch_policies_off(plan) -> None:
    assert document(plan(ONE % "" + "networks: flat\n"))["networkPolicy"] == {"enabled": False}


@pytest.mark.parametrize("name", ["fast-agent.yaml", "fast-agent.config.yaml"])
def test_a_configuration_under_fast_agents_own_name_is_no_code(plan, make, name: str) -> None:
    path = make(ONE % "")
    (path.parent / name).write_text("default_model: passthrough\n")
    (path.parent / "fast-agent.secrets.yaml").write_text("a: 1\n")
    delivery = configmaps.read(path.parent, plan(ONE % ""))
    assert delivery.config.keys() == {"agents.yaml", name}
    assert delivery.code.keys() == {"agents/scout.py"}


def test_what_is_delivered(plan, make, tmp_path: Path) -> None:
    make(ONE % "")
    more = {"fastagent__config__yaml": "default_model: passthrough\n", "fastagent__secrets__yaml": "a: 1\n"}
    for name in (".env", ".git/config", "agents/__pycache__/x.pyc", "agents/x.pyc", "chart/Chart.yaml", "chart/x.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (tmp_path / "compose.yaml").write_text("# Generated by pallas-gen 0 from x\n")
    found = configmaps.read(tmp_path, plan(ONE % ", files: ['*']", **more))
    assert found.config.keys() == {"agents.yaml", "fastagent.config.yaml"}
    assert found.code.keys() == {"agents/model.py", "agents/other.py", "agents/scout.py"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "agents/big.md",
            b"x" * (configmaps.LIMIT + 1),
            "KiB of files are too many for a ConfigMap (largest: agents/big",
        ),
        ("agents/a b.md", b"x", "cannot be delivered in a ConfigMap: letters"),
        ("agents.scout.py", b"x", "cannot be told from"),
        ("agents/logo.png", b"\x89PNG\xff", "is not text"),
    ],
)
def test_what_a_configmap_cannot_carry_is_refused_with_a_way_out(
    plan, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / name).write_bytes(content)
    (tmp_path / "agents" / "small.md").write_text("x")
    made = plan(ONE % ", files: [agents, '*.py']" if name == "agents.scout.py" else ONE % ", files: [agents]")
    with pytest.raises(Refused) as refused:
        configmaps.read(tmp_path, made)
    (problem,) = refused.value.problems
    assert message in problem.message
    assert "pallas-gen image" in problem.hint


def test_a_file_is_delivered_with_its_line_ends(plan, make, tmp_path: Path) -> None:
    """As processes and containers of compose see it."""
    make(ONE % ", files: [table.csv]")
    (tmp_path / "table.csv").write_bytes(b"a\r\nb\rc\n")
    made = plan(ONE % ", files: [table.csv]")
    said = document(made, configmaps.read(tmp_path, made))
    assert said["project"]["code"]["table.csv"] == "a\r\nb\rc\n"


def test_a_fleet_file_that_no_configmap_can_name_is_refused(make) -> None:
    path = make(ONE % "")
    path = path.rename(path.with_name("my fleet.yaml"))
    loaded = load.load(path, {})
    with pytest.raises(Refused) as refused:
        configmaps.read(path.parent, build_plan(loaded.fleet, loaded.config, loaded.project))
    (problem,) = refused.value.problems
    assert (problem.where.file, problem.hint) == ("my fleet.yaml", "rename it")


def test_a_baked_fleet_delivers_no_code_however_large(plan, tmp_path: Path) -> None:
    made = plan("image: acme/fleet:1\n" + ONE % "")
    (tmp_path / "big.md").write_bytes(b"x" * (configmaps.LIMIT + 1))
    assert configmaps.read(tmp_path, made).code == {}


@pytest.mark.parametrize(
    ("name", "hint"), [("agents.yaml", "two fleets"), ("agents.lock", "compares the fleet with nothing")]
)
def test_what_no_image_can_hold_instead_is_refused_where_it_is_too_much(plan, make, name: str, hint: str) -> None:
    path = make(ONE % "").with_name(name)
    made = replace(plan(ONE % ""), lock=("agents.lock",) if name == "agents.lock" else ())
    path.write_text("#" * configmaps.WHOLE)
    assert configmaps.read(path.parent, made).all[name]
    path.write_text("#" * (configmaps.WHOLE + 1))
    with pytest.raises(Refused) as refused:
        configmaps.read(path.parent, made)
    (problem,) = refused.value.problems
    assert (problem.where.file, problem.message) == (name, "961 KiB are too many for a ConfigMap; 960 fit")
    assert hint in problem.hint


def test_two_targets_in_one_folder_leave_each_others_files_alone(tmp_path: Path) -> None:
    """Each has sums of its own: what the other one wrote is neither stale nor unknown."""

    def files(sums: PurePosixPath, **texts: str) -> dict[Any, str]:
        made = {PurePosixPath(name): text for name, text in texts.items()}
        return made | {sums: write.sums(made)}

    other = write.sums_file("observability")
    write.write(files(write.SUMS, a="1", b="1"), tmp_path)
    write.write(files(other, c="1", d="1"), tmp_path)
    assert write.differences(files(write.SUMS, a="1", b="1"), tmp_path) == []
    assert list(drift.drift(files(other, c="1", d="1"), tmp_path)) == []
    write.write(files(write.SUMS, a="2"), tmp_path)
    write.write(files(other, c="2"), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"a", "c", write.SUMS.name, other.name}
    assert write.wrote_all(tmp_path, ())
    (tmp_path / "mine").touch()
    assert not write.wrote_all(tmp_path, ())


def test_sums_tell_an_edited_copy_from_an_old_one(tmp_path: Path) -> None:
    def files(**texts: str) -> dict[Any, str]:
        made = {PurePosixPath(name): text for name, text in texts.items()}
        return made | {write.SUMS: write.sums(made)}

    write.write(files(a="1", b="1"), tmp_path)
    write.write(files(a="2", b="1"), tmp_path)  # an old copy is replaced unasked
    assert (tmp_path / "a").read_text() == "2"
    (tmp_path / "a").write_text("mine")
    with pytest.raises(Refused):
        write.write(files(a="3", b="2"), tmp_path)
    assert (tmp_path / "b").read_text() == "1"
    assert any("+++ /dev/null" in text for text in write.differences(files(a="mine"), tmp_path))
    write.write(files(a="mine"), tmp_path)
    assert not (tmp_path / "b").exists()  # no longer written, and nobody's work
