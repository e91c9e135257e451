"""The first fleet of the README and the page of a first agent, by somebody who has the wheel, a folder and Docker.

No file of this repository is there. The blocks of both are run as they stand, but for ports, names and the wheel in the
place of the index.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.documentation import blocks
from tests.installed import ROOT, build_wheel, installed_with
from tests.ports import free_ports, pool

from . import release
from .canaries import Canaries

pytestmark = [pytest.mark.docker, pytest.mark.beside]

IMAGES = "pallas-stranger/{name}:test"
BUILT = [IMAGES.format(name=name) for name in ("pallas-agent", "pallas-registry")]
NAMESPACE = "pallas-stranger"
HANDED_DOWN = ("PYTHON", "PALLAS", "PYTEST", "VIRTUAL_ENV", "COMPOSE")
"""Beginnings of variables by which a process of the tests would know of the repository."""
MODULES = (
    "pallas_contract",
    "pallas_gen",
    "pallas_service",
    "pallas_registry",
    "pallas_agent_runtime",
    "pallas_testing",
)


@dataclass(frozen=True)
class Readme:
    """The blocks of commands of `Your first fleet`, on ports of our own, and where agent and registry are then."""

    write: str
    start: str
    call: str
    contain: str
    install: str
    agent: str
    registry: str

    @classmethod
    def read(cls, ports: list[int]) -> Readme:
        """Read them; `ports` are those of the agent and of the registry."""
        texts = [block.text for block in blocks.of("first-fleet")]
        head = f"name: stranger-{os.getpid()}\nregistry_port: {ports[1]}\nnetworks: {{pool: {pool()}}}\nagents:\n"
        assert texts[0].count("name: hello\nagents:\n") == 1
        texts[0] = texts[0].replace("name: hello\nagents:\n", head)
        commands = (text.replace("24201", str(ports[0])).replace("24200", str(ports[1])) for text in texts)
        return cls(*commands, *(f"http://localhost:{port}" for port in ports))


@dataclass(frozen=True)
class Stranger:
    """Somebody with an environment of their own, in a folder of their own, and secrets wherever one has them."""

    binaries: Path
    folder: Path
    readme: Readme
    canaries: Canaries

    @property
    def project(self) -> Path:
        return self.folder / "hello"

    def environment(self) -> dict[str, str]:
        paths = [path for path in os.environ["PATH"].split(os.pathsep) if not Path(path).is_relative_to(ROOT)]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(HANDED_DOWN)}
        kept |= {name: self.canaries.plant(f"${name}") for name in ("OPENAI_API_KEY", "DATABASE_PASSWORD")}
        return {**kept, "PATH": os.pathsep.join([str(self.binaries), *paths]), "PALLAS_IMAGES": IMAGES}

    @contextmanager
    def pallas(self, command: str, folder: Path) -> Iterator[None]:
        """Run a fleet as processes, from when all are up to Ctrl-C."""
        with subprocess.Popen(
            command.split(),
            cwd=folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None
            lines = []
            for line in iter(process.stdout.readline, ""):
                lines.append(line)
                if "all up; Ctrl-C stops all" in line:
                    break
            try:
                yield
            finally:
                process.send_signal(signal.SIGINT)
                printed = "".join([*lines, process.stdout.read()])
        assert process.returncode == 0, printed
        assert "all up; Ctrl-C stops all" in printed
        assert self.canaries.in_text(printed) == set()

    def end(self, commands: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run commands in a shell, by default in the project."""
        return subprocess.run(
            ["sh", "-ec", commands],
            check=False,
            cwd=folder or self.project,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=400,
        )

    def run(self, commands: str, folder: Path | None = None) -> str:
        """Return what commands print that end well."""
        done = self.end(commands, folder)
        assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr


LYING_THERE = {
    "id_rsa": "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n",
    "backup.sql": "INSERT INTO users VALUES ('{}');\n",
    ".git/config": '[remote "origin"]\n\turl = https://me:{}@git.example/fleet\n',
    ".npmrc": "//npm.example/:_authToken={}\n",
    "pip.conf": "[global]\nindex-url = https://me:{}@index.example/simple\n",
    "agents/.env": "NESTED={}\n",
}
"""Secrets of a person beside the fleet file, which it does not name: text by path, with a gap for the canary."""
USED = {
    ".env": "SOME_API_KEY={}\n",
    "fastagent.secrets.yaml": "anthropic: {{api_key: {}}}\n",
    "secrets/service.txt": "{}\n",
}
"""Secrets that the agent gets."""


