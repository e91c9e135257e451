"""`pallas --agent NAME`: what is wrong is said in one line, before anything expensive is done."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from pallas_agent_runtime import cli, log_levels, serve
from pallas_contract import extras
from pallas_service import deferred_models
from pallas_service.http import sockets as http_sockets
from tests.problem_lines import without_codes

FLEET = "name: demo\nagents:\n  jarvis: {module: agents.jarvis, port: 8201}\n"


@pytest.fixture(autouse=True)
def _restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No trace of the command stays in this process."""
    environ, handler = dict(os.environ), signal.getsignal(signal.SIGTERM)
    for key in [key for key in environ if key.startswith(("PALLAS_", "OPENAI_"))]:
        monkeypatch.delenv(key)
    monkeypatch.chdir(tmp_path)
    levels = {logging.getLogger(name): logging.getLogger(name).level for name in ("", *log_levels._LEVELS)}
    handlers = logging.getLogger().handlers[:]
    yield
    deferred_models.as_usual()
    structlog.reset_defaults()
    logging.getLogger().handlers[:] = handlers
    for logger, level in levels.items():
        logger.setLevel(level)
    signal.signal(signal.SIGTERM, handler)
    os.environ.clear()
    os.environ.update(environ)


@pytest.mark.parametrize("option", [["--help"], ["--config", "fleet.yaml", "-h"]])
def test_help_names_the_fleet_it_would_run(
    option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / option[1 if len(option) > 1 else 0].replace("--help", "agents.yaml")).write_text(FLEET)
    with pytest.raises(SystemExit) as ended:
        cli.main(option)
    assert ended.value.code == 0
    assert "is the fleet demo, with the agents jarvis." in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("text", ["name: [", "- a", "agents: 3\nname: x", None])
