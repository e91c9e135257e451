"""The wheel carries all that its commands need: its file list, and `pallas-gen` run from it alone."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from pallas_contract import __version__, extras
from tests.documentation import blocks
from tests.installed import ROOT, build_wheel, end, installed_with, run

ROOMS = {
    "cli": "",
    "contract": "",
    "generator": "",
    "services/common": "",
    "services/gateway": "",
    "services/registry": "",
    "services/agent-runtime": "",
    "testing": "",
    "deploy/helm/pallas": "pallas_gen/chart",
    "examples": "pallas_cli/examples",
}

IMAGE_SOURCES = (
    "Dockerfile.agent",
    "Dockerfile.registry",
    "requirements/agent.lock",
    "requirements/registry.lock",
    "tools/shrink.py",
)

pytestmark = [pytest.mark.slow, pytest.mark.beside]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def test_every_tracked_file_of_every_room_is_in_it(wheel: Path) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = set()
    for room, place in ROOMS.items():
        files = run("git", "ls-files", "--cached", "--others", "--exclude-standard", room).splitlines()
        expected |= {str(PurePosixPath(place) / Path(file).relative_to(room)) for file in files}
    expected |= {f"pallas_gen/image_sources/{name}" for name in IMAGE_SOURCES}
    assert inside == expected
    assert "pallas_gen/templates/Dockerfile.fleet.j2" in inside


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an empty environment with the wheel as pip installs it, which compiles every module.

    It is the pip that Python brings along, of this environment: to install another copy of it takes two seconds.
    """
    folder = tmp_path_factory.mktemp("installed") / "venv"
    uv = Path(sys.executable).parent / "uv"
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    lock = ROOT / "requirements" / "generator.lock"
    run(uv, "pip", "install", "-q", "--python", python, "--require-hashes", "-r", lock)
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    run(*pip, "install", "-q", "--no-index", "--no-deps", wheel)
    assert list(folder.rglob("pallas_gen/chart/files/__pycache__/place.*.pyc")), "pip compiled the chart's program too"
    return folder / "bin"


VERBS = {
    "compose -o out": "wrote out/compose.yaml\n",
    "helm -o out/chart": "wrote out/chart/templates/workloads.yaml\n",
    "helm --values-only -o out/values": "wrote out/values/values.yaml\n",
    "image -o out": "wrote out/Dockerfile.fleet\n",
    "observability -o out/observability": "wrote out/observability/alerts.yaml\n",
    "validate": " agents, no errors\n",
    "verify -o out --target compose": "compose is the plan, in all of its ",
    "verify -o out --target image": "Dockerfile.fleet is as pallas-gen writes it\n",
    "explain network": "everything else is refused\n",
    "graph": "└── research\n",
    "clients cursor": '"url": "http://localhost:',
    "diff fleet": "no difference\n",
    "lock": "wrote fleet/agents.lock\n",
    "plan": "no difference\n",
}


EACH_FORKED = """
import json, os, sys
from pallas_contract.validate import load  # three quarters of what a verb does is to import this
from pallas_gen import cli
for words in json.load(sys.stdin):
    if not os.fork():
        sys.argv[1:] = words
        cli.main()
    assert os.wait()[1] == 0, words
    os.write(1, b"\\0")
"""
"""Each verb with its own imports from the package that is tested, in a process that ends with it."""