def plant(project: Path, canaries: Canaries, files: Mapping[str, str]) -> None:
    """Write files with secrets into the project."""
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.format(canaries.plant(name)))


@pytest.fixture
def secrets_in_use(stranger: Stranger) -> Iterator[None]:
    """Give the agent secrets, for one test: on Kubernetes the README's fleet has none."""
    fleet_file = stranger.project / "agents.yaml"
    text = fleet_file.read_text()
    fleet_file.write_text(f"{text}defaults: {{secrets: {{SERVICE_TOKEN: {{file: secrets/service.txt}}}}}}\n")
    plant(stranger.project, stranger.canaries, USED)
    yield
    fleet_file.write_text(text)
    for name in USED:
        (stranger.project / name).unlink()


def shown(stranger: Stranger) -> Iterator[tuple[str, str]]:
    """Yield everything that is shown of the running fleet: what docker knows of it, what it serves, how it refuses."""
    containers = stranger.run("docker compose ps --all --quiet").split()
    assert len(containers) == 2
    for command in ("docker inspect", "docker logs", "docker top"):
        for name in containers:
            yield command, stranger.run(f"{command} {name}")
    for command in (
        "cat compose.yaml",
        "docker compose config",
        "docker compose logs",
        "pallas-gen validate",
        "pallas-gen explain network",
    ):
        yield command, stranger.run(command)
    agent, registry = stranger.readme.agent, stranger.readme.registry
    documents = ("/", "/openapi.json", "/v0.1/servers", "/.well-known/mcp/server.json", "/.well-known/ai-catalog.json")
    pages = ("/metrics", "/healthz", "/nowhere")
    for url in (*(f"{registry}{path}" for path in (*documents, *pages)), *(f"{agent}{path}" for path in pages)):
        yield url, fetch(url)
    for url in (f"{agent}/mcp", f"{registry}/mcp"):
        yield f"{url}: broken JSON", fetch(url, b'{"jsonrpc": ')
        yield f"{url}: unknown method", fetch(url, b'{"jsonrpc": "2.0", "id": 1, "method": "nothing"}')