def test_help_is_help_whatever_the_file_is(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (tmp_path / "agents.yaml").write_text(text)
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    assert "is the fleet" not in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "extra"), [([], "local"), (["--agent", "jarvis"], "agent")])
def test_an_extra_that_is_not_installed_is_named(
    arguments: list[str], extra: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(extras, "missing", lambda *asked: [f"{name}-package" for name in asked])
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err.startswith(f"pallas: needs the extra `{extra}` (not installed: agent-package")


def test_a_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--agent", "jarvis"]) == 2
    assert without_codes(capsys.readouterr().err).startswith("agents.yaml: no such file\n")


@pytest.mark.parametrize("way", ["option", "variable"])
def test_the_file_is_named_by_option_or_variable(
    way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other.yaml").write_text(FLEET)
    monkeypatch.setenv("PALLAS_AGENTS_CONFIG", "other.yaml" if way == "variable" else "wrong.yaml")
    assert cli.main(["--agent", "jarvi", *(["--config", "other.yaml"] if way == "option" else [])]) == 2
    said = "other.yaml:2:1 agents: there is no agent `jarvi`\n    did you mean `jarvis`?\n"
    assert without_codes(capsys.readouterr().err) == said


def test_all_problems_of_the_configuration_are_said_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "agents.yaml").write_text(FLEET)
    (tmp_path / "fastagent.config.yaml").write_text("default_model: [openai]\nopenai: {base_url: [x]}\n")
    (tmp_path / "fastagent.secrets.yaml").write_text("openai: {api_key: 1}\n")
    assert cli.main(["--agent", "jarvis"]) == 2
    problems = capsys.readouterr().err
    assert "fastagent.config.yaml:1:1 default_model: must be text" in problems
    assert "fastagent.config.yaml:2:10 openai.base_url: must be text" in problems
    assert "fastagent.secrets.yaml:1:10 openai.api_key: must be text" in problems


@pytest.mark.parametrize("arguments", [[], ["--agent", "scout"]], ids=["fleet", "agent"])
@pytest.mark.parametrize("case", ["access_audience", "access_forward"])
def test_what_the_generator_refuses_about_access_is_refused_here_in_the_same_words(
    case: str, arguments: list[str], root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = root / "tests" / "invalid" / case
    errors = re.findall(r"^agents.yaml:.*\n    .*\n", (folder / "expected.txt").read_text(), re.MULTILINE)
    assert cli.main([*arguments, "--config", str(folder / "agents.yaml")]) == 2
    assert len(errors) >= 2
    said = capsys.readouterr().err
    assert re.findall(r"^agents.yaml:(?!.*there is no file).*\n    .*\n", said, re.MULTILINE) == errors


def test_an_address_in_use_is_found_before_fast_agent_is_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pallas_agent_runtime.engine", None)
    (tmp_path / "agents.yaml").write_text(FLEET)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("PALLAS_BIND", f"127.0.0.1:{port}")
        assert cli.main(["--agent", "jarvis"]) == 1
    assert capsys.readouterr().err == f"pallas: cannot listen on 127.0.0.1:{port}: address already in use\n"


def test_an_address_that_is_not_ours(toolkit: Any) -> None:
    with (
        pytest.raises(http_sockets.CannotListen, match=r"cannot listen on 203\.0\.113\.1:80: "),
        http_sockets.bound("203.0.113.1", 80),
    ):
        pass
    with (
        pytest.raises(http_sockets.CannotListen, match=r"cannot listen on \[2001:db8::1\]:80: "),
        http_sockets.bound("2001:db8::1", 80),
    ):
        pass


def test_nobody_is_kept_waiting_by_an_address_that_does_not_answer_yet(toolkit: Any) -> None:
    port = toolkit.free_port()
    with http_sockets.bound("127.0.0.1", port), pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_names_of_the_host_replace_the_address_and_admit_no_other(
    toolkit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"from.a": ["127.0.0.2"], "from.b": ["127.0.0.3", "203.0.113.1"]}
    rows = {name: [(0, 0, 0, "", (address, 0)) for address in found] for name, found in known.items()}
    real = socket.getaddrinfo
    monkeypatch.setattr(
        http_sockets.socket,
        "getaddrinfo",
        lambda name, *rest, **more: rows[name] if name in rows else real(name, *rest, **more),
    )
    with http_sockets.bound("0.0.0.0", toolkit.free_port(), ["from.a", "from.b"]) as sockets:
        assert [one.getsockname()[0] for one in sockets] == ["127.0.0.1", "127.0.0.2", "127.0.0.3"]


def test_an_address_lost_among_other_tasks_is_still_told() -> None:
    lost = http_sockets.CannotListen("cannot listen on x")
    group = BaseExceptionGroup("tasks", [ValueError(), BaseExceptionGroup("more", [lost])])
    assert serve._cannot_listen(group) is lost
    assert serve._cannot_listen(BaseExceptionGroup("tasks", [ValueError()])) is None


def test_a_name_that_is_not_known_is_told(toolkit: Any) -> None:
    said = r"cannot listen on from\.nobody\.invalid:\d+: the name is not known"
    with (
        pytest.raises(http_sockets.CannotListen, match=said),
        http_sockets.bound("0.0.0.0", toolkit.free_port(), ["from.nobody.invalid"]),
    ):
        pass


def test_the_private_home_is_only_for_this_user_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAST_AGENT_HOME", "before")
    with serve.home({"openai": {"api_key": "ä"}}) as path:
        assert os.environ["FAST_AGENT_HOME"] == str(path.parent)
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert "ä" in path.read_text(encoding="utf-8")
    assert not path.parent.exists()


def test_the_private_home_lies_where_pallas_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAST_AGENT_HOME", "before")
    with serve.home({}, str(tmp_path)) as path:
        assert path.parent.parent == tmp_path
    with serve.home({}, str(tmp_path / "gone")) as path:
        assert path.is_file()
    assert list(tmp_path.iterdir()) == []


def test_without_an_agent_the_fleet_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pallas_agent_runtime.local import supervisor  # noqa: PLC0415

    seen: list[Path] = []
    monkeypatch.setattr(supervisor, "main", lambda path, **_: seen.append(path) or 7)
    assert cli.main(["--config", "x.yaml"]) == 7
    assert seen == [Path("x.yaml")]


def test_with_an_agent_it_is_served_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the registry nor what it depends on is started, or waited for."""
    from pallas_agent_runtime.local import supervisor  # noqa: PLC0415

    served: list[str] = []
    monkeypatch.setattr(serve, "run", lambda prepared: served.append(prepared.settings.name))
    monkeypatch.setattr(supervisor, "main", lambda *_, **__: pytest.fail("it started the fleet"))
    (tmp_path / "agents.yaml").write_text(
        FLEET.replace("8201", "8201, depends_on: [research]") + "  research: {module: agents.research, port: 8250}\n"
    )
    assert cli.main(["--agent", "jarvis"]) == 0
    assert served == ["jarvis"]


@pytest.mark.parametrize("options", [[], ["--check"]], ids=["serve", "check"])
def test_an_agent_by_hand_refuses_a_secret_in_plain_text(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "run", lambda _: None)
    (tmp_path / "agents.yaml").write_text(FLEET)
    (tmp_path / "fastagent.config.yaml").write_text("openai: {api_key: sk-canary-1234}\n")
    assert cli.main([*options, "--agent", "jarvis"]) == 2
    refusal = without_codes(capsys.readouterr().err)
    assert refusal.startswith("fastagent.config.yaml:1:10 openai.api_key: a secret in plain text, which ")
    assert "canary" not in refusal


@pytest.mark.parametrize(
    ("options", "placement", "warned"),
    [(["--allow-plain-secrets"], "", True), ([], "local", False), ([], "container", False)],
    ids=["allowed", "of pallas", "in a container"],
)
def test_a_secret_in_plain_text_is_allowed_by_hand_or_by_what_started_the_fleet(
    options: list[str],
    placement: str,
    warned: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serve, "run", lambda _: None)
    if placement:
        monkeypatch.setenv("PALLAS_PLACEMENT", placement)
    (tmp_path / "agents.yaml").write_text(FLEET)
    (tmp_path / "fastagent.config.yaml").write_text("openai: {api_key: sk-canary-1234}\n")
    assert cli.main([*options, "--agent", "jarvis"]) == 0
    assert ("a secret in plain text" in capsys.readouterr().err) is warned


def test_a_stop_before_the_agent_listens_is_a_clean_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "agents.yaml").write_text(FLEET)
    monkeypatch.setattr(serve, "run", lambda _: signal.raise_signal(signal.SIGTERM))
    assert cli.main(["--agent", "jarvis"]) == 0
