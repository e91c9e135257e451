"""Both files and the code of a project, checked in one go; the rules have their own tests."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pallas_contract.problems import Refused
from pallas_contract.project import code, load
from tests.examples import hostile

FILES = {
    "agents.yaml": "name: x\nagents:\n  scout: {module: scout, port: 8101}\n",
    "scout.py": 'from fast_agent import FastAgent\nfast = FastAgent("x")\n'
    '@fast.agent(name="scout", servers=["wether"])\nasync def scout(): ...\n',
    "fastagent.config.yaml": "default_model: passthrough\nopenai: {api_key: sk-proj-a1B2c3D4e5F6g7H8}\n"
    "mcp: {servers: {weather: {url: 'http://w.example/mcp', transport: htp}}}\n",
    ".env": "FOO\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path / "agents.yaml"


def test_one_run_names_the_problems_of_all_files(project: Path) -> None:
    written, problems = load.check(project, {})
    assert list(written.fleet.agents) == ["scout"]
    assert [(str(problem.where), problem.level) for problem in problems] == [
        ("fastagent.config.yaml:3:56 mcp.servers.weather.transport", "error"),
        ("fastagent.config.yaml:2:10 openai.api_key", "error"),
        ("scout.py:3:36", "error"),
        (".env:1:1", "warning"),
    ]
    _, allowed = load.check(project, {}, allow_plain_secrets=True)
    assert [problem.level for problem in allowed if problem.where.field == "openai.api_key"] == ["warning"]


def test_a_file_that_makes_no_fleet_is_refused_with_what_is_wrong_beside_it(project: Path) -> None:
    project.write_text("name: x\nagents: {scout: {}}\n")
    with pytest.raises(Refused) as refused:
        load.check(project, {})
    assert {problem.where.file for problem in refused.value.problems} == {"agents.yaml", "fastagent.config.yaml"}


FLEET = """\
name: x
version: "1"
registry_port: 8100
registry: {probe_interval: 5.0}
networks: {mode: isolated, pool: 10.213.0.0/16}
agents:
  scout: {module: scout, port: 8101, replicas: 1, depends_on: [notes], publish: false, egress: true,
    labels: {a: b}, env: {A: b}, icons: [{src: "http://x/i.png"}], resources: {memory: 1Gi, cpus: 0.5}}
services:
  notes: {module: notes, port: 8102}
