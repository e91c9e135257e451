"""Where the registry may be sent by an agent that registers: nowhere, unless agents.yaml says so."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from pallas_contract.documents.reason import NOT_FOUND, UNRESOLVED
from pallas_registry.discovery.resolver import NotFound, Unresolved
from pallas_registry.discovery.sighting import STALE, Endpoint, Sighting
from pallas_registry.registration.reach import MOST, NOT_ALLOWED, UrlDiscovery
from pallas_service.http.reach import Reach

REACH = Reach(["Agents.example.com", "10.20.0.0/16", "2001:db8::/32", "192.0.2.7"])


@pytest.mark.parametrize(
    ("address", "host", "allowed"),
    [
        ("10.20.3.4", "", True),
        ("10.21.3.4", "", False),
        ("192.0.2.7", "", True),
        ("192.0.2.8", "", False),
        ("2001:db8::1", "", True),
        ("203.0.113.5", "agents.example.com", True),
        ("203.0.113.5", "AGENTS.EXAMPLE.COM", True),
        ("203.0.113.5", "other.example.com", False),
        ("10.20.3.4", "other.example.com", True),
        ("127.0.0.1", "agents.example.com", False),
        ("::1", "agents.example.com", False),
        ("::ffff:127.0.0.1", "agents.example.com", False),
        ("::ffff:10.20.3.4", "", True),
        ("169.254.169.254", "agents.example.com", False),
        ("::ffff:169.254.169.254", "agents.example.com", False),
        ("fe80::1", "agents.example.com", False),
        ("fd00:ec2::254", "agents.example.com", False),
        ("224.0.0.1", "agents.example.com", False),
        ("0.0.0.0", "agents.example.com", False),
        ("64:ff9b::a9fe:a9fe", "agents.example.com", False),
        ("64:ff9b:1::a9fe:a9fe", "agents.example.com", False),
        ("2002:a9fe:a9fe::1", "agents.example.com", False),
        ("::a9fe:a9fe", "agents.example.com", False),
        ("2001:0:1::5601:5601", "agents.example.com", False),
        ("64:ff9b::7f00:1", "agents.example.com", False),
        ("64:ff9b::cb00:7105", "agents.example.com", True),
        ("64:ff9b::a14:304", "", True),
    ],
)
def test_an_address(address: str, host: str, allowed: bool) -> None:
    assert REACH.address(ip_address(address), host) is allowed


def test_nothing_makes_link_local_addresses_right() -> None:
    assert not Reach(["0.0.0.0/0", "::/0"]).address(ip_address("169.254.169.254"), "")
    assert not Reach(["0.0.0.0/0", "::/0"]).address(ip_address("64:ff9b::a9fe:a9fe"), "")
    assert Reach(["127.0.0.0/8"]).address(ip_address("127.0.0.1"), "")
    assert Reach(["localhost"]).address(ip_address("127.0.0.1"), "localhost")


@pytest.mark.parametrize(
    ("address", "allowed"),
    [("64:ff9b::808:808", True), ("64:ff9b::a00:1", False), ("64:ff9b::7f00:1", False), ("2002:808:808::1", True)],
)
def test_a_wide_network_of_ipv6_is_no_way_into_private_ones_of_ipv4(address: str, allowed: bool) -> None:
    assert Reach(["::/0"]).address(ip_address(address), "") is allowed


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://agents.example.com/mcp", True),
        ("http://elsewhere.example/mcp", True),
        ("http://10.20.1.1:8080/mcp", True),
        ("http://10.21.1.1:8080/mcp", False),
        ("http://[2001:db8::9]/mcp", True),
        ("http://[fe80::9]/mcp", False),
    ],
)
def test_a_host_of_an_url(url: str, allowed: bool) -> None:
    """A name that is not listed may have addresses that are: that is seen each time it is looked up."""
    assert REACH.host(url) is allowed


def test_with_names_alone_other_names_are_refused_at_once() -> None:
    assert not Reach(["agents.example.com"]).host("http://elsewhere.example/mcp")
    assert not Reach([])


class Dns:
    """Answers in turn; the last one again and again."""

    def __init__(self, *answers: set[str] | type[Exception]) -> None:
        self.answers = list(answers)

    async def __call__(self, _host: str) -> frozenset[str]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, set):
            return frozenset(answer)
        raise answer


async def look(outside: UrlDiscovery, url: str = "http://agents.example.com/mcp") -> Sighting:
    found: dict[str, Sighting] = {}
    await outside.sweep({"a": url}, REACH, lambda agent, _, sighting: found.update({agent: sighting}))
    return found["a"]


async def no_sleep(_seconds: float) -> None:
    return


async def test_a_lost_answer_changes_nothing(time) -> None:
    dns = Dns({"10.20.0.1", "10.20.0.2"}, NotFound, Unresolved, {"10.20.0.2"})
    outside, url = UrlDiscovery(dns, sleep=no_sleep), "http://agents.example.com/mcp"
    assert (await look(outside)).endpoints == (Endpoint(url, "10.20.0.1"), Endpoint(url, "10.20.0.2"))
    assert (await look(outside)).endpoints == (Endpoint(url, "10.20.0.2"),)
    dns.answers = [Unresolved]
    assert await look(outside) == Sighting((Endpoint(url, "10.20.0.2"),), STALE, unsure=True)
    dns.answers = [NotFound]
    assert await look(outside) == Sighting(problem=NOT_FOUND)
    dns.answers = [{"203.0.113.9"}]
    assert (await look(outside, "http://elsewhere.example/mcp")) == Sighting(problem=NOT_ALLOWED)
    dns.answers = [Unresolved]
    assert await look(UrlDiscovery(dns, sleep=no_sleep)) == Sighting(problem=UNRESOLVED, unsure=True)


async def test_of_a_host_with_very_many_addresses_some_are_probed() -> None:
    dns = Dns({f"10.20.1.{number}" for number in range(200)} | {"10.21.0.0"})
    sighting = await look(UrlDiscovery(dns, sleep=no_sleep))
    assert len(sighting.endpoints) == MOST