def test_every_verb_runs_from_what_pip_installed(installed: Path, tmp_path: Path) -> None:
    example = shutil.copytree(ROOT / "examples" / "02-pallas", tmp_path / "fleet") / "agents.yaml"
    lines = [[*("explain network" if "explain" in verb else verb).split(), "-f", str(example)] for verb in VERBS]
    done = subprocess.run(
        [installed / "python", "-P", "-c", EACH_FORKED],
        check=False,
        cwd=tmp_path,
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    for (verb, output), text in zip(VERBS.items(), done.stdout.split("\0")[:-1], strict=True):
        assert output in text, verb
    assert VERBS["validate"] in run(installed / "pallas-gen", "validate", "-f", example, cwd=tmp_path)
    assert run(installed / "pallas-gen", "schema", cwd=tmp_path).startswith('{\n  "$defs"')
    (tmp_path / "audit-000000000001.jsonl").touch()
    audit = run(installed / "pallas-gen", "audit", "verify", tmp_path, "--key-file", example, cwd=tmp_path)
    assert audit == "0 records, each as it was written\n"
    assert run(installed / "python", "-m", "pallas_gen", "--version", cwd=tmp_path).startswith("pallas-gen ")
    help_text = run(installed / "pallas-gen", "--help", cwd=tmp_path)
    verbs = set(re.findall(r"^  ([a-z]+) ", help_text.partition("Commands:")[2], re.MULTILINE))
    assert verbs == {verb.split()[0] for verb in VERBS} | {"audit", "schema", "probe", "build", "bundle", "doctor"}


def test_a_project_is_made_and_taken_without_any_extra(installed: Path, tmp_path: Path) -> None:
    for arguments in ([], ["--example", "pallas"]):
        folder = tmp_path / f"desk{len(arguments)}"
        text = run(installed / "pallas", "init", folder, *arguments, cwd=tmp_path)
        assert f"next:\n  cd {folder}\n  pip install 'pallas-kit[all]'\n" in text
        assert " agents, no errors\n" in run(installed / "pallas-gen", "validate", cwd=folder)


def test_the_images_are_built_from_what_the_checkout_builds_them_from(installed: Path, tmp_path: Path) -> None:
    run(installed / "pallas-gen", "build", "--base", "-o", "context", cwd=tmp_path)
    context = tmp_path / "context"
    written = {path.relative_to(context) for path in context.rglob("*") if path.is_file()}
    assert set(map(Path, IMAGE_SOURCES)) < written
    assert all((context / path).read_bytes() == (ROOT / path).read_bytes() for path in written)
    packages = {
        "pallas_contract",
        "pallas_service",
        "pallas_gateway",
        "pallas_registry",
        "pallas_agent_runtime",
        "pallas_testing",
    }
    assert {path.parts[-2] for path in written if path.parts[-2:][0].startswith("pallas_")} == packages


def test_the_chart_that_pip_installed_is_the_committed_one(installed: Path, tmp_path: Path) -> None:
    example = shutil.copytree(ROOT / "examples" / "01-hello", tmp_path / "fleet") / "agents.yaml"
    run(installed / "pallas-gen", "helm", "-f", example, cwd=tmp_path)
    chart = tmp_path / "fleet" / "chart"
    files = run("git", "ls-files", ".", cwd=ROOT / "deploy" / "helm" / "pallas").split()
    written = {path.relative_to(chart).as_posix() for path in chart.rglob("*") if path.is_file()}
    assert written == {*files, ".pallas-gen.sums"}
    for name in set(files) - {"values.yaml"}:
        assert (chart / name).read_bytes() == (ROOT / "deploy" / "helm" / "pallas" / name).read_bytes()


INSTALLERS = {
    "uv": ("tool", "install", "-q", "--python", sys.executable),
    "pipx": ("tool", "run", "-q", "pipx", "install", "--quiet", "--python", sys.executable),
}
"""By installer: what uv is asked for, the wheel follows."""


@pytest.mark.parametrize("installer", INSTALLERS)
def test_what_puts_commands_alone_on_the_path_takes_it(installer: str, wheel: Path, tmp_path: Path) -> None:
    uv = Path(sys.executable).parent / "uv"
    commands = tmp_path / "bin"
    places = {"UV_TOOL_DIR": "tools", "UV_TOOL_BIN_DIR": "bin", "PIPX_HOME": "pipx", "PIPX_BIN_DIR": "bin"}
    settings = [f"{name}={tmp_path / place}" for name, place in places.items()]
    run("env", *settings, uv, *INSTALLERS[installer], wheel, cwd=tmp_path)
    assert {path.name for path in commands.iterdir()} == set(COMMANDS)
    example = shutil.copytree(ROOT / "examples" / "01-hello", tmp_path / "fleet") / "agents.yaml"
    assert "wrote " in run(commands / "pallas-gen", "helm", "-f", example, cwd=tmp_path)
    assert " 1 agent, no errors\n" in run(commands / "pallas-gen", "validate", "-f", example, cwd=tmp_path)


COMMANDS = ("pallas", "pallas-gen", "pallas-registry", "pallas-testing")
LACKING = {
    "": {
        "pallas": "local",
        "pallas --agent a": "agent",
        "pallas-registry": "registry",
        "pallas-testing model a": "testing",
    },
    "registry": {"pallas": "local", "pallas --agent a": "agent", "pallas-testing model a": "testing"},
    "agent": {"pallas": "local", "pallas-registry": "registry"},
    "all": {},
}
"""By what was installed: the extra that each command asks for."""


def test_the_page_shows_what_a_command_says_that_lacks_its_extra() -> None:
    """docs/install.md; the test below holds the line itself."""
    (shown,) = blocks.of("missing-extra")
    assert shown.text == extras.advice("pallas", "local", ["fast-agent-mcp", "..."])


def test_the_commands_are_those_of_the_distribution() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(COMMANDS) == set(scripts["scripts"])
    assert set(LACKING) - {""} < set(scripts["optional-dependencies"])


def test_no_python_is_asked_for_but_that_of_the_seed_and_later() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"] == ">=3.13"


@pytest.mark.parametrize("extra", LACKING)
def test_every_command_answers_and_names_the_extra_it_lacks(
    extra: str, wheel: Path, installed: Path, tmp_path: Path
) -> None:
    folder = installed_with(extra, wheel, tmp_path) if extra else installed
    for command in COMMANDS:
        assert run(folder / command, "--version", cwd=tmp_path) == f"{command} {__version__}\n"
        assert f"usage: {command} " in run(folder / command, "--help", cwd=tmp_path).lower()
    assert end(folder / "pallas-registry", "serve", cwd=tmp_path).returncode == 2
    for line, needed in LACKING[extra].items():
        command, *options = line.split()
        done = end(folder / command, *options, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
        assert done.stderr.startswith(f"{command}: needs the extra `{needed}` (not installed: ")
        assert done.stderr.endswith(f"): pip install 'pallas-kit[{needed}]'\n")
    for line in {"pallas", "pallas --agent a", "pallas-registry"} - set(LACKING[extra]):
        command, *options = line.split()
        done = end(folder / command, *options, cwd=tmp_path)
        assert (done.returncode, done.stderr.splitlines()[0]) == (2, "agents.yaml: no such file [PAL001]"), done.stderr
