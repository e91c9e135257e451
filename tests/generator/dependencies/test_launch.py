"""Command lines of MCP servers on stdio: the package they start, and the program that stands in for uvx and npx."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pallas_gen.dependencies import launch
from pallas_gen.dependencies.launch import Package


@pytest.mark.parametrize(
    ("line", "package", "rest"),
    [
        ("uvx mcp-server-fetch", Package("python", "mcp-server-fetch", ""), ""),
        ("uvx mcp-server-time --local-timezone UTC", Package("python", "mcp-server-time", ""), "--local-timezone UTC"),
        ("uvx mcp-server-git@2025.1.14 -v", Package("python", "mcp-server-git==2025.1.14", ""), "-v"),
        ("uvx mcp-server-git@latest", Package("python", "mcp-server-git", ""), ""),
        ("uvx -q --python 3.12 x==1", Package("python", "x==1", ""), ""),
        ("uvx --from a[b]==2 program x", Package("python", "a[b]==2", "program"), "x"),
        ("uvx --from=git+https://h/a@v1 program", Package("python", "git+https://h/a@v1", "program"), ""),
        ("uvx --with b --with=c a", Package("python", "a", "", ("b", "c")), ""),
        ("uv tool run a b", Package("python", "a", ""), "b"),
        ("pipx run --spec a==1 p", Package("python", "a==1", "p"), ""),
        ("npx -y @scope/server-x /tmp", Package("npm", "@scope/server-x", ""), "/tmp"),
        ("npx --yes -- server@1.2.3", Package("npm", "server@1.2.3", ""), ""),
        ("npx -p @scope/a@1 program x", Package("npm", "@scope/a@1", "program"), "x"),
        ("bunx a", Package("npm", "a", ""), ""),
    ],
)
def test_a_package_and_the_arguments_of_its_program(line: str, package: Package, rest: str) -> None:
    program, *arguments = line.split()
    assert launch.parse(program, arguments) == (package, rest.split())


@pytest.mark.parametrize(
    "line", ["uvx", "uvx --from a", "uvx --index-url x a", "uv run a.py", "npx -c x", "python a.py"]
)
def test_any_other_line_is_none_of_a_package(line: str) -> None:
    program, *arguments = line.split()
    assert launch.parse(program, arguments) is None


@pytest.mark.parametrize(
    ("package", "name"),
    [
        (Package("python", "a-b[x]==1", ""), "a-b"),
        (Package("python", "a_b>=1,<2", ""), "a_b"),
        (Package("python", "a @ git+https://h/a", ""), "a"),
        (Package("npm", "@scope/server@1.2", ""), "@scope/server"),
        (Package("npm", "server", ""), "server"),
    ],
)
def test_the_name_of_a_package(package: Package, name: str) -> None:
    assert launch.package_name(package) == name


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Bake one server, and return the list of programs that are started."""
    started: list[list[str]] = []
    (tmp_path / "commands.json").write_text(json.dumps({"python a": ["/servers/a"]}))
    monkeypatch.setattr(launch, "COMMANDS", str(tmp_path / "commands.json"))
    monkeypatch.setattr(os, "execv", lambda path, command: started.append([path, *command]))
    return started


def test_a_baked_server_is_started_with_its_arguments(commands: list[list[str]]) -> None:
    launch.main("uvx", ["a", "--x"])
    assert commands == [["/servers/a", "/servers/a", "--x"]]


@pytest.mark.parametrize("arguments", [["b"], ["--index-url", "x", "a"]])
def test_what_is_not_baked_is_named_with_what_to_do(
    arguments: list[str], commands: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        launch.main("uvx", arguments)
    assert (ended.value.code, commands) == (127, [])
    line = f"uvx: `uvx {' '.join(arguments)}` is not in this image: run `pallas-gen build` for a new one\n"
    assert capsys.readouterr().err == line
