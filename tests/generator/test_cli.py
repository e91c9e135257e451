"""`pallas-gen` as a user meets it: files, exit codes, warnings."""

from __future__ import annotations

import errno
import json
import stat
from pathlib import Path

import pytest
from typer.main import get_command

from pallas_contract.documents.reason import Reason
from pallas_contract.probe import probe
from pallas_contract.probe.probe import Result
from pallas_gen import cli

ONE = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101}\n"


def test_writes_beside_the_fleet_file_and_again_changes_nothing(make, run) -> None:
    path = make(ONE)
    written = path.parent / "compose.yaml"
    assert run("compose", "-f", str(path))[0] == 0
    before = written.stat()
    code, out, _ = run("compose", "-f", str(path))
    assert (code, out.split()[0]) == (0, "unchanged")
    assert written.stat().st_ino == before.st_ino
    assert stat.S_IMODE(before.st_mode) == 0o644
    assert sorted(item.name for item in path.parent.iterdir()) == ["agents", "agents.yaml", "compose.yaml"]


def test_another_folder_points_back_to_the_project(make, run, tmp_path: Path) -> None:
    path = make(ONE)
    target = tmp_path / "deploy" / "here"
    assert run("compose", "-f", str(path), "-o", str(target))[0] == 0
    assert "source: ../.." in (target / "compose.yaml").read_text().replace('"', "")


def test_earlier_output_changes_nothing(make, run, tmp_path: Path) -> None:
    path = make(ONE)

    def written() -> dict[str, bytes]:
        for verb, folder in (
            ("compose", "deploy/here"),
            ("helm", "charts/a"),
            ("observability", "deploy"),
            ("image", "."),
        ):
            assert run(verb, "-f", str(path), "-o", str(tmp_path / folder))[0] == 0
        return {str(file): file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}

    before = written()
    (tmp_path / "deploy" / "here" / "compose.override.yaml").write_text("services: {}\n")
    assert {name: text for name, text in written().items() if "override" not in name} == before
    (tmp_path / "deploy" / "data.txt").touch()
    assert "data.txt" not in (tmp_path / "deploy" / "here" / "compose.yaml").read_text()


def test_a_chart_and_its_observability_share_a_folder(make, run) -> None:
    """Either deleted what the other one had written, as stale."""
    path = make(ONE)
    folder = path.parent / "both"
    for _ in range(2):
        for command in ("helm", "observability"):
            assert run(command, "-f", str(path), "-o", str(folder))[0] == 0
    assert (folder / "Chart.yaml").is_file()
    assert (folder / "alerts.yaml").is_file()
    for command in ("helm", "observability"):
        assert run(command, "-f", str(path), "-o", str(folder), "--check")[0] == 0


def test_check_and_diff_write_nothing(make, run) -> None:
    path = make(ONE)
    assert run("compose", "-f", str(path), "--check")[0] == 1
    code, out, _ = run("compose", "-f", str(path), "--diff")
    assert code == 1
    assert "+name: x" in out
    assert not (path.parent / "compose.yaml").exists()
    run("compose", "-f", str(path))
    assert run("compose", "-f", str(path), "--check")[0] == 0


@pytest.mark.parametrize(
    "edit", [lambda text: "mine\n", lambda text: text.replace("8101", "8102"), lambda text: text + "#"]
)
def test_a_file_of_the_user_is_never_overwritten_unasked(make, run, edit) -> None:
    path = make(ONE)
    run("compose", "-f", str(path))
    written = path.parent / "compose.yaml"
    written.write_text(edit(written.read_text()))
    before = written.read_bytes()
    code, _, err = run("compose", "-f", str(path))
    assert code == 2
    assert "exists and is not as pallas-gen left it" in err
    assert written.read_bytes() == before
    assert run("compose", "-f", str(path), "--force")[0] == 0
    assert written.read_bytes() != before


def test_a_bad_file_leaves_the_old_output_untouched(make, run) -> None:
    path = make(ONE)
    run("compose", "-f", str(path))
    before = (path.parent / "compose.yaml").read_bytes()
    path.write_text("name: [")
    assert run("compose", "-f", str(path))[0] == 2
    assert (path.parent / "compose.yaml").read_bytes() == before


def test_an_unwritable_folder_is_the_worlds_fault(make, run, tmp_path: Path) -> None:
    path = make(ONE)
    (tmp_path / "file").touch()
    code, _, err = run("compose", "-f", str(path), "-o", str(tmp_path / "file" / "sub"))
    assert (code, err) == (1, f"{tmp_path / 'file' / 'sub'}: not a directory\n")


