"""`pallas-testing model`: exit codes 0, 1 and 2, a port, signals, and a provider recorded."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from pallas_testing import cli
from pallas_testing.model import ScriptedModel

SCRIPT = "rules:\n- {user: hello, say: Hello.}\n"


def body(text: str) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.yaml"], "pallas-testing: none.yaml: no such file\n    looked in "),
        (["bad.yaml"], "pallas-testing: bad.yaml:1:1 rulez: is no key that is known here\n    did you mean `rules`?\n"),
        (["s.yaml", "--bind", "8080"], "pallas-testing: --bind 8080: must be address:port\n    such as 127.0.0.1:8080"),
        (["s.yaml", "--bind", "[::1]:70000"], "pallas-testing: --bind [::1]:70000: must be address:port"),
        (["new.yaml", "--record", "ftp://h"], "pallas-testing: --record: must be the base URL of a provider"),
        (["s.yaml", "--record", "http://h"], "pallas-testing: s.yaml: is no cassette, and is not written over"),
        (["no/c.yaml", "--record", "http://h"], "pallas-testing: c.yaml: there is no folder "),
        (["c.yaml"], "pallas-testing: c.yaml:1:1 cassette: Input should be 1\n"),
    ],
)
def test_bad_input_ends_with_2(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(SCRIPT)
    Path("bad.yaml").write_text("rulez: []\n")
    Path("c.yaml").write_text("cassette: 2\n")
    assert cli.main(["model", *arguments]) == 2
    assert capsys.readouterr().err.startswith(message)


def test_a_port_that_is_taken_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(SCRIPT)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        bind = f"127.0.0.1:{listener.getsockname()[1]}"
        assert cli.main(["model", str(path), "--bind", bind]) == 1
    assert capsys.readouterr().err == f"pallas-testing: cannot listen on {bind}: Address already in use\n"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["model", "--help"]])
def test_help_and_version(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        cli.main(arguments)
    assert raised.value.code == 0
    assert "pallas-testing" in capsys.readouterr().out


@contextmanager
def running(*arguments: str | Path, **env: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "pallas_testing.cli", "model", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stdout is not None
            url = re.search(r"ANTHROPIC_BASE_URL=(\S+)", process.stdout.readline())
            assert url is not None
            yield url[1], process
        finally:
            process.kill()


@pytest.mark.slow
def test_it_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(SCRIPT)
    with (
        running(path, "--bind", "127.0.0.1:0") as (url, process),
        httpx.Client(base_url=url, verify=False, timeout=60) as http,
    ):
        assert http.post("/v1/chat/completions", json=body("hello")).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.communicate() == ("", "")
        assert process.returncode == 0


@pytest.mark.slow
def test_a_call_nobody_scripted_is_printed_and_ends_with_1(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(SCRIPT + "- {user: never, say: x, times: 1}\n")
    bind = {"PALLAS_BIND": "127.0.0.1:0"}
    with running(path, **bind) as (url, process), httpx.Client(base_url=url, verify=False, timeout=60) as http:
        assert http.post("/v1/chat/completions", json=body("bye")).status_code == 400
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        assert process.returncode == 1
    assert errors.count("pallas-testing: nobody scripted this call:") == 1
    assert "s.yaml:2:3 rules.0: the user's message does not match 'hello'" in errors
    assert errors.endswith("s.yaml:3:3 rules.1: scripted 1 times, asked 0 times\n")


@pytest.mark.slow
def test_it_records_a_provider(scripted_model: ScriptedModel, tmp_path: Path) -> None:
    scripted_model.rule(say="Hello.")
    path = tmp_path / "c.yaml"
    with running(path, "--record", f"{scripted_model.url}/v1", "--bind", "127.0.0.1:0") as (url, process):
        httpx.post(f"{url}/v1/chat/completions", json=body("hello"), verify=False, timeout=60).raise_for_status()
        process.send_signal(signal.SIGTERM)
        assert process.communicate() == ("", "")
        assert process.returncode == 0
    assert "say: Hello.\n" in path.read_text()
