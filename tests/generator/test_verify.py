"""`pallas-gen verify` reads what is on disk: whatever was edited, lost or left there is named, with what to do."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from pallas_gen import verify
from pallas_gen.output import write
from pallas_gen.output import yaml as yaml_out
from pallas_gen.plan import build_plan
from pallas_gen.project import load
from pallas_gen.targets.base import Target
from pallas_gen.targets.observed import ObservedWorkload
from pallas_gen.targets.table import TARGETS
from tests.problem_lines import without_codes

ROOT = Path(__file__).parents[2]
FLEET = """\
name: x
agents:
  scout: {module: agents.scout, port: 8101, depends_on: [other], secrets: {KEY: {file: keys/one}}}
  other: {module: agents.other, port: 8102, publish: false, env: {COST: "$5 $$ ${X}"}}
"""
NO_CHART = "not here, and so not compared: chart (`pallas-gen helm` writes it)\n"


@pytest.fixture
def project(make, run, monkeypatch, tmp_path: Path) -> Path:
    """A project with a compose file, which is the current folder."""
    monkeypatch.chdir(tmp_path)
    make(FLEET)
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "one").write_text("canary-of-a-key\n")
    (tmp_path / "keys" / "one").chmod(0o644)
    assert run("compose")[0] == 0
    return tmp_path


@pytest.fixture
def charted(project: Path, run) -> Path:
    """The same with a chart."""
    assert run("helm")[0] == 0
    return project


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def first_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("    ")]


@pytest.mark.helm
@pytest.mark.parametrize("example", sorted(path.parent.name for path in (ROOT / "examples").glob("*/agents.yaml")))
def test_every_example_is_the_plan_in_both(example: str, run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(shutil.copytree(ROOT / "examples" / example, tmp_path / example))
    assert run("compose")[0] == run("helm")[0] == 0
    code, out, err = run("verify")
    assert (code, err) == (0, "")
    assert out.startswith("agents.yaml: compose and chart are the plan, in all of its ")


def test_one_of_two_is_compared_and_the_other_named(project: Path, run) -> None:
    expected = "agents.yaml: compose is the plan, in all of its 3 workloads\nagents.yaml: " + NO_CHART
    assert run("verify") == (0, expected, "")


def test_nothing_at_all_is_no_success(make, run, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    make(FLEET.replace(", secrets: {KEY: {file: keys/one}}", ""))
    code, out, err = run("verify")
    assert (code, out) == (1, "")
    assert err == ".: nothing to compare: no target was written\n    run `pallas-gen compose` or `pallas-gen helm`\n"


def test_what_is_asked_for_has_to_be_there(project: Path, run) -> None:
    assert run("verify", "--target", "compose")[:2] == (
        0,
        "agents.yaml: compose is the plan, in all of its 3 workloads\n",
    )
    code, _, err = run("verify", "--target", "helm")
    assert (code, err) == (1, "chart/values.yaml: was never written, or is lost\n    run `pallas-gen helm`\n")
    (project / "compose.yaml").unlink()
    code, _, err = run("verify", "--target", "compose", "-f", "./agents.yaml", "-o", "out dir")
    assert code == 1
    assert "run `pallas-gen compose -o 'out dir'`" in err
    code, _, err = run("verify", "--target", "nomad")
    assert code == 2
    assert "there is no target nomad: compose, helm, image, observability" in err.replace("\n", " ")


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        (
            'image: "pallas-agent:',
            'image: "evil:',
            "other.image: is evil:0.1.0, and pallas-agent:0.1.0 in the plan\n"
            "    `pallas-gen compose --diff` shows the difference, "
            "`pallas-gen compose --force` writes what the plan says\n",
        ),
        ("$$5 $$$$ $${X}", "$5 $$$$ $${X}", ""),
        ("$$5 $$$$ $${X}", "$$6", "other.env: has another value of COST, unlike the plan\n"),
        ("COST:", "PRICE: canary\n      COST:", "other.env: has PRICE, unlike the plan\n"),
        ("512M", "900M", "other.limits: memory is 900 MiB, and 512 MiB in the plan\n"),
        ("--agent", "--api-key=canary-8471-key", "other.command: is -P -m pallas_agent_runtime --api-key=*** "),
        ("source: keys-one", "source: keys-two", ""),
        ("read_only: true", "read_only: false", ""),
        ("cap_drop", "cap_add", ""),
    ],
)
def test_an_edited_line_is_named(project: Path, run, old: str, new: str, field: str) -> None:
    text = (project / "compose.yaml").read_text()
    old, new = (part if old in text else part.replace("keys-", "keys_") for part in (old, new))
    line = text[: text.index(old)].count("\n") + 1
    edit(project / "compose.yaml", old, new)
    code, out, err = run("verify")
    assert (code, out) == (1, "")
    assert f"compose.yaml:{line}:1: was edited after pallas-gen wrote it\n" in err
    assert "`pallas-gen compose --diff` shows the change, `pallas-gen compose --force` takes it back" in err
    assert field in err
    assert "canary" not in err
    assert run("compose", "--force")[0] == run("verify")[0] == 0


@pytest.mark.parametrize(
    ("target", "file"), [("compose", "compose.yaml"), ("helm", "chart/files/place.py"), ("helm", "chart/values.yaml")]
)
def test_line_ends_of_a_checkout_are_put_right(project: Path, run, target: str, file: str) -> None:
    """git makes them so where `core.autocrlf` is set. They are nobody's work, so none has to say `--force`."""
    run(target)
    written = (project / file).read_bytes()
    (project / file).write_bytes(written.replace(b"\n", b"\r\n"))
    code, _, err = run("verify", "--target", target)
    assert (code, first_lines(err)[0]) == (1, f"{file}:1:1: was edited after pallas-gen wrote it")
    assert run(target, "--check")[0] == 1
    assert f"+++ b/{file.removeprefix('chart/')}" in run(target, "--diff")[1]
    assert f"wrote {file}\n" in run(target)[1]
    assert (project / file).read_bytes() == written
    assert run("verify", "--target", target)[0] == 0