def fetch(url: str, body: bytes | None = None) -> str:
    """Return head and body of an answer, an error's too."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as answer:
            return f"{answer.headers}{answer.read().decode()}"
    except urllib.error.HTTPError as error:
        return f"{error.headers}{error.read().decode()}"


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stranger]:
    """Install the wheel, and write the files as the README says."""
    folder = tmp_path_factory.mktemp("stranger")
    binaries = installed_with("all", build_wheel(folder), folder)
    person = Stranger(binaries, folder, Readme.read(free_ports(2)), Canaries(secrets.token_hex(6)))
    assert "agents.yaml: 1 agent, no errors\n" in person.run(person.readme.write, folder)
    plant(person.project, person.canaries, LYING_THERE)
    yield person
    subprocess.run(["docker", "rmi", "--force", *BUILT], check=False, capture_output=True)


@pytest.fixture(scope="module")
def images(stranger: Stranger) -> None:
    """Build them anew; layers that are here already are taken as they are."""
    subprocess.run(["docker", "rmi", "--force", *BUILT], check=False, capture_output=True)
    printed = stranger.run("pallas-gen build")
    assert printed.splitlines()[-2:] == [f"{name} is here" for name in BUILT]


def test_no_module_comes_from_the_repository(stranger: Stranger) -> None:
    code = f"import {', '.join(MODULES)}; print(*[m.__file__ for m in ({', '.join(MODULES)})], sep=chr(10))"
    files = stranger.run(f'python -I -c "{code}"').splitlines()
    assert len(files) == len(MODULES)
    assert all(Path(file).is_relative_to(stranger.folder / "venv") for file in files)


def test_as_processes(stranger: Stranger, secrets_in_use: None) -> None:
    with stranger.pallas(stranger.readme.start, stranger.project):
        answer = stranger.end(stranger.readme.call)
    assert answer.stdout.startswith("Good morning\n"), answer.stderr
    assert stranger.canaries.in_text(answer.stdout + answer.stderr) == set()


def test_a_first_agent_in_full(stranger: Stranger) -> None:
    """The page, with the commands alone on PATH, as `uv tool install` and `pipx install` leave them."""
    ports = dict(zip(("24500", "24501", "24502", "24503"), map(str, free_ports(4)), strict=True))
    folder = stranger.folder / "desk"
    for name, text in blocks.files("first-agent").items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(re.sub(r"2450\d", lambda match: ports[match[0]], text))
    validate, start, call, printed = (block.text for block in blocks.of("first-agent") if not block.file)
    assert "agents.yaml: 2 agents, no errors\n" in stranger.run(validate, folder)
    commands = folder / "bin"
    commands.mkdir()
    for name in ("pallas", "pallas-gen"):
        (commands / name).symlink_to(stranger.binaries / name)
    tool = replace(stranger, binaries=commands)
    with tool.pallas(start, folder):
        answer = tool.end(call, folder)
    assert answer.stdout == printed, answer.stderr


def test_in_containers(stranger: Stranger, images: None, secrets_in_use: None) -> None:
    commands, down, _ = stranger.readme.contain.partition("docker compose down")
    assert down
    canaries = stranger.canaries
    try:
        texts = [("the commands", stranger.run(commands))]
        answer = stranger.run(stranger.readme.call)
        assert "Good morning\n" in answer
        assert '"io.pallas-kit/health":{"status":"ok"}' in answer
        inside = stranger.run("docker compose exec -T hello cat /run/secrets/SERVICE_TOKEN /run/secrets/.env")
        assert canaries.in_text(inside) == {"secrets/service.txt", ".env"}, "they are in use, and would be found"
        texts += [("the call", answer), *shown(stranger)]
        assert {where: places for where, text in texts if (places := canaries.in_text(text))} == {}
        assert "compose is the plan, in all of its 2 workloads" in stranger.run("pallas-gen verify --target compose")
        assert "containers is the plan, in all of its 2 workloads" in stranger.run("pallas-gen verify --running")
        limits = "deploy: {resources: {limits: {memory: 900M}}}"
        override = f"services: {{hello: {{privileged: true, volumes: ['/host:/x'], {limits}}}}}"
        (stranger.project / "compose.override.yaml").write_text(override)
        stranger.run("docker compose up --no-start --no-deps hello")
        found = stranger.end("pallas-gen verify --running").stderr
        assert "hello.privileges: has privileged, " in found
        assert "hello.mounts: has /x from /host (writable), unlike the plan" in found
        assert "hello.memory: is 900 MiB, and 512 MiB in the plan" in found
    finally:
        stranger.run(f"{down} --volumes")
    assert stranger.run("docker compose ps --all --quiet") == ""
    assert {name: places for name in BUILT if (places := canaries.in_image(name))} == {}


@pytest.fixture
def kubernetes(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run it for one test: it ends with the tests that have it all along, and no module after this one keeps it up."""
    with release.cluster(root, release.shared(tmp_path_factory)):
        yield


@pytest.mark.cluster
def test_in_kubernetes(stranger: Stranger, images: None, kubernetes: None) -> None:
    """The images come to the nodes by the cluster's own tool, in the place of `build --push` or `--load kind`."""
    write, _, rest = stranger.readme.install.partition("pallas-gen build --push")
    install = rest.partition("\n")[2].replace("--namespace hello", f"--namespace {NAMESPACE}")
    release.load(*BUILT)
    stranger.run(re.sub(r"^export PALLAS_IMAGES.*\n", "", write))
    with release.namespace(NAMESPACE):
        fleet = release.Release(stranger.project / "agents.yaml", NAMESPACE)
        try:
            stranger.run(install)
            call = stranger.readme.call.replace("call hello", f"call {fleet.url('hello')}/mcp")
            call = call.replace("pallas status", f"pallas status --registry {fleet.url('registry')}")
            call = call.replace(stranger.readme.registry, fleet.url("registry"))
            # a pod that took its time was looked for in vain: its name is asked for again after an interval
            seen = f"pallas status --registry {fleet.url('registry')}"
            release.until(lambda: stranger.end(seen).returncode == 0, "hello is seen to be well", within=120)
            answer = stranger.run(call)
            assert "Good morning\n" in answer
            assert '"io.pallas-kit/health":{"status":"ok"}' in answer
            compared = stranger.run(f"pallas-gen verify --running --namespace {NAMESPACE}")
            assert f"namespace {NAMESPACE} is the plan, in all of its 2 workloads" in compared
            stranger.run(f"helm uninstall hello --namespace {NAMESPACE} --wait")
        finally:
            fleet.close()
