"""Every fenced block of the pages is run, read or shown for a reason: what its marker says decides."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pallas_contract.problems import Refused
from pallas_gen.project import load
from tests.documentation import commands, fleets
from tests.documentation.blocks import BLOCKS, ROOT, Block, of

RUN = {
    "first-fleet": "tests/e2e/test_stranger.py",
    "first-agent": "tests/e2e/test_stranger.py",
    "first-day": "tests/e2e/test_commands.py",
    "models": "tests/agent_runtime/test_models_page.py",
    "own-server": "tests/packaging/test_docs.py",
    "open-beneath": "tests/service/test_open_beneath.py",
    "registration": "tests/registry/mcp/test_registration.py",
    "daedalus": "tests/e2e/daedalus.py",
    "fleet-test": "tests/testing/test_plugin.py",
    "scripted-model": "tests/testing/model/test_docs.py",
    "offline": "tests/documentation/test_shell.py",
    "conformance": "tests/testing/conformance/test_command.py",
    "daedalus-asked": "tests/e2e/daedalus.py",
    "break-something": "tests/e2e/test_compose.py",
    "mcp-routes": "tests/chart/test_edge.py",
    "missing-extra": "tests/packaging/test_wheel.py",
}
"""Scenarios whose blocks are run as they stand, by where."""
READ = {
    "commands": "programs, verbs and options are there; such commands are run by the end-to-end tests",
    "fleet": "a fleet file, or a part of one: read as `pallas-gen validate` does",
    "config": "a configuration of fast-agent: read in the same way",
    "override": "changes to compose.yaml: merged by compose",
}
"""Scenarios whose blocks are checked in this module, and how."""
NOT_RUN = {
    "CONTRIBUTING.md": "they make and run these tests",
    "README.md": "`pip` would ask an index that has the kit, the wheel in tests/e2e/test_stranger.py; `pallas "
    "init` and `up` in tests/e2e/test_commands.py, `make demo` in tests/e2e/test_demo.py, and `make test` is this one",
    "docs/access.md": "asks an agent on a fixed port; others in tests/agent_runtime/access/test_protected_agents.py",
    "docs/air-gap.md": "for a site of the reader's; the same in tests/generator/commands/test_bundle_fleet.py",
    "docs/ci.md": "for a release and a registry of images of the reader's; each verb has its tests in tests/generator",
    "docs/commands.md": "call a fleet on fixed ports; verbs in tests/e2e/test_local.py, `--format` in tests/generator",
    "docs/daedalus.md": "installs, and starts `make demo`; the same program in tests/e2e/daedalus.py",
    "docs/gateway.md": "asks a gateway on a fixed port; the same call in tests/gateway/own/test_server.py",
    "docs/install.md": "they would ask an index that has the kit; the wheel in tests/e2e/test_stranger.py",
    "docs/kubernetes.md": "for a release of the reader's; such options in tests/e2e/test_cluster_options.py",
    "docs/release.md": "`gh` asks GitHub for what its workflow signed, `make audit` a service; `make release` "
    "in a clone in tests/tools/supply_chain",
    "docs/secrets.md": "for a release of the reader's; such options in tests/e2e/test_cluster_options.py",
    "docs/scripted-model.md": "serve until told to stop, or record a provider; both in tests/testing/model",
    "docs/testing.md": "runs the reader's own tests; those of the page in tests/testing/test_plugin.py",
    "docs/tutorial.md": "fixed ports; the same project on free ones in tests/e2e/test_commands.py",
    "docs/upgrade.md": "`pip` would ask an index; a later version in tests/e2e/test_{compose,cluster_guarded}.py",
    "examples/01-hello/README.md": "fixed ports; the examples on free ones in tests/e2e",
    "examples/02-pallas/README.md": "the same",
    "examples/03-data-pool/README.md": "the same; the Inspector that npx starts in tests/e2e/test_conformance.py",
    "examples/04-percolate/README.md": "fixed ports, and `pip` would ask an index; on free ones in tests/e2e",
    "examples/05-atlas/README.md": "fixed ports; on free ones in tests/e2e",
}
"""Pages with blocks of `commands`, which are looked up and not run: why, and where something like them is run."""
SHOWN = {"drawing": "boxes and arrows for people: neither commands nor a file"}
"""Blocks that are only shown, and why."""
NOT_ASKED = {
    "gh": "not among the tools of development; .github/workflows/release.yml publishes with it",
    "gzip": "each system has another one",
    "gunzip": "the same",
    "npx": "comes with Node; tests/e2e/test_conformance.py runs the Inspector",
    "pipx": "not among the tools of development; what it makes of a wheel is tried in tests/packaging/test_wheel.py",
    "psql": "not among the tools of development; tests/gateway/audit/test_shared_trail.py reads the same way",
    "tar": "each system has another one",
}
"""Programs whose options nobody looks up here, and why."""
ASKED = {
    "curl": (),
    "docker": pytest.mark.docker,
    "helm": pytest.mark.helm,
    "kubectl": pytest.mark.cluster,
    "openssl": (),
    "pip": (),
    "sha256sum": (),
    "uv": (),
}
"""Programs whose own help is asked for the options."""
SHELL = [block for block in BLOCKS if block.language == "sh"]
PYTHON = [block for block in BLOCKS if block.language == "python"]

each_shell = pytest.mark.parametrize("block", SHELL, ids=str)


def test_every_block_has_a_scenario_and_every_scenario_a_block() -> None:
    scenarios = {*RUN, *READ, *SHOWN}
    unknown = [f"{block}: no `<!-- test: SCENARIO -->` above it, or an unknown one" for block in BLOCKS]
    assert [text for text, block in zip(unknown, BLOCKS, strict=True) if block.scenario not in scenarios] == []
    assert scenarios - {block.scenario for block in BLOCKS} == set()
    assert len(BLOCKS) > 50


def test_who_looks_a_command_up_only_says_why() -> None:
    assert {block.page for block in of("commands")} == set(NOT_RUN)


def test_only_drawings_are_shown_only() -> None:
    assert [str(block) for block in BLOCKS if block.scenario in SHOWN and block.language] == []


@pytest.mark.parametrize("scenario", RUN)
def test_who_runs_a_scenario_asks_for_it(scenario: str) -> None:
    assert f'"{scenario}"' in (ROOT / RUN[scenario]).read_text()


@each_shell
def test_the_shell_can_read_it(block: Block) -> None:
    done = subprocess.run(["sh", "-n"], check=False, input=block.text, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""


@each_shell
def test_its_commands_verbs_and_options_are_there(block: Block) -> None:
    words = commands.simple(block.text)
    assert words
    assert [problem for command in words for problem in commands.problems(command)] == []
    code = [text for program in ("python", '"$python"') for text in commands.heredocs(block.text, program)]
    assert [name for text in code for name in commands.imports(text)] == []


@pytest.mark.parametrize("program", [pytest.param(name, marks=marks) for name, marks in ASKED.items()])
def test_options_of_other_programs_are_in_their_help(program: str) -> None:
    words = [command for block in SHELL for command in commands.simple(block.text)]
    asked = [command for command in words if commands.program(command) == program]
    assert asked, "no page names it any more"
    assert [problem for command in asked for problem in commands.absent_options(command)] == []


def test_every_program_has_somebody_who_looks_at_its_options() -> None:
    programs = {commands.program(command) for block in SHELL for command in commands.simple(block.text)}
    plain = {"cat", "cut", "grep", "head", "kill", "mkdir", "printf", *commands.BUILT_IN}
    assert programs - plain == {"pallas", "pallas-gen", "pallas-testing", "python", "make", *ASKED, *NOT_ASKED}


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_what_it_imports_is_there(block: Block) -> None:
    assert list(commands.imports(block.text)) == []


@pytest.mark.parametrize("block", of("fleet"), ids=str)
def test_the_kit_takes_the_fleet(block: Block, tmp_path: Path) -> None:
    fleets.check(tmp_path, block.text)


def doubts(loaded: load.Loaded) -> list[str]:
    """Return what the kit warns of in the configuration."""
    return [str(problem) for problem in loaded.warnings if problem.where.file == "fastagent.config.yaml"]


@pytest.mark.parametrize("block", of("config"), ids=str)
def test_the_kit_takes_the_configuration(block: Block, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("")
    assert doubts(fleets.check(tmp_path, "", block.text)) == []


def test_a_key_that_is_none_is_refused(tmp_path: Path) -> None:
    """The stand-ins around a block excuse nothing in it."""
    with pytest.raises(Refused, match=r"agents.yaml:1:\d+ telemetri: unknown key"):
        fleets.check(tmp_path, "telemetri: {sample: 1}\n")
    (doubt,) = doubts(fleets.check(tmp_path, "", "mpc: {servers: {}}\n"))
    assert "mpc" in doubt


@pytest.mark.docker
@pytest.mark.parametrize("block", of("override"), ids=str)
def test_compose_merges_the_override(block: Block, tmp_path: Path) -> None:
    fleet = "".join(other.text for other in of("fleet") if other.page == block.page)
    fleets.check(tmp_path, fleet)
    (tmp_path / "compose.override.yaml").write_text(block.text)
    generator = Path(shutil.which("pallas-gen") or "pallas-gen")
    for command in ([str(generator), "compose"], ["docker", "compose", "config", "--quiet"]):
        done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("a -b 'c d' # no\ne", [["a", "-b", "c d"], ["e"]]),
        ("X=1 a && b | c > f", [["a"], ["b"], ["c"]]),
        ("cat > f <<'END'\nno # such\nEND\na \\\n  -b", [["cat"], ["a", "-b"]]),
        ('p=$(h -n "$(c)") ; "$p" -', [["h", "-n", "$(c)"], ["$p", "-"]]),
        ("curl -d '{\n# \"x\"\n}' u", [["curl", "-d", '{\n# "x"\n}', "u"]]),
    ],
)
def test_a_script_is_split_as_a_shell_does(script: str, words: list[list[str]]) -> None:
    assert commands.simple(script) == words


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("pallas-gen compos", "no command pallas-gen compos"),
        ("pallas-gen compose --chek", "pallas-gen compose: No such option: --chek"),
        ("pallas-gen explain nets", "no command pallas-gen explain nets"),
        ("pallas-gen schema agents.yaml", "pallas-gen schema: takes no argument agents.yaml"),
        ("pallas --chek", "pallas: no option --chek"),
        ("pallas strat", "pallas: does not take strat"),
        ("pallas init --exmaple hello", "pallas: no option --exmaple"),
        ("make demos", "no verb demos"),
        ("python -m pallas_testing.dedalus", "no module pallas_testing.dedalus"),
        ("no-such-program", "no program no-such-program is here"),
    ],
)
def test_what_is_not_there_is_named(line: str, problem: str) -> None:
    (words,) = commands.simple(line)
    (first, *_) = commands.problems(words)
    assert first.startswith(problem)


def test_an_option_that_another_program_does_not_have_is_named() -> None:
    assert list(commands.absent_options(["pip", "install", "--no-such"])) == ["pip install: no option --no-such"]
    assert list(commands.absent_options(["curl", "-sS", "x"])) == []


def test_a_program_that_is_not_on_this_machine_is_named() -> None:
    (problem,) = commands.absent_options(["no-such-program", "--help"])
    assert problem.startswith("no-such-program is not on this machine, ")
