"""Which endpoint is asked: a URL as it is, in a cluster the agent's Service; names are in test_call.py."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest

from pallas_cli import main as command
from pallas_cli.arguments import parse
from pallas_cli.running import kubernetes
from pallas_cli.talk import agent
from pallas_cli.trouble import Trouble
from tests.cli.conftest import Stand
from tests.problem_lines import without_codes


def test_a_url_is_asked_as_it_is() -> None:
    with agent.endpoint(parse(["call", "https://a.example/x/mcp", "hi", "-n", "demo"])) as url:
        assert url == "https://a.example/x/mcp"


@pytest.mark.parametrize("url", ["http://[::1/mcp", "http://a:99999/mcp", "https://"])
def test_a_url_that_is_none_is_refused(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["call", url, "hi"]) == 2
    assert without_codes(capsys.readouterr().err).startswith(
        f"AGENT: {url!r} is no http(s) URL\n    write it as http://"
    )


def test_in_a_cluster_it_is_the_service_of_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def forwarded(namespace: str, member: str):  # type: ignore[no-untyped-def]
        yield f"http://{member}.{namespace}"

    monkeypatch.setattr(kubernetes, "forwarded", forwarded)
    with agent.endpoint(parse(["chat", "desk", "-n", "demo"])) as url:
        assert url == "http://desk.demo/mcp"


def test_an_agent_that_does_not_answer_is_told_as_the_registry_has_it(stand: Stand, project: Path) -> None:
    stand.states["clerk"] = {"status": "error", "message": "exited with code 1\x1b[31m"}
    with (
        pytest.raises(
            Trouble, match=r"^no\n    the registry has it as error: exited with code 1[^\x1b]*; `pallas logs`"
        ),
        agent.endpoint(parse(["call", "clerk", "hi"])),
    ):
        raise Trouble("no")
    with pytest.raises(Trouble, match=r"^no$"), agent.endpoint(parse(["call", "desk", "hi"])):
        raise Trouble("no")
