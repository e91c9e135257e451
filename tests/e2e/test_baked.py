"""MCP servers of PyPI and npm, and the packages of a project, in the image of a fleet: they start without a network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pip._internal.models.index import PyPI

from pallas_contract import __version__
from pallas_gen.images import pip_settings

from .canaries import Canaries

pytestmark = [pytest.mark.docker, pytest.mark.beside]

FLEET = """\
name: baked by a test
image: {packages: [git]}
agents:
  scout: {card: scout.md, port: 24951}
"""
SERVERS = {
    "fetch": ["uvx", "mcp-server-fetch"],
    "time": ["uvx", "mcp-server-time", "--local-timezone", "UTC"],
    "git": ["uv", "tool", "run", "mcp-server-git"],
    "everything": ["npx", "-y", "@modelcontextprotocol/server-everything"],
    "memory": ["npx", "-y", "@modelcontextprotocol/server-memory"],
}
LIST_TOOLS = """
import asyncio, json, sys, humanize
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def tools(line):
    async with stdio_client(StdioServerParameters(command=line[0], args=line[1:])) as streams:
        async with ClientSession(*streams) as session:
            await session.initialize()
            return [tool.name for tool in (await session.list_tools()).tools]

async def main():
    servers = json.loads(sys.argv[1])
    answers = await asyncio.gather(*map(tools, servers.values()))
    print(json.dumps(dict(zip(servers, answers))))

asyncio.run(main())
"""
INSTALLED = """
import json, re
from importlib import metadata
from pathlib import Path

root = Path("/opt/servers")
libraries = map(str, root.glob("[0-9]*/lib/python*/site-packages"))
names = [(one.metadata["Name"], one.version) for path in libraries for one in metadata.distributions(path=[path])]
names = [(re.sub("[-_.]+", "-", name).lower(), version) for name, version in names]
for tree in root.glob("[0-9]*/node_modules/.package-lock.json"):
    for path in json.loads(tree.read_text())["packages"]:
        package = json.loads((tree.parent.parent / path / "package.json").read_text())
        names.append((path.rpartition("node_modules/")[2], package["version"]))
