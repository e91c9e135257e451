"""The lock of servers on stdio: what it covers, and when it is out of date."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pallas_contract.fleet.fastagent import Command
from pallas_contract.problems import Problem, Where
from pallas_gen.dependencies import server_locks
from tests.problem_lines import without_codes

FETCH = {"requirements": ["mcp-server-fetch==1 --hash=sha256:aa"]}
NOTES = {"package-lock": {"name": "server", "packages": {"": {"dependencies": {"@s/n": "^1"}}}}}
LOCKS = {"python mcp-server-fetch": json.dumps(FETCH), "npm @s/n": json.dumps(NOTES)}
FLEET = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101}\n"
CONFIG = "mcp: {servers: {f: {command: uvx, args: [mcp-server-fetch%s]}, n: {command: npx, args: ['-y', '@s/n']}}}\n"


def command(line: str) -> Command:
    program, *arguments = line.split()
    return Command(program, Where("fastagent.config.yaml", 3, 5), tuple(arguments))


def locked(folder: Path, **more: object) -> Path:
    """Write a lock of both servers, and return its path."""
    path = folder / server_locks.FILE
    servers = {"python mcp-server-fetch": FETCH, "npm @s/n": NOTES, **more}
    path.write_text(json.dumps({"version": 1, "servers": servers}))
    return path


def test_each_package_is_locked_once_whoever_starts_it() -> None:
    lines = ["uvx b", "npx -y a", "uv tool run b --x", "python own.py", "uvx --index-url x c", "npx ${NAME}"]
    assert [package.key for package in server_locks.packages(map(command, lines))] == ["npm a", "python b"]


def test_what_is_written_is_read_again_and_holds_what_is_wanted_alone() -> None:
    wanted = server_locks.packages([command("uvx mcp-server-fetch")])
    text = server_locks.render(LOCKS, wanted)
    assert text.endswith("\n}\n")
    problems: list[Problem] = []
    assert server_locks.parse(text, problems) == {"python mcp-server-fetch": LOCKS["python mcp-server-fetch"]}
    assert problems == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "<<<<<<< ours",
        "[" * 100_000,
        '{"version": 2, "servers": {}}',
        '{"version": 1}',
        '{"version": 1, "servers": {"python a": {"requirements": "a==1"}}}',
        '{"version": 1, "servers": {"npm a": {"requirements": []}}}',
        '{"version": 1, "servers": {"gem a": {"requirements": []}}}',
    ],
)
def test_a_file_that_is_no_such_lock_is_refused(text: str) -> None:
    problems: list[Problem] = []
    assert server_locks.parse(text, problems) == {}
    assert without_codes(str(problems[0])).startswith(
        "servers.lock.json: is no lock of servers that this version of the kit reads\n"
    )
    assert "`pallas-gen lock`" in problems[0].hint


def test_a_server_that_is_not_in_it_is_named_with_its_place() -> None:
    commands = {"f": command("uvx mcp-server-fetch"), "t": command("uvx time@2"), "own": command("python a.py")}
    (problem,) = server_locks.missing(LOCKS, commands)
    message = "servers.lock.json has no `time==2`, which this server starts: the lock is out of date"
    assert without_codes(str(problem)).startswith(
        f"fastagent.config.yaml:3:5: {message}\n    `pallas-gen lock` writes it anew"
    )


@pytest.mark.parametrize("verb", ["validate", "compose", "build"])
def test_every_command_refuses_a_lock_that_is_out_of_date(verb: str, make, run) -> None:
    path = make(FLEET, fastagent__config__yaml=CONFIG % "@2")
    locked(path.parent)
    code, _, err = run(verb, "-f", str(path))
    assert code == 2
    assert "mcp.servers.f.command: servers.lock.json has no `mcp-server-fetch==2`" in err


def test_the_lock_goes_into_the_image_and_changes_its_name(make, plan) -> None:
    config = {"fastagent__config__yaml": CONFIG % ""}
    loose = plan(FLEET, **config).built[0]
    lock = locked(make(FLEET).parent, **{"python gone": FETCH})
    first = plan(FLEET, **config).built[0]
    assert [key for key, _ in first.recipe.locks] == ["npm @s/n", "python mcp-server-fetch"]
    entries = {entry["key"]: entry for entry in json.loads(first.recipe.server_list())["packages"]}
    assert entries["python mcp-server-fetch"]["lock"] == FETCH
    assert entries["npm @s/n"]["lock"] == NOTES
    lock.write_text(lock.read_text().replace("sha256:aa", "sha256:bb"))
    assert len({loose.image, first.image, plan(FLEET, **config).built[0].image}) == 3
