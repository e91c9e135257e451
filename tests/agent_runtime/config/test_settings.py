"""What an agent process is told by its environment, and what it assumes on a laptop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pallas_agent_runtime.config import settings
from pallas_contract.documents import server_json
from pallas_contract.fleet import source
from pallas_contract.problems import Refused
from pallas_contract.validate import load
from tests.problem_lines import without_codes

FLEET = """
name: demo
agents:
  harper: {module: agents.harper, port: 8201, depends_on: [tech_research, argos]}
  tech_research: {module: agents.tech, port: 8202, instance_scope: request}
services:
  argos: {module: standins.argos, port: 8203}
"""


def resolve(name: str, environ: dict[str, str]) -> settings.Settings:
    tree = source.parse(FLEET, name="agents.yaml")
    fleet = load.parse(tree)
    settings.check_name(fleet, tree, name)
    return settings.resolve(fleet, tree, name, Path("/project"), environ=environ)


def test_a_bare_start_is_as_on_one_machine() -> None:
    own = resolve("harper", {})
    assert (own.host, own.port) == ("127.0.0.1", 8201)
    assert own.peers == {"argos": "http://127.0.0.1:8203/mcp", "tech_research": "http://127.0.0.1:8202/mcp"}
    assert own.subagents == {"tech_research"}
    assert {"harper", "harper:*", "localhost:*"} <= set(own.allowed_hosts)
    assert own.placement == "local"
    assert own.remembers
    assert not resolve("tech_research", {}).remembers
    assert resolve("tech_research", {}).slug == "tech-research"


def test_the_environment_decides() -> None:
    own = resolve(
        "harper",
        {
            "PALLAS_BIND": "0.0.0.0:8080",
            "PALLAS_PEERS": '{"tech_research": "http://tech-research:8080/mcp"}',
            "PALLAS_ALLOWED_HOSTS": "a, b:*,",
        },
    )
    assert (own.host, own.port) == ("0.0.0.0", 8080)
    assert own.peers == {"tech_research": "http://tech-research:8080/mcp"}
    assert own.allowed_hosts == ("a", "b:*")


@pytest.mark.parametrize(
    ("environ", "urls"),
    [
        ({}, ["http://localhost:8080/mcp"]),
        ({"PALLAS_PLACEMENT": "container"}, ["http://localhost:8080/mcp", "http://harper:8080/mcp"]),
    ],
)
def test_the_placement_is_told_and_not_read_off_the_address(environ: dict[str, str], urls: list[str]) -> None:
    """A process that listens where a container would publishes no URL that only containers reach."""
    tree = source.parse(FLEET.replace("port: 8201", "port: 8080, publish: 0.0.0.0"), name="agents.yaml")
    own = settings.resolve(load.parse(tree), tree, "harper", Path("/project"), environ=environ)
    assert (own.host, own.port) == ("0.0.0.0", 8080)
    remotes = server_json.server(own.fleet, own.name, None, own.placement)["remotes"]
    assert [remote["url"] for remote in remotes] == urls


def test_a_placement_that_does_not_exist_is_refused() -> None:
    with pytest.raises(Refused, match=r"\$PALLAS_PLACEMENT: must be `container` or `local`, not 'pod'"):
        resolve("harper", {"PALLAS_PLACEMENT": "pod"})


def test_an_ipv6_address_is_bracketed() -> None:
    assert settings.address("[::1]:80") == ("::1", 80)


@pytest.mark.parametrize("bind", ["8080", "host:", "host:x", ":80", "h:99999", "h:²"])
def test_a_bad_bind_address_is_refused(bind: str) -> None:
    with pytest.raises(Refused, match=r"\$PALLAS_BIND: must be `address:port`"):
        resolve("harper", {"PALLAS_BIND": bind})


@pytest.mark.parametrize("peers", ["", "[]", '{"a": 1}', "{"])
def test_bad_peers_are_refused(peers: str) -> None:
    with pytest.raises(Refused, match=r"\$PALLAS_PEERS: must be a JSON object of names and URLs"):
        resolve("harper", {"PALLAS_PEERS": peers})


@pytest.mark.parametrize(
    ("name", "hint"), [("harpr", "did you mean `harper`?"), ("zzz", "there are: harper, tech_research")]
)
def test_an_unknown_agent_is_refused_with_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(Refused) as refused:
        resolve(name, {})
    assert without_codes(str(refused.value)) == f"agents.yaml:3:1 agents: there is no agent `{name}`\n    {hint}"


@pytest.mark.parametrize("key", ["PALLAS_MAX_DEPTH", "PALLAS_MAX_BODY", "PALLAS_CONNECT_TIMEOUT"])
@pytest.mark.parametrize("number", ["0", "-1", "8.5", "x", "٣", "9" * 5000])
def test_a_bad_number_is_refused(key: str, number: str) -> None:
    with pytest.raises(Refused, match=rf"\${key}: must be a whole number of at least 1, not "):
        resolve("harper", {key: number})


def test_limits() -> None:
    own = resolve("harper", {"PALLAS_MAX_DEPTH": "3", "PALLAS_MAX_BODY": "1000", "PALLAS_CONNECT_TIMEOUT": "7"})
    assert (own.max_depth, own.max_body, own.connect_timeout) == (3, 1000, 7)
    own = resolve("harper", {})
    assert (own.max_depth, own.max_body, own.connect_timeout) == (8, 32 << 20, 5)


def test_what_is_said_goes_into_traces_only_when_told_in_so_many_words() -> None:
    assert resolve("harper", {}).trace_content is False
    assert resolve("harper", {"PALLAS_TRACE_CONTENT": "true"}).trace_content is True
    with pytest.raises(Refused, match=r"\$PALLAS_TRACE_CONTENT: must be `true` or `false`, not 'yes'"):
        resolve("harper", {"PALLAS_TRACE_CONTENT": "yes"})


def test_where_conversations_are_kept() -> None:
    assert resolve("harper", {"PALLAS_CONVERSATIONS": ""}).conversations is None
    assert resolve("harper", {"PALLAS_CONVERSATIONS": "kept.db"}).conversations == Path("/project/kept.db")
    assert resolve("harper", {"PALLAS_CONVERSATIONS": "/data/kept.db"}).conversations == Path("/data/kept.db")


def test_settings_are_not_changed_afterwards() -> None:
    own: Any = resolve("harper", {})
    with pytest.raises(AttributeError):
        own.port = 1
    with pytest.raises(TypeError):
        own.peers["x"] = "y"