print(json.dumps(["==".join(name) for name in names]))
"""
SEED = "5f0c9a71be24"
"""The same in each run: a layer that docker has kept was built from the same words, and by the same steps."""
HARDENED = ["--read-only", "--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges:true", "--init"]
HARDENED += ["--no-healthcheck", "--user=10001:10001", "--tmpfs=/tmp:size=64m,mode=1777,noexec,nosuid,nodev"]


def run(*command: str, folder: Path, env: Mapping[str, str] | None = None) -> str:
    environment = {**os.environ, **(env or {})}
    done = subprocess.run(
        command, check=False, cwd=folder, env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return done.stdout


@dataclass(frozen=True)
class Built:
    """The image of the fleet, and `name==version` of all that its lock names."""

    name: str
    locked: set[str]
    canaries: Canaries
    printed: str
    """By `lock` and `build`, and the lock itself."""


def credentials(folder: Path, canaries: Canaries) -> dict[str, str]:
    """Return the settings of somebody whose indexes want a password, which those of this machine pass over."""
    index = urlsplit(pip_settings.read().get("index-url") or PyPI.simple_url)
    npmrc = folder / "npmrc"
    settings = Path(os.environ.get("NPM_CONFIG_USERCONFIG") or Path.home() / ".npmrc")
    text = settings.read_text() if settings.is_file() else ""
    npmrc.write_text(f"{text}\n//127.0.0.1:1/:_authToken={canaries.plant('.npmrc')}\n")
    host = index.netloc.rpartition("@")[2]
    password = f"me:{canaries.plant('$PIP_INDEX_URL')}"
    return {
        "PIP_INDEX_URL": index._replace(netloc=f"{password}@{host}").geturl(),
        "NPM_CONFIG_USERCONFIG": str(npmrc),
        "OPENAI_API_KEY": canaries.plant("$OPENAI_API_KEY"),
    }


def locked(folder: Path) -> set[str]:
    """Return what the lock of servers names, as `name==version`."""
    packages = set()
    for entry in json.loads((folder / "servers.lock.json").read_text())["servers"].values():
        packages |= {line.partition(" ")[0] for line in entry.get("requirements", ())}
        for path, package in entry.get("package-lock", {"packages": {}})["packages"].items():
            assert "resolved" not in package, "the address of somebody's registry"
            if path:
                packages.add(f"{path.rpartition('node_modules/')[2]}=={package['version']}")
    return packages


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    """Lock the servers, and build the image of the fleet, from layers that are here where nothing changed."""
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "agents.yaml").write_text(FLEET)
    canaries = Canaries(SEED)
    (folder / "requirements.txt").write_text("humanize\nfast-agent-mcp\n")
    for name in (".env", "id_rsa", "backup.sql"):
        (folder / name).write_text(f"KEY={canaries.plant(name)}\n")
    (folder / "scout.md").write_text(f"---\ntype: agent\nname: scout\nservers: [{', '.join(SERVERS)}]\n---\nHi\n")
    servers = {name: {"command": line[0], "args": line[1:]} for name, line in SERVERS.items()}
    config = {"default_model": "passthrough", "mcp": {"servers": servers}}
    (folder / "fastagent.config.yaml").write_text(json.dumps(config))
    gen = [sys.executable, "-P", "-m", "pallas_gen"]
    settings = credentials(folder, canaries)
    printed = run(*gen, "lock", folder=folder, env=settings)
    assert "wrote servers.lock.json\n" in printed
    printed += (folder / "servers.lock.json").read_text()
    name = run(*gen, "build", "--print", folder=folder).split("--tag ")[-1].split()[0]
    subprocess.run(["docker", "rmi", "--force", name], check=False, capture_output=True)
    printed += run(*gen, "build", folder=folder, env=settings)
    assert f"building {name}\n" in printed
    yield Built(name, locked(folder), canaries, printed)
    subprocess.run(["docker", "rmi", "--force", name], check=False, capture_output=True)


def test_servers_of_pypi_and_npm_start_in_a_hardened_container_without_a_network(built: Built, tmp_path: Path) -> None:
    command = ["docker", "run", "--rm", *HARDENED, built.name, "-c", LIST_TOOLS, json.dumps(SERVERS)]
    tools = json.loads(run(*command, folder=tmp_path))
    first = {"fetch": "fetch", "time": "get_current_time", "git": "git_status", "memory": "create_entities"}
    assert {name: tools[name][0] for name in first} == first
    assert "echo" in tools["everything"]


def test_the_image_holds_what_the_lock_names_and_nothing_else(built: Built, tmp_path: Path) -> None:
    command = ["docker", "run", "--rm", *HARDENED, built.name, "-c", INSTALLED]
    installed = set(json.loads(run(*command, folder=tmp_path)))
    assert {name.partition("==")[0] for name in installed} >= {"mcp-server-fetch", "zod"}
    assert installed - built.locked == set()


def test_no_secret_of_who_builds_is_in_a_layer_or_in_what_is_printed(built: Built) -> None:
    assert built.canaries.in_text(built.printed) == set()
    assert built.canaries.in_image(built.name, without=[f"pallas-agent:{__version__}"]) == {}


def test_nothing_else_is_fetched_and_no_setting_of_the_build_is_in_it(built: Built, tmp_path: Path) -> None:
    command = ["docker", "run", "--rm", *HARDENED, "--entrypoint=uvx", built.name, "mcp-server-sqlite"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == "uvx: `uvx mcp-server-sqlite` is not in this image: run `pallas-gen build` for a new one\n"
    files = [
        "docker",
        "run",
        "--rm",
        "--entrypoint=sh",
        built.name,
        "-c",
        "cat /etc/pip.conf /root/.npmrc; ls -A /build",
    ]
    done = subprocess.run(files, check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout == ""