def test_a_file_that_is_older_than_the_fleet_file_is_named(project: Path, run) -> None:
    edit(project / "agents.yaml", "8101", "8111")
    expected = "agents.yaml: changed since compose.yaml was written\n    run `pallas-gen compose`\n"
    assert run("verify") == (1, "", expected)


def test_code_that_was_edited_since_is_named_and_nothing_else(project: Path, run) -> None:
    (project / "agents" / "scout.py").write_text("fast = 1\n")
    assert run("verify")[::2] == (
        1,
        "agents/scout.py: changed since compose.yaml was written\n    run `pallas-gen compose`\n",
    )
    assert run("compose")[0] == run("verify")[0] == 0


def test_code_that_came_or_went_is_named_from_where_one_stands(project: Path, run, monkeypatch) -> None:
    (project / "agents" / "scout.py").write_text("import agents.extra\nfast = None\n")
    (project / "agents" / "extra.py").write_text("")
    monkeypatch.chdir(project / "agents")
    err = run("verify", "-f", "../agents.yaml")[2]
    remedy = "    run `pallas-gen compose -f ../agents.yaml`\n"
    assert f"extra.py: was added since ../compose.yaml was written\n{remedy}" in err
    assert f"scout.py: changed since ../compose.yaml was written\n{remedy}" in err
    assert run("compose", "-f", "../agents.yaml")[0] == 0
    (project / "agents" / "extra.py").unlink()
    assert "extra.py: was removed since ../compose.yaml was written\n" in run("verify", "-f", "../agents.yaml")[2]


def test_an_edit_by_hand_is_named_beside_the_code(project: Path, run) -> None:
    (project / "agents" / "scout.py").write_text("fast = 1\n")
    edit(project / "compose.yaml", "cap_drop", "cap_add")
    err = run("verify")[2]
    assert "was edited after pallas-gen wrote it" in err
    assert "agents/scout.py: changed since compose.yaml was written" in err