"""
CONFIG = "mcp: {servers: {weather: {url: 'http://w.example/mcp'}}}\nmodel_capabilities: {context_window: 9}\nzzz: 1\n"
SCALARS = st.one_of(
    st.sampled_from(["~", "", "!", "=", "<<", ".inf", "-.inf", ".nan", "1e400", "on", "'\\u0000'", '"\\0"', "*a"]),
    st.builds(
        lambda sign, base, digit, count: sign + base + digit * count,
        st.sampled_from(["", "-", "+"]),
        st.sampled_from(["", "0", "0x", "0b", "0o", "1", "1.", ".", "1e+", "1."]),
        st.sampled_from(["0", "1", "7", "9", "f", "_", "1_", ":1", ":59", ":1.5"]),
        st.sampled_from([0, 1, 2, 63, 400, 6000]),
    ),
    st.builds(
        "{:04}-{:02}-{:02} {:02}:59:59 {}".format,
        st.sampled_from([0, 1, 2026, 9999]),
        st.integers(0, 13),
        st.sampled_from([0, 1, 29, 31]),
        st.sampled_from([0, 24]),
        st.sampled_from(["", "Z", "+23:59", "-23:59", "-99:99"]),
    ),
)
"""As YAML 1.1 spells numbers and moments, also such as no text, no calendar or no processor can have."""
PLACE = re.compile(r"((?<=: )|(?<=\[))[^ {\[\n][^,}\]\n]*(?=[,}\]\n])")
PLACES = [(name, match.span()) for name, text in (("a", FLEET), ("f", CONFIG)) for match in PLACE.finditer(text)]


@given(place=st.sampled_from(PLACES), scalar=SCALARS)
@pytest.mark.fuzz
@hostile(150, fuzz=10_000)
@example(PLACES[7], "0x" + "f" * 6000)  # these ended a registry's reading, or `pallas`, with a traceback
@example(PLACES[7], "1" + ":1" * 400 + ".5")
@example(PLACES[-2], "0x" + "f" * 6000)
def test_any_scalar_at_any_place_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, place: tuple[str, tuple[int, int]], scalar: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    name, (start, end) = place
    texts = {"a": FLEET, "f": CONFIG}
    texts[name] = texts[name][:start] + scalar + texts[name][end:]
    (folder / "agents.yaml").write_text(texts["a"])
    (folder / "fastagent.config.yaml").write_text(texts["f"])
    try:
        _, problems = load.check(folder / "agents.yaml", {})
    except Refused as refused:
        problems = refused.problems
        assert problems
    assert sum(len(str(problem)) for problem in problems) < 10_000


def test_a_number_that_agents_could_not_write_down_is_an_error_before_they_start(project: Path) -> None:
    project.with_name("fastagent.config.yaml").write_text(f"zzz: 0x{'f' * 6000}\n")
    said = [problem for problem in load.check(project, {})[1] if problem.where.field == "zzz"]
    assert [(problem.level, problem.message) for problem in said] == [
        ("error", "is a number of more than 64 characters")
    ]


def test_a_lock_of_no_use_is_a_warning_before_a_registry_has_it(project: Path) -> None:
    file = project.with_name("agents.lock")
    for content in ("<<<<<<< ours", '{"lock": 2}'):
        file.write_text(content)
        (problem,) = [problem for problem in load.check(project, {})[1] if problem.where.file == "agents.lock"]
        assert (problem.level, problem.message) == ("warning", "is no lock of a fleet")
    file.write_text('{"lock": 1, "name": "x", "version": "1", "agents": {}}')
    assert "agents.lock" not in {problem.where.file for problem in load.check(project, {})[1]}
    file.unlink()
    file.mkdir()
    (problem,) = [problem for problem in load.check(project, {})[1] if problem.where.file == "agents.lock"]
    assert (problem.level, problem.message) == ("warning", "cannot be read: is a directory")


@pytest.mark.parametrize(
    ("script", "uses", "expected"),
    [
        ("def (\n", True, ["srv/notes.py:1:5: is not Python: invalid syntax"]),
        ("def (\n", False, ["warning: srv/notes.py:1:5: is not Python: invalid syntax"]),
        ("import pandas\n", True, ["warning: srv/notes.py:1:1: imports `pandas`, which the agent image does not have"]),
        ("import six\nimport beside\nimport scout\nimport mcp\n", True, []),
        (
            "from mcp.server.fastmcp import FastMCP\n",
            True,
            ["warning: srv/notes.py:1:1: imports `mcp.server.fastmcp`, which version 2 of the MCP SDK"],
        ),
    ],
)
def test_the_script_of_a_server_is_read_as_code(project: Path, script: str, uses: bool, expected: list[str]) -> None:
    folder = project.parent
    entry = "notes: {command: python, args: [srv/notes.py]}, none: {command: sh, args: [-c, x]}"
    (folder / "fastagent.config.yaml").write_text(f"default_model: passthrough\nmcp: {{servers: {{{entry}}}}}\n")
    (folder / "scout.py").write_text(FILES["scout.py"].replace("wether", "notes" if uses else "none"))
    (folder / ".env").unlink()
    (folder / "srv").mkdir()
    (folder / "srv" / "notes.py").write_text(script)
    (folder / "srv" / "beside.py").touch()
    written, _ = load.read(project, {}, allow_plain_secrets=False)
    definitions = code.definitions(written.fleet, written.text_of)
    problems = list(map(str, load.problems_of_code(written, definitions, {"": frozenset({"six"})})))
    assert [problem[: len(start)] for problem, start in zip(problems, expected, strict=True)] == expected


@pytest.mark.parametrize(
    ("program", "script", "expected"),
    [
        ("python", "import pandas\n", ["srv/notes.py:1:1: imports `pandas`, which is not installed here"]),
        (
            "python",
            "from mcp.server.fastmcp import FastMCP\n",
            ["srv/notes.py:1:1: imports `mcp.server.fastmcp`, which version 2 of the MCP SDK here does not have"],
        ),
        ("python", "import six\nimport beside\nimport scout\nimport mcp.server\n", []),
        ("other/python", "import pandas\n", []),
    ],
)
def test_the_script_of_a_server_that_is_a_process_here_is_told_what_it_lacks(
    project: Path, monkeypatch: pytest.MonkeyPatch, program: str, script: str, expected: list[str]
) -> None:
    """Of the Python of another environment nobody knows the packages; the agent starts without the server."""
    folder = project.parent
    (folder / "other").mkdir()
    (folder / "other" / "python").symlink_to(sys.executable)
    (folder / "srv").mkdir()
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    entry = f"notes: {{command: {program}, args: [srv/notes.py]}}"
    (folder / "fastagent.config.yaml").write_text(f"default_model: passthrough\nmcp: {{servers: {{{entry}}}}}\n")
    (folder / "scout.py").write_text(FILES["scout.py"].replace("wether", "notes"))
    (folder / ".env").unlink()
    (folder / "srv" / "notes.py").write_text(script)
    (folder / "srv" / "beside.py").touch()
    _, problems = load.check(project, {}, elsewhere={"six", "mcp", "fast_agent"}.__contains__)
    assert [problem.level for problem in problems] == ["warning"] * len(expected)
    assert [str(problem)[9 : 9 + len(start)] for problem, start in zip(problems, expected, strict=True)] == expected


@pytest.mark.parametrize(
    ("config", "environ", "containers", "processes"),
    [
        ("{}", {}, "warning", "error"),
        ("{}", {"FAST_AGENT_MODEL": "passthrough"}, "warning", ""),
        ("defaultmodel: passthrough", {}, "error", "error"),
        ("model: passthrough", {}, "error", "error"),
        ("default_model: passthrough", {}, "", ""),
    ],
)
def test_containers_may_get_their_model_where_they_are_deployed(
    project: Path, config: str, environ: dict[str, str], *, containers: str, processes: str
) -> None:
    (project.parent / "fastagent.config.yaml").write_text(f"{config}\n")
    written, _ = load.read(project, environ, allow_plain_secrets=False)
    definitions = code.definitions(written.fleet, written.text_of)
    in_containers = load.problems_of_code(written, definitions, None)
    for expected, problems in ((containers, in_containers), (processes, load.check(project, environ)[1])):
        levels = [problem.level for problem in problems if "names no model" in problem.message]
        assert levels == ([expected] if expected else [])


LARGE = b"#" * ((1 << 20) + 1)


@pytest.mark.parametrize("uses", [True, False])
@pytest.mark.parametrize(
    ("scripts", "expected"),
    [
        ({"srv/notes.py": "# coding: latin-1\nname = 'caf\xe9'\n".encode("latin-1")}, []),
        ({"srv/notes.py": b"name = '\xe9'\n"}, ["warning: srv/notes.py: is not UTF-8 text (byte 8) [PAL001]"]),
        ({"srv/notes.py": LARGE}, ["warning: srv/notes.py: is larger than 1 MiB [PAL001]"]),
        ({"srv/notes.py": b"import beside\nimport top\n", "srv/beside.py": LARGE, "top.py": b"\xff"}, []),
    ],
)
def test_a_script_that_cannot_be_read_here_refuses_nothing_and_hides_nothing(
    project: Path, scripts: dict[str, bytes], *, uses: bool, expected: list[str]
) -> None:
    folder = project.parent
    servers = "{notes: {command: python, args: [srv/notes.py]}, none: {command: sh}}"
    (folder / "fastagent.config.yaml").write_text(f"default_model: passthrough\nmcp: {{servers: {servers}}}\n")
    (folder / "scout.py").write_text(FILES["scout.py"].replace("wether", "notes" if uses else "none"))
    (folder / "srv").mkdir()
    for name, content in scripts.items():
        (folder / name).write_bytes(content)
    written, _ = load.read(project, {}, allow_plain_secrets=False)
    definitions = code.definitions(written.fleet, written.text_of)
    problems = list(map(str, load.problems_of_code(written, definitions, {"": frozenset()})))
    assert [problem for problem in problems if ".env" not in problem] == expected


def test_a_configuration_that_cannot_be_read_hides_nothing_else(project: Path) -> None:
    (project.parent / "fastagent.config.yaml").write_text("mcp: [\n")
    (project.parent / "scout.py").write_text("def (\n")
    _, problems = load.check(project, {})
    assert {problem.where.file for problem in problems} == {"fastagent.config.yaml", "scout.py", ".env"}