def test_a_full_disk_is_named_with_the_file(make, run, monkeypatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = make(ONE)
    monkeypatch.setattr("os.fsync", full)
    code, _, err = run("compose", "-f", str(path))
    assert (code, err) == (1, f"{path.parent / 'compose.yaml'}: no space left on device\n")
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["agents", "agents.yaml"]


def test_a_missing_fleet_file(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run("compose")
    assert code == 2
    assert err.startswith("agents.yaml: no such file")


def test_pallas_agents_config_names_the_file(make, run, monkeypatch) -> None:
    path = make(ONE)
    monkeypatch.setenv("PALLAS_AGENTS_CONFIG", str(path))
    assert run("validate")[:2] == (0, f"{path}: 1 agent, no errors\n")


def test_warnings_are_told_and_do_not_stop(make, run) -> None:
    path = make(
        "host: puck.example.com\n" + ONE.replace("8101}", "8101, replicas: 2, instance_scope: request}"),
        fastagent__config__yaml="mcp: {servers: {scout: {url: 'http://localhost:1/mcp'}, argos: {url: 'http://localhost:2/'}}}",
        fastagent__secrets__yaml='openai: {api_key: "${OPENAI_API_KEY}"}\n',
    )
    (path.parent / "fastagent.secrets.yaml").chmod(0o600)
    code, _, err = run("validate", "-f", str(path))
    assert code == 0
    assert [line.split(": ", 2)[-1] for line in err.splitlines() if line.startswith("warning: ")] == [
        "clients are told to call puck.example.com, but ports are published on 127.0.0.1 only",
        "one host port cannot be shared by 2 containers: it is not published by compose",
        "this URL is not used: `scout` is part of the fleet",
        "in a container localhost is the container itself",
        "${OPENAI_API_KEY} is not set anywhere",
        "fastagent.secrets.yaml cannot be read by the containers' user 10001",
    ]


def test_image_bakes_the_project_without_its_secrets(make, run) -> None:
    text = ONE.replace(
        "8101}", "8101, secrets: {K: {file: keys/one}, L: {file: agents/../keys/two}}, files: [agents/, env, 'we*']}"
    )
    path = make(text, fastagent__secrets__yaml="a: 1\n", env="")
    (path.parent / "keys").mkdir()
    for name in ("keys/one", "keys/two", ".env", "we[i]rd $x.txt"):
        (path.parent / name).touch()
    assert run("image", "-f", str(path))[0] == 0
    assert (path.parent / "Dockerfile.fleet").read_text().splitlines()[2:] == [
        'COPY ["agents.yaml", "/project/agents.yaml"]',
        'COPY ["agents/", "/project/agents/"]',
        'COPY ["env", "/project/env"]',
        'COPY ["we[[]i]rd \\$x.txt", "/project/we[i]rd \\$x.txt"]',
    ]


def test_the_dockerfile_of_another_folder_is_built_with_the_project(make, run, tmp_path: Path) -> None:
    assert run("image", "-f", str(make(ONE)), "-o", str(tmp_path / "deploy"))[0] == 0
    head = (tmp_path / "deploy" / "Dockerfile.fleet").read_text().splitlines()[0]
    assert "`docker build -f Dockerfile.fleet -t my-fleet:1 ..`" in head


def test_a_secret_among_the_code_is_refused(make, run) -> None:
    path = make(ONE.replace("8101}", "8101, files: [agents], secrets: {K: {file: agents/key}}}"))
    (path.parent / "agents" / "key").touch()
    code, _, err = run("compose", "-f", str(path))
    assert code == 2
    assert "agents/key lies in `agents/`, which a container gets as a whole" in err


def test_what_the_containers_user_cannot_read_is_told(make, run) -> None:
    path = make(ONE)
    (path.parent / "agents").chmod(0o700)
    path.parent.chmod(0o700)
    err = run("validate", "-f", str(path))[2]
    assert err.count("cannot be read by the containers' user 10001") == 2
    assert "`chmod o+rx agents`" in err
    assert "10001" not in run("helm", "-f", str(path))[2]  # what is in the files is delivered, whoever may read them


def test_no_warning_without_its_reason(make, run) -> None:
    """A server given by a command has no URL, and a registry that is published is no trouble."""
    registration = "registry: {publish: true, registration: {tokens: {partner: {file: token.txt}}}}\n"
    path = make(
        ONE + registration,
        fastagent__config__yaml="mcp: {servers: {scout: {command: python, args: [x.py]}, files: {command: python3}}}\n",
        token__txt="x\n",
    )
    code, _, err = run("validate", "-f", str(path))
    assert (code, err) == (0, "")
    path.write_text((ONE + registration).replace("publish: true", "publish: false"))
    assert "only containers of this fleet reach the registry" in run("validate", "-f", str(path))[2]


def test_explain_network_prints_the_graph(make, run) -> None:
    path = make(ONE.replace("8101}", "8101, depends_on: [other]}") + "  other: {module: agents.other, port: 8102}\n")
    code, out, err = run("explain", "network", "-f", str(path))
    assert (code, err) == (0, "")
    assert out.endswith("\n\neverything else is refused\n")
    assert "scout      ->  other     depends_on\n" in out


def test_schema_prints_the_committed_schema(run, root: Path) -> None:
    code, out, _ = run("schema")
    assert (code, out) == (0, (root / "schema" / "agents.schema.json").read_text())
    assert json.loads(out)["title"] == "agents.yaml"


def test_the_command_after_helm_has_a_name_that_helm_takes(make, run, tmp_path: Path) -> None:
    path = make(ONE.replace("name: x", "name: My fleet 2.0"))
    out = run("helm", "-f", str(path))[1]
    assert "\nhelm upgrade --install my-fleet-2-0 " in out
    assert "--namespace my-fleet-2-0 --create-namespace\n" in out


def test_probe_says_what_is_wrong(run) -> None:
    code, out, _ = run("probe", "http://127.0.0.1:1/mcp")
    assert code == 1
    assert out.startswith("error")
    assert "connection refused" in out
    assert run("probe", "ftp://x/")[0] == 2
    assert "is no http(s) URL: write http://localhost:24101/mcp" in run("probe", "localhost:24101/mcp")[2]


def test_usage_errors_are_input_errors(run) -> None:
    assert run("compose", "--nope")[0] == 2
    assert run("--version")[0] == 0


@pytest.mark.parametrize("content", [b"", b"a\0b", b"\xff\xfe", "ü".encode(), b"two\nlines"])
def test_a_token_file_without_a_token_is_said_before_anything_is_asked(tmp_path: Path, content: bytes, run) -> None:
    (tmp_path / "token").write_bytes(content)
    code, _, err = run("probe", "http://127.0.0.1:9/mcp", "--token-file", str(tmp_path / "token"))
    assert code == 2
    assert "holds no token" in err


def test_the_fleet_file_is_an_argument_an_option_or_its_folder(make, run, monkeypatch) -> None:
    path = make(ONE)
    monkeypatch.chdir(path.parent.parent)
    folder = path.parent.name
    line = f"{folder}/agents.yaml: 1 agent, no errors\n"
    for words in ([folder], ["-f", folder], [f"{folder}/agents.yaml"], ["--file", f"{folder}/agents.yaml"]):
        assert run("validate", *words) == (0, line, "")
    code, out, err = run("validate", "a.yaml", "-f", "b.yaml")
    assert (code, out) == (2, "")
    assert "names a.yaml, and -f names b.yaml: give one of the two" in " ".join(err.split())
    assert run("graph", folder)[0] == run("explain", "network", folder)[0] == run("compose", folder, "--stdout")[0] == 0


def test_problems_as_one_document(make, run, monkeypatch) -> None:
    path = make(ONE.replace("8101", "80"))
    monkeypatch.chdir(path.parent.parent)
    code, out, err = run("validate", path.parent.name, "--format", "json")
    assert (code, err) == (0, "")
    (entry,) = json.loads(out)["problems"]
    assert (entry["code"], entry["level"], entry["line"]) == ("PAL108", "warning", 3)
    assert entry["file"] == f"{path.parent.name}/agents.yaml"
    path.write_text(ONE.replace("port", "zzz"))
    code, out, err = run("validate", path.parent.name, "--format", "sarif")
    assert (code, err) == (2, "")
    rules = [result["ruleId"] for result in json.loads(out)["runs"][0]["results"]]
    assert sorted(rules) == ["PAL101", "PAL102"]
    code, out, err = run("verify", path.parent.name, "--format", "json")
    assert (code, json.loads(out)["errors"], err) == (2, 2, "")
    path.write_text(ONE)
    code, out, err = run("verify", path.parent.name, "--format", "json")
    assert (code, [entry["code"] for entry in json.loads(out)["problems"]], err) == (1, ["PAL603"], "")


def test_what_the_world_breaks_is_no_document(make, run, monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error", "agents.yaml")

    path = make(ONE)
    monkeypatch.setattr("pallas_gen.project.load.load", full)
    assert run("validate", str(path), "--format", "json") == (1, "", "agents.yaml: input/output error\n")


def test_quiet_prints_errors_alone_and_verbose_where_they_are_explained(make, run) -> None:
    path = make(ONE.replace("8101", "80"))
    assert run("validate", str(path), "-q") == (0, "", "")
    assert "" not in run("validate", str(path))[1:]
    assert "\n    see docs/problems.md#pal108-low-port\n" in run("validate", str(path), "--verbose")[2]
    path.write_text(ONE.replace("port: 8101", "zzz: 1"))
    code, out, err = run("compose", str(path), "--quiet")
    assert (code, out) == (2, "")
    assert "is required" in err


def test_help_of_each_command_has_an_example(run) -> None:
    commands = get_command(cli.app).commands  # type: ignore[attr-defined]
    for name in commands.keys() - {"audit", "explain"}:
        assert f"Example: pallas-gen {name}" in run(name, "--help")[1]
    assert "Example: pallas-gen audit verify" in run("audit", "verify", "--help")[1]
    assert "Example: pallas-gen explain network" in run("explain", "network", "--help")[1]


def test_nothing_is_coloured(make, run, monkeypatch) -> None:
    """Nowhere: `NO_COLOR` has nothing to forbid."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    path = make(ONE.replace("port", "prt"))
    assert "\x1b" not in "".join(map(str, (*run("validate", str(path)), *run("--help"), *run("graph", str(path)))))


@pytest.mark.parametrize(
    ("images", "built"),
    [("", True), ("image: {agent: 'mine:1', registry: 'theirs:2'}\n", False), ("image: {agent: 'mine:1'}\n", True)],
)
@pytest.mark.parametrize(("verb", "last"), [("compose", "docker compose"), ("helm", "helm upgrade")])
def test_a_build_is_the_next_step_where_there_is_something_to_build(
    make, run, verb: str, last: str, *, images: str, built: bool
) -> None:
    path = make(images + ONE)
    code, out, _ = run(verb, "-f", str(path))
    (step,) = (line for line in out.splitlines() if line.startswith("next: "))
    assert code == 0
    assert ("pallas-gen build" in step) is built
    assert last in out
    assert step.startswith("next: pallas-gen build" if built else f"next: {last}")


def test_a_mistyped_command_is_answered_with_the_nearest(run) -> None:
    for words, nearest in ((["compsoe"], "compose"), (["explain", "netwrok"], "network")):
        code, _, err = run(*words)
        assert (code, f"Did you mean '{nearest}'?" in err) == (2, True)


@pytest.mark.parametrize("status", [401, 403])
def test_a_probe_says_that_a_token_is_refused(status: int, tmp_path: Path, run, monkeypatch) -> None:
    """Without a token the answer is that it asks for one, which is no failure."""

    async def refused(*_: object, **__: object) -> Result:
        reason = Reason("Unauthorized", f"reachable, needs credentials (HTTP {status})")
        return Result("unauthenticated", reason, status=status)

    monkeypatch.setattr(probe, "probe", refused)
    monkeypatch.chdir(tmp_path)
    Path("bad.token").write_text("canary\n")
    url = "http://127.0.0.1:9/mcp"
    assert run("probe", url)[:2] == (0, f"unauthenticated  0 ms  reachable, needs credentials (HTTP {status})\n")
    code, out, err = run("probe", url, "--token-file", "bad.token")
    assert (code, out, err) == (
        1,
        f"unauthenticated  0 ms  does not accept the token in bad.token (HTTP {status})\n",
        "",
    )


def test_a_probe_of_another_path_asks_whether_it_is_meant(run, monkeypatch) -> None:
    async def absent(*_: object, **__: object) -> Result:
        return Result("error", Reason("HttpError", "HTTP 404"))

    monkeypatch.setattr(probe, "probe", absent)
    assert "HTTP 404; is the path /mcp right?\n" in run("probe", "http://127.0.0.1:9/")[1]
    assert "is the path" not in run("probe", "http://127.0.0.1:9/mcp")[1]
