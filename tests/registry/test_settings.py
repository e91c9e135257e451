"""The environment, read with all its mistakes at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_contract.problems import Refused
from pallas_registry import settings
from tests.problem_lines import without_codes


def test_defaults_are_the_seeds() -> None:
    chosen = settings.read({})
    assert chosen.config == Path("agents.yaml")
    assert (chosen.bind, chosen.addresses, chosen.placement, chosen.log_format) == (None, None, "local", "json")
    assert chosen.domain == ""


def test_everything_can_be_said() -> None:
    chosen = settings.read(
        {
            "PALLAS_AGENTS_CONFIG": "/project/agents.yaml",
            "PALLAS_PLACEMENT": "container",
            "PALLAS_BIND": "0.0.0.0:8080",
            "PALLAS_ADDRESSES": '{"harper": "127.0.0.1:8201"}',
            "PALLAS_ABSENCES": "/run/absences.json",
            "PALLAS_LOG_FORMAT": "text",
            "PALLAS_ALLOWED_HOSTS": "registry, registry:*,",
            "PALLAS_REPLICA_DOMAIN": "agents.space.svc.cluster.local.",
            "PALLAS_PODS_DOMAIN": "space.svc.cluster.local.",
        }
    )
    assert chosen.hosts == ("registry", "registry:*")
    assert chosen.config == Path("/project/agents.yaml")
    assert chosen.bind == ("0.0.0.0", 8080)
    assert chosen.addresses == {"harper": "127.0.0.1:8201"}
    assert (chosen.placement, chosen.log_format) == ("container", "text")
    assert (chosen.domain, chosen.pods_domain) == ("agents.space.svc.cluster.local.", "space.svc.cluster.local.")
    assert chosen.absences == Path("/run/absences.json")


def test_addresses_do_not_tell_the_placement() -> None:
    assert settings.read({"PALLAS_ADDRESSES": "{}"}).placement == settings.read({}).placement == "local"
    assert settings.read({"PALLAS_ADDRESSES": "{}", "PALLAS_PLACEMENT": "container"}).placement == "container"


@pytest.mark.parametrize(("text", "bind"), [("[::]:8080", ("::", 8080)), ("::1:24200", ("::1", 24200))])
def test_ipv6(text: str, bind: tuple[str, int]) -> None:
    assert settings.read({"PALLAS_BIND": text}).bind == bind


@pytest.mark.parametrize("text", ["8080", ":8080", "host:", "host:0", "host:65536", "host:http", "host:²"])
def test_a_bad_bind_is_named(text: str) -> None:
    with pytest.raises(Refused) as refused:
        settings.read({"PALLAS_BIND": text})
    assert without_codes(str(refused.value)) == f"PALLAS_BIND: must be `address:port`, not {text!r}"


@pytest.mark.parametrize("text", ["[]", '{"harper": 8201}', '{"harper": "nowhere"}'])
def test_bad_addresses_are_named(text: str) -> None:
    with pytest.raises(Refused, match="PALLAS_ADDRESSES: must be a JSON object of agents"):
        settings.read({"PALLAS_ADDRESSES": text})


def test_all_mistakes_are_said_at_once() -> None:
    with pytest.raises(Refused) as refused:
        settings.read({"PALLAS_BIND": "x", "PALLAS_ADDRESSES": "{", "PALLAS_PLACEMENT": "pod"})
    assert [problem.where.file for problem in refused.value.problems] == [
        "PALLAS_ADDRESSES",
        "PALLAS_BIND",
        "PALLAS_PLACEMENT",
    ]
