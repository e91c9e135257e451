"""The chart rendered by the real `helm template`, as plain dicts. Each call costs a tenth of a second: share them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from pallas_contract.fleet.source import Loader
from pallas_gen.plan import Plan, build_plan
from pallas_gen.project import configmaps, load
from pallas_gen.targets.helm import render as helm
from pallas_gen.targets.helm.chart import chart_dir

from . import topologies as shapes

Object = dict[str, Any]
GRAPH = """\
name: Graph
agents:
  top: {module: agents.scout, port: 8101, depends_on: [left_one]}
  left_one: {module: agents.scout, port: 8102, publish: false, depends_on: {tools: {}, right: {required: false}}}
  right: {module: agents.scout, port: 8103, publish: false, egress: true, instance_scope: request}
services:
  tools: {module: agents.model, port: 8104}
  model: {module: agents.model, port: 8105, provides: openai}
"""


MODULE = """\
from fast_agent import FastAgent

fast = FastAgent("{name}")


@fast.agent(name="{name}", instruction="x", model="passthrough")
async def agent() -> None: ...
"""


@dataclass(frozen=True)
class Manifests:
    """Rendered objects by kind and name."""

    objects: list[Object]

    def of(self, kind: str) -> dict[str, Object]:
        return {item["metadata"]["name"]: item for item in self.objects if item["kind"] == kind}

    def one(self, kind: str, name: str) -> Object:
        return self.of(kind)[name]

    def pod(self, name: str) -> Object:
        return self.one("Deployment", name)["spec"]["template"]["spec"]

    def main(self, name: str) -> Object:
        (container,) = self.pod(name)["containers"]
        return container

    @property
    def pods(self) -> dict[str, Object]:
        """Every pod template, that of the chart's test too."""
        out = {name: item["spec"]["template"] for name, item in self.of("Deployment").items()}
        return out | self.of("Pod")


def helm_says(verb: str, values: Iterable[Path], *options: str) -> subprocess.CompletedProcess[str]:
    """`helm VERB` of the static chart."""
    assert shutil.which("helm"), "helm is not here: tools/machine helm"
    files = [part for path in values for part in ("-f", str(path))]
    release = ["rel"] if verb in ("template", "install") else []
    command = ["helm", verb, *release, str(chart_dir()), "--namespace", "space", *files, *options]
    # it ends before there is garbage worth collecting: a fifth of its processor time
    environment = os.environ | {"GOGC": "off"}
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, env=environment)


def parse(text: str) -> Manifests:
    return Manifests([item for item in yaml.load_all(text, Loader=Loader) if item])


@dataclass(frozen=True)
class Chart:
    """A fleet, compiled to values in `folder`."""

    folder: Path
    plan: Plan

    def run(self, overlay: Object | None = None, *options: str) -> subprocess.CompletedProcess[str]:
        files = [self.folder / "values.yaml"]
        if overlay:
            files.append(self.folder / "overlay.yaml")
            files[1].write_text(json.dumps(overlay))  # YAML 1.2 reads a `1e3` of PyYAML's as a number
        return helm_says("template", files, *options)

    def render(self, overlay: Object | None = None, *options: str) -> Manifests:
        done = self.run(overlay, *options)
        assert done.returncode == 0, done.stderr
        return parse(done.stdout)

    def lint(self, *options: str) -> subprocess.CompletedProcess[str]:
        """`helm lint --strict`."""
        return helm_says("lint", [self.folder / "values.yaml"], "--strict", *options)

    def refused(self, overlay: Object) -> str:
        """What helm says against it."""
        done = self.run(overlay)
        assert done.returncode != 0
        assert done.stdout == ""
        return done.stderr


def compile_fleet(agents_yaml: Path, target: Path) -> Chart:
    loaded = load.load(agents_yaml, {})
    plan = build_plan(loaded.fleet, loaded.config, loaded.project)
    files = helm.render_values(plan, configmaps.read(loaded.folder, plan))
    (target / helm.FILE).write_text(files[helm.FILE])
    return Chart(target, plan)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Chart]:
    """Compile a fleet from the text of agents.yaml and more files (`__` in a name stands for a dot)."""

    def build(agents_yaml: str = GRAPH, **files: str) -> Chart:
        folder = tmp_path_factory.mktemp("fleet")
        (folder / "agents").mkdir()
        for name in ("scout", "other", "model"):
            (folder / "agents" / f"{name}.py").write_text(MODULE.format(name=name))
        for name, text in files.items():
            (folder / name.replace("__", ".")).write_text(text)
        (folder / "agents.yaml").write_text(agents_yaml)
        return compile_fleet(folder / "agents.yaml", tmp_path_factory.mktemp("values"))

    return build


@pytest.fixture(scope="session")
def example(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Chart]:
    """Compile one of the examples, by name."""

    def build(name: str) -> Chart:
        return compile_fleet(root / "examples" / name / "agents.yaml", tmp_path_factory.mktemp("values"))

    return build


@pytest.fixture(scope="session")
def topology_fleets(compiled, example) -> dict[str, shapes.Fleet]:
    """Five fleets of different shape."""
    return shapes.fleets(compiled, example)


@pytest.fixture(scope="session")
def topologies(topology_fleets) -> dict[str, Manifests]:
    """The same, rendered."""
    return {name: fleet.render() for name, fleet in topology_fleets.items()}


@pytest.fixture(scope="session")
def graph(compiled) -> Chart:
    """The fleet of GRAPH."""
    return compiled()


@pytest.fixture(scope="session")
def public(compiled) -> Chart:
    """The same behind a reverse proxy of its own."""
    return compiled(f"public_url: https://{{name}}.ai.example.com\n{GRAPH}")


@pytest.fixture(scope="session")
def plain(graph) -> Manifests:
    """GRAPH with every value as the generator leaves it."""
    return graph.render()