@pytest.mark.helm
def test_code_that_a_chart_has_otherwise_is_named(charted: Path, run) -> None:
    (charted / "agents" / "scout.py").write_text("fast = 1\n")
    err = run("verify", "--target", "helm")[2]
    assert err == "agents/scout.py: changed since chart/values.yaml was written\n    run `pallas-gen helm`\n"


def test_a_compose_file_without_a_record_is_compared_as_a_whole(project: Path, run) -> None:
    text = (project / "compose.yaml").read_text()
    body = text.partition("x-pallas-files:")[0].partition("name: ")[2]
    (project / "compose.yaml").write_text(yaml_out.headed(f"name: {body}", "of an older version"))
    (project / "agents" / "scout.py").write_text("fast = 1\n")
    err = run("verify")[2]
    assert "is not what pallas-gen would write now\n    run `pallas-gen compose`\n" in err
    assert "agents/scout.py" not in err


def test_a_file_of_somebody_else_is_named(project: Path, run) -> None:
    (project / "compose.yaml").write_text("services: {}\n")
    code, _, err = run("verify")
    assert code == 1
    assert "compose.yaml:1:1: is not what pallas-gen would write now" in err
    assert "compose.yaml scout: is missing" in err


def test_what_lies_elsewhere_is_read_there(project: Path, run) -> None:
    (project / "compose.yaml").unlink()
    assert run("compose", "-o", "deploy/here")[0] == 0
    code, out, _ = run("verify", "-o", "deploy/here")
    assert (code, out.splitlines()[0]) == (0, "agents.yaml: compose is the plan, in all of its 3 workloads")
    edit(project / "deploy" / "here" / "compose.yaml", "../../keys/one", "../../keys/two")
    code, _, err = run("verify", "-o", "deploy/here")
    assert code == 1
    assert "scout.secrets: has KEY: ../../keys/two and lacks KEY: keys/one, unlike the plan" in err
    assert "canary" not in err


def test_a_folder_that_was_there_before_what_is_written_to_it_changes_nothing(project: Path, run) -> None:
    (project / "out").mkdir()
    assert run("compose", "-o", "out")[0] == 0
    assert run("compose", "-o", "out", "--check") == (0, "", "")
    assert run("verify", "-o", "out", "--target", "compose")[0] == 0


def test_line_ends_are_bytes_too(project: Path, run) -> None:
    path = project / "compose.yaml"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    code, _, err = run("verify")
    assert (code, first_lines(err)) == (1, ["compose.yaml:1:1: was edited after pallas-gen wrote it"])


def test_targets_that_run_nothing_are_compared_where_they_were_written(project: Path, run) -> None:
    assert run("image")[0] == run("observability")[0] == 0
    assert run("verify")[1].splitlines()[1] == (
        "agents.yaml: Dockerfile.fleet and observability are as pallas-gen writes them"
    )
    (project / "observability" / "alerts.yaml").unlink()
    edit(project / "observability" / "dashboard.json", '"10s"', '"11s"')
    edit(project / "Dockerfile.fleet", "pallas-agent", "evil")
    code, _, err = run("verify")
    assert code == 1
    assert first_lines(err) == [
        "Dockerfile.fleet:2:1: is not what pallas-gen would write now",
        "observability/alerts.yaml: is missing",
        "observability/dashboard.json:9:1: was edited after pallas-gen wrote it",
    ]


def paths(node: Any, prefix: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value of a document."""
    entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in entries:
        yield (*prefix, key)
        yield from paths(value, (*prefix, key))


@pytest.mark.parametrize("change", [lambda node, key: node.pop(key), lambda node, key: node.__setitem__(key, None)])
def test_no_edit_ends_in_a_traceback(project: Path, change: Callable[[Any, Any], Any]) -> None:
    path = project / "compose.yaml"
    loaded = load.load(project / "agents.yaml", {})
    plan = build_plan(loaded.fleet, loaded.config, loaded.project)
    document = yaml.safe_load(path.read_text())
    for place in paths(document):
        if place[0] == "services" and place[1:2] not in ((), ("scout",)):
            continue  # all of one shape
        edited = copy.deepcopy(document)
        node = edited
        for key in place[:-1]:
            node = node[key]
        change(node, place[-1])
        path.write_text(json.dumps(edited))
        report = verify.verify(loaded, plan, TARGETS[:1], output=None, required=True, command=lambda *_: "again")
        assert report.problems, place


NO_YAML = [
    *("", "[", "- 1\n", "a: *b\n", "\x00", "!!python/object:os.x {}\n", "[" * 3000, "é", "a: 2024-13-45\n"),
    f"a: {'[' * 100_000}{']' * 100_000}\n",  # the loader alone would end the process
]


@pytest.mark.parametrize("text", NO_YAML, ids=range(len(NO_YAML)))
def test_no_file_ends_in_a_traceback(project: Path, run, text: str) -> None:
    (project / "compose.yaml").write_bytes(text.encode("latin-1"))
    code, out, err = run("verify")
    assert (code, out) == (1, "")
    assert err.startswith("compose.yaml:1:1: is not what pallas-gen would write now")
    assert "Traceback" not in err


def test_no_values_end_in_a_traceback(charted: Path, run, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")
    for text in [*NO_YAML, "project: {config: {1: a}, code: {b: [], 2024-01-01: c}}\n"]:
        (charted / "chart" / "values.yaml").write_bytes(text.encode("latin-1"))
        code, out, err = run("verify", "--target", "helm")
        assert (code, out) == (1, ""), text
        assert "chart/values.yaml:1:1: is not what pallas-gen would write now\n" in err, text


def test_no_name_acts_on_a_terminal_or_breaks_a_document(charted: Path, run, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")
    names = ["a\nb.yaml", "a\x1b[31m.yaml", "a\u202e.yaml", "a\udcff.yaml"]
    for name in names:
        (charted / "chart" / "templates" / name).write_text("a: 1\n")
    shown = [f"chart/templates/{ascii(name)[1:-1]}" for name in names]
    code, out, err = run("verify", "--target", "helm")
    assert (code, out) == (1, "")
    foreign = "was not written by pallas-gen, and counts as if it had been"
    assert first_lines(err)[:-1] == [f"{name}: {foreign}" for name in shown]
    code, out, err = run("verify", "--target", "helm", "--format", "json")
    assert (code, err) == (1, "")
    assert {problem["file"] for problem in json.loads(out)["problems"]} == {*shown, "chart/values.yaml"}
    assert json.loads(run("verify", "--target", "helm", "--format", "sarif")[1])


@pytest.mark.helm
@pytest.mark.parametrize("name", ["monitoring.yaml", "own.yaml", "o\nwn.yaml"])
def test_yaml_that_helm_alone_can_read_is_named_beside_its_file(charted: Path, run, name: str) -> None:
    template = charted / "chart" / "templates" / name
    before = template.read_text() if template.exists() else ""
    template.write_text(f"{before}---\nkind: AlertmanagerConfig\nspec: {{matchers: [{{name: a, matchType: =}}]}}\n")
    code, out, err = run("verify", "--target", "helm")
    assert (code, out) == (1, "")
    file, reading = first_lines(err)
    assert file.startswith(f"chart/templates/{ascii(name)[1:-1]}:")
    assert reading.startswith("chart/values.yaml: helm renders pallas/templates/")
    assert len(json.loads(run("verify", "--target", "helm", "--format", "json")[1])["problems"]) == 2


def test_what_stands_in_the_place_of_a_file_is_named_and_not_waited_for(charted: Path, run) -> None:
    ways = {Path.mkdir: Path.rmdir, os.mkfifo: Path.unlink, lambda path: path.symlink_to("nowhere"): Path.unlink}
    for name in ("compose.yaml", "chart/values.yaml", "chart/Chart.yaml", "chart/.helmignore"):
        text = (charted / name).read_text()
        (charted / name).unlink()
        target = "helm" if "/" in name else "compose"
        remedy = f"    remove it, and run `pallas-gen {target}`\n"
        expected = f"{name}: is no file: a folder, a pipe, or a link to what is none\n{remedy}"
        for put, remove in ways.items():
            put(charted / name)
            assert run("verify", "--target", target) == (1, "", expected)
            remove(charted / name)
        (charted / name).write_text(text)


def test_a_chart_that_lost_what_it_begins_with_was_written_all_the_same(charted: Path, run) -> None:
    chart = charted / "chart"
    (chart / "values.yaml").unlink()
    (chart / "Chart.yaml").unlink()
    code, out, err = run("verify")
    assert (code, out) == (1, "")
    assert first_lines(err) == ["chart/Chart.yaml: is missing", "chart/values.yaml: is missing"]
    (chart / "Chart.yaml").symlink_to("nowhere")
    (chart / write.SUMS).unlink()
    assert first_lines(run("verify")[2])[0].startswith("chart/Chart.yaml: is no file")
    assert run("helm")[0] == 0
    assert run("verify", "--target", "compose")[0] == 0


def test_targets_of_which_the_record_alone_is_left_were_written(project: Path, run) -> None:
    assert run("observability")[0] == 0
    lost = sorted(path for path in (project / "observability").iterdir() if not path.name.startswith("."))
    for path in lost:
        path.unlink()
    code, _, err = run("verify")
    assert (code, first_lines(err)) == (1, [f"observability/{path.name}: is missing" for path in lost])


def test_without_helm_the_chart_is_compared_byte_for_byte_only(charted: Path, run, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")
    edit(charted / "compose.yaml", "read_only: true", "read_only: false")
    edit(charted / "chart" / "values.yaml", "pallas-agent", "evil")
    code, _, err = run("verify")
    assert code == 1
    assert [line.partition(": ")[2] for line in first_lines(err)] == [
        "was edited after pallas-gen wrote it",
        "was edited after pallas-gen wrote it",
        "helm is not installed: it is needed to read the chart back",
    ]
    assert run("verify", "--target", "helm")[0] == 1
    assert "helm" not in run("verify", "--target", "compose")[2]


@pytest.mark.helm
def test_the_chart_that_would_be_installed_is_read(charted: Path, run) -> None:
    assert run("verify") == (0, "agents.yaml: compose and chart are the plan, in all of its 3 workloads\n", "")
    chart = charted / "chart"
    edit(chart / "values.yaml", "KEY: keys-one", "KEY: keys-two")
    edit(chart / "templates" / "_helpers.tpl", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false")
    (chart / "templates" / "ingress.yaml").unlink()
    (chart / "templates" / "evil.yaml").write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: evil, namespace: x, labels: "
        "{app.kubernetes.io/component: agent}}\nspec: {template: {metadata: {labels: {}}, spec: {containers: "
        "[{image: i, args: [], env: [], ports: [{containerPort: 1}], readinessProbe: {exec: {command: [x]}}, "
        "resources: {limits: {cpu: 1, memory: 1Gi}}, volumeMounts: []}], volumes: []}}}\n"
    )
    code, _, err = run("verify")
    assert code == 1
    lines = first_lines(err)
    assert "chart/templates/evil.yaml: was not written by pallas-gen, and counts as if it had been" in lines
    assert "chart/templates/ingress.yaml: is missing" in lines
    assert [line.partition(":")[0] for line in lines if line.endswith("was edited after pallas-gen wrote it")] == [
        "chart/templates/_helpers.tpl",
        "chart/values.yaml",
    ]


@pytest.mark.helm
def test_the_chart_is_rendered_from_the_disk(charted: Path, run) -> None:
    edit(charted / "chart" / "values.yaml", "      COST:", "      PRICE:")
    code, _, err = run("verify")
    assert code == 1
    assert "chart/values.yaml other.env: has PRICE and lacks COST, unlike the plan\n" in err
    edit(charted / "chart" / "values.yaml", "      PRICE:", "      COST:")
    edit(charted / "chart" / "Chart.yaml", "apiVersion: v2", "apiVersion: v9")
    code, _, err = run("verify")
    assert code == 1
    assert "chart/values.yaml: helm refuses this chart: " in err


@pytest.mark.helm
def test_values_alone_are_read_with_the_published_chart(project: Path, run) -> None:
    assert run("helm", "--values-only", "-o", "values")[0] == 0
    code, out, err = run("verify", "-o", "values")
    assert (code, err) == (0, "")
    assert (code, out.splitlines()[0]) == (0, "agents.yaml: chart is the plan, in all of its 3 workloads")
    edit(project / "values" / "values.yaml", "      COST:", "      PRICE:")
    code, _, err = run("verify", "-o", "values")
    assert code == 1
    assert "`pallas-gen helm -o values --values-only --force` takes it back" in err
    assert "values/values.yaml other.env: has PRICE and lacks COST, unlike the plan\n" in err


def test_what_an_earlier_version_left_is_named(charted: Path, run, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")
    old = charted / "chart" / "templates" / "old.yaml"
    old.write_text("kind: Old\n")
    sums = charted / "chart" / write.SUMS
    sums.write_text(sums.read_text() + write.sums({PurePosixPath("templates/old.yaml"): "kind: Old\n"}))
    code, _, err = run("verify", "--target", "helm")
    assert code == 1
    assert "chart/templates/old.yaml: is left over from an earlier run\n    remove it\n" in err
    old.unlink()
    code, _, err = run("verify", "--target", "helm")
    assert f"chart/{write.SUMS}:" in err
    assert run("helm")[0] == 0
    (charted / "chart" / write.SUMS).unlink()
    assert f"chart/{write.SUMS}: is missing" in run("verify", "--target", "helm")[2]


def test_a_target_that_refuses_the_fleet_refuses_it_here_too(charted: Path, run) -> None:
    edit(charted / "agents.yaml", "port: 8101", "port: 8101, labels: {team: two words}")
    code, out, err = run("verify")
    assert (code, out) == (2, "")
    assert "team='two words' cannot be a Kubernetes label" in err


def test_a_row_that_nobody_knows_is_compared_as_well(project: Path) -> None:
    """A third target needs no word in `verify`."""
    loaded = load.load(project / "agents.yaml", {})
    plan = build_plan(loaded.fleet, loaded.config, loaded.project)
    observed: dict[str, ObservedWorkload] = {item.host: verify.planned(plan, item) for item in plan.workloads}
    toy = Target(
        name="toy",
        summary="",
        noun="toy",
        files=(PurePosixPath("toy.txt"),),
        render=lambda context: {PurePosixPath("toy.txt"): context.plan.name},
        read_back=lambda context: observed,
        folder="toys",
    )

    def compare() -> verify.Report:
        return verify.verify(
            loaded, plan, [*TARGETS, toy], output=None, required=False, command=lambda row, _: f"make {row.name}"
        )

    assert [row.name for row in compare().absent] == ["helm", "toy"]
    (project / "toys").mkdir()
    (project / "toys" / "toy.txt").write_text("x")
    report = compare()
    assert [row.name for row in report.checked] == ["compose", "toy"]
    assert report.problems == []
    del observed["scout"]
    (project / "toys" / "toy.txt").write_text("y")
    assert [without_codes(str(problem)) for problem in compare().problems] == [
        "toys/toy.txt:1:1: is not what pallas-gen would write now\n"
        "    `make toy --diff` shows the difference, `make toy --force` overwrites it",
        "toys/toy.txt scout: is missing\n"
        "    `make toy --diff` shows the difference, `make toy --force` writes what the plan says",
    ]
