"""Names to endpoints: every record a replica, and a resolver that fails is not a fleet that is gone."""

from __future__ import annotations

import asyncio

import pytest

from pallas_contract.documents.reason import NOT_FOUND, OK, UNRESOLVED, Reason
from pallas_registry.discovery import dns as dns_discovery
from pallas_registry.discovery.dns import DnsDiscovery
from pallas_registry.discovery.resolver import LIMIT, NotFound, Unresolved
from pallas_registry.discovery.sighting import STALE, Endpoint, Sighting
from pallas_registry.discovery.static import StaticDiscovery

HARPER = "http://harper:8080/mcp"


class Resolver:
    """Answers from a table of lists: each look-up takes the next, the last one stays."""

    def __init__(self, **answers) -> None:
        self.answers = {name: list(each) for name, each in answers.items()}
        self.asked: list[str] = []

    def set(self, name: str, *each) -> None:
        self.answers[name] = list(each)

    async def __call__(self, host: str) -> frozenset[str]:
        self.asked.append(host)
        each = self.answers.get(host, [NotFound])
        answer = each.pop(0) if len(each) > 1 else each[0]
        if isinstance(answer, str):
            return frozenset(answer.split())
        raise answer


async def look(source, *agents: str) -> dict[str, Sighting]:
    found: dict[str, Sighting] = {}
    await source.sweep(agents, found.__setitem__)
    return found


def dns(resolver: Resolver) -> DnsDiscovery:
    return DnsDiscovery(resolver, sleep=lambda _: asyncio.sleep(0))


async def test_every_record_is_a_replica() -> None:
    found = await look(dns(Resolver(harper=["10.0.0.3 10.0.0.2 fd00::2"])), "harper")
    assert found["harper"] == Sighting(
        (Endpoint(HARPER, "10.0.0.2"), Endpoint(HARPER, "10.0.0.3"), Endpoint(HARPER, "fd00::2"))
    )


async def test_the_name_asked_is_the_slug() -> None:
    resolver = Resolver(**{"tech-research": ["10.0.0.2"]})
    found = await look(dns(resolver), "tech_research")
    assert resolver.asked == ["tech-research"]
    assert found["tech_research"].endpoints[0].url == "http://tech-research:8080/mcp"


async def test_a_name_that_is_not_there() -> None:
    assert await look(dns(Resolver()), "harper") == {"harper": Sighting(problem=NOT_FOUND)}


async def test_waiting_for_a_turn_is_not_a_resolver_that_fails() -> None:
    """Whoever is looked up, and so has a deadline, has a thread."""
    turns = asyncio.Semaphore(LIMIT)

    async def busy(_host: str) -> frozenset[str]:
        assert not turns.locked(), "its deadline runs while it waits"
        async with turns:
            await asyncio.sleep(0)
            return frozenset({"10.0.0.2"})

    agents = [f"a{number}" for number in range(10 * LIMIT)]
    found = await look(DnsDiscovery(busy), *agents)
    assert all(found[agent].endpoints for agent in agents)


async def test_a_resolver_that_answers_nothing_is_not_asked_for_thousands_of_names() -> None:
    resolver = Resolver(registry=[Unresolved])
    agents = [f"a{number}" for number in range(3 * dns_discovery.TOGETHER)]
    for agent in agents:
        resolver.set(agent, Unresolved)
    found = await look(dns(resolver), *agents)
    assert set(found.values()) == {Sighting(problem=UNRESOLVED, unsure=True)}
    assert len(found) == len(agents)
    assert len(resolver.asked) == dns_discovery.TOGETHER + 1


async def test_losing_a_name_takes_two_confirmations() -> None:
    resolver = Resolver(harper=["10.0.0.2"])
    source = dns(resolver)
    await look(source, "harper")
    resolver.set("harper", NotFound, NotFound, "10.0.0.2")
    assert (await look(source, "harper"))["harper"].endpoints
    resolver.set("harper", NotFound)
    assert (await look(source, "harper"))["harper"] == Sighting(problem=NOT_FOUND)
    assert resolver.asked == ["harper"] * 7
    await look(source, "harper")
    assert resolver.asked == ["harper"] * 8, "a name known to be gone is asked for once"


@pytest.mark.parametrize("others", ["10.0.0.9", NotFound], ids=["resolves", "is said not to exist"])
async def test_servfail_for_one_name_while_another_is_answered_means_not_there(others) -> None:
    """What Docker's DNS says on an internal network for a container that was removed."""
    resolver = Resolver(harper=["10.0.0.2"], research=["10.0.0.9"])
    source = dns(resolver)
    await look(source, "harper", "research")
    resolver.set("harper", Unresolved)
    resolver.set("research", others)
    before = len(resolver.asked)
    found = await look(source, "harper", "research")
    assert found["harper"] == Sighting(problem=NOT_FOUND)
    assert resolver.asked[before:][-3:] == ["registry", "harper", "registry"]


async def test_dns_that_comes_back_in_the_midst_of_a_sweep_has_the_agents_that_failed_before() -> None:
    """Each fails as often as it is asked for in its turn, and then resolves."""
    agents = [f"a{number}" for number in range(2 * dns_discovery.TOGETHER)]
    resolver = Resolver(registry=["10.0.0.4"], **{agent: ["10.0.0.2"] for agent in agents})
    source = dns(resolver)
    await look(source, *agents)
    for agent in agents:
        resolver.set(agent, *[Unresolved] * (dns_discovery.CONFIRMATIONS + 1), "10.0.0.3")
    found = await look(source, *agents)
    assert {(seen.endpoints[0].ip, seen.problem) for seen in found.values()} == {("10.0.0.3", OK)}


@pytest.mark.parametrize("registry", [[Unresolved, "10.0.0.4"], ["10.0.0.4", Unresolved]], ids=["before", "after"])
async def test_an_agent_is_not_gone_where_dns_failed_before_or_after_its_last_look_up(registry) -> None:
    resolver = Resolver(harper=["10.0.0.2"], research=["10.0.0.9"], registry=registry)
    source = dns(resolver)
    await look(source, "harper", "research")
    resolver.set("harper", Unresolved)
    found = await look(source, "harper", "research")
    assert found["harper"] == Sighting((Endpoint(HARPER, "10.0.0.2"),), STALE, unsure=True)


async def test_dns_that_comes_back_between_two_look_ups_turns_nobody_red() -> None:
    """The one that was asked before fails, and the other one resolves."""
    resolver = Resolver(harper=["10.0.0.2"], research=["10.0.0.9"], registry=[Unresolved])
    source = dns(resolver)
    await look(source, "harper", "research")
    for answers in ((Unresolved, Unresolved), (Unresolved, "10.0.0.9"), ("10.0.0.2", "10.0.0.9")):
        for agent, answer in zip(("harper", "research"), answers, strict=True):
            resolver.set(agent, answer)
        found = await look(source, "harper", "research")
        assert {agent: seen.endpoints[0].ip for agent, seen in found.items()} == {
            "harper": "10.0.0.2",
            "research": "10.0.0.9",
        }
    assert found["harper"].problem == OK


async def test_dns_that_goes_between_two_look_ups_turns_nobody_red() -> None:
    """The one that was asked before resolves, and the other one fails; so do both in the next sweep."""
    resolver = Resolver(harper=["10.0.0.2"], research=["10.0.0.9"], registry=[Unresolved])
    source = dns(resolver)
    await look(source, "harper", "research")
    for answers in (("10.0.0.2", Unresolved), (Unresolved, Unresolved), ("10.0.0.2", Unresolved)):
        for agent, answer in zip(("harper", "research"), answers, strict=True):
            resolver.set(agent, answer)
        found = await look(source, "harper", "research")
        assert found["research"] == Sighting(
            (source._endpoint("research")._replace(ip="10.0.0.9"),), STALE, unsure=True
        )


async def test_the_registrys_own_name_decides_when_no_agent_resolves() -> None:
    resolver = Resolver(harper=[Unresolved], registry=["10.0.0.4"])
    assert await look(dns(resolver), "harper") == {"harper": Sighting(problem=NOT_FOUND)}


async def test_a_resolver_that_is_down_keeps_the_last_known_set() -> None:
    resolver = Resolver(harper=["10.0.0.2"], research=["10.0.0.3"], registry=["10.0.0.4"])
    source = dns(resolver)
    await look(source, "harper", "research")
    for name in ("harper", "research", "engineering", "registry"):
        resolver.set(name, Unresolved)
    for _ in range(3):
        found = await look(source, "harper", "research", "engineering")
        assert found["harper"] == Sighting((Endpoint(HARPER, "10.0.0.2"),), STALE, unsure=True)
        assert found["research"].endpoints
        assert found["engineering"] == Sighting((), UNRESOLVED, unsure=True)


async def test_a_look_up_that_hangs_is_given_up(monkeypatch) -> None:
    monkeypatch.setattr(dns_discovery, "TIMEOUT", 0.01)

    async def hang(host: str) -> frozenset[str]:
        await asyncio.Event().wait()
        raise AssertionError(host)

    assert await look(DnsDiscovery(hang), "harper") == {"harper": Sighting((), UNRESOLVED, unsure=True)}


async def test_an_answer_is_told_without_waiting_for_the_others() -> None:
    told, slow = asyncio.Event(), asyncio.Event()

    async def resolve(host: str) -> frozenset[str]:
        if host == "slow":
            await slow.wait()
        return frozenset({"10.0.0.2"})

    sweep = asyncio.create_task(DnsDiscovery(resolve).sweep(["slow", "harper"], lambda agent, _: told.set()))
    await told.wait()
    assert not sweep.done()
    slow.set()
    await sweep


async def test_what_the_file_dropped_is_forgotten() -> None:
    resolver = Resolver(harper=["10.0.0.2"], registry=[Unresolved])
    source = dns(resolver)
    await look(source, "harper")
    await look(source)
    resolver.set("harper", Unresolved)
    assert (await look(source, "harper"))["harper"] == Sighting((), UNRESOLVED, unsure=True)


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "224.0.0.1"])
async def test_a_metadata_service_is_never_an_agent(address: str) -> None:
    found = await look(dns(Resolver(harper=[address])), "harper")
    assert found["harper"] == Sighting(
        problem=Reason("AddressNotAllowed", "resolves only to addresses that are never asked")
    )
    found = await look(dns(Resolver(harper=[f"{address} 10.0.0.2"])), "harper")
    assert [endpoint.ip for endpoint in found["harper"].endpoints] == ["10.0.0.2"]


async def test_processes_are_where_the_supervisor_says_or_the_file() -> None:
    source = StaticDiscovery({"harper": "127.0.0.1:9001"}, lambda agent: f"127.0.0.1:{len(agent)}")
    found = await look(source, "harper", "new")
    assert found["harper"].endpoints == (Endpoint("http://127.0.0.1:9001/mcp"),)
    assert found["new"].endpoints == (Endpoint("http://127.0.0.1:3/mcp"),)


def test_people_see_the_address() -> None:
    assert Endpoint(HARPER, "10.0.0.2").label == "10.0.0.2"
    assert Endpoint("http://127.0.0.1:8201/mcp").label == "127.0.0.1:8201"


async def test_on_kubernetes_replicas_are_under_another_name_than_callers_use() -> None:
    """The agent's own name is there one address for all of them."""
    domain = "agents.space.svc.cluster.local."
    resolver = Resolver(
        **{
            "tech-research": ["10.96.0.7"],
            f"tech-research.{domain}": ["10.244.0.3 10.244.0.4"],
            domain: ["10.244.0.3 10.244.0.4"],
        }
    )
    found = await look(DnsDiscovery(resolver, domain=domain), "tech_research", "harper")
    url = "http://tech-research:8080/mcp"
    assert found["tech_research"].endpoints == (Endpoint(url, "10.244.0.3"), Endpoint(url, "10.244.0.4"))
    assert found["harper"] == Sighting(problem=NOT_FOUND)
    assert "tech-research" not in resolver.asked


async def test_an_address_that_is_no_agents_is_a_stranger_when_seen_twice() -> None:
    resolver = Resolver(**{"harper.all": ["10.0.0.2"], "all": ["10.0.0.2 10.0.0.9"]})
    source = DnsDiscovery(resolver, domain="all")
    await look(source, "harper")
    assert source.undeclared == (), "it may have come between two look-ups"
    await look(source, "harper")
    assert source.undeclared == ("10.0.0.9",)
    resolver.set("all", Unresolved)
    await look(source, "harper")
    assert source.undeclared == ("10.0.0.9",), "no answer says nothing"
    resolver.set("all", NotFound)
    await look(source, "harper")
    assert source.undeclared == ()


async def test_without_a_domain_nothing_is_undeclared() -> None:
    resolver = Resolver(harper=["10.0.0.2"])
    await look(dns(resolver), "harper")
    assert resolver.asked == ["harper"]


POD, OTHER = "10.244.0.3", "10.244.0.4"


def on_kubernetes(resolver: Resolver) -> DnsDiscovery:
    return DnsDiscovery(resolver, domain="agents", pods_domain="space", sleep=lambda _: asyncio.sleep(0))


async def test_a_pod_that_is_not_ready_is_asked_only_where_no_other_of_its_agent_is() -> None:
    resolver = Resolver(**{"harper.agents": [POD], "agents": [POD], "pallas-pods-harper.space": [f"{POD} {OTHER}"]})
    source = on_kubernetes(resolver)
    assert (await look(source, "harper"))["harper"] == Sighting((Endpoint(HARPER, POD),))
    assert resolver.asked == ["harper.agents", "agents"]
    resolver.set("harper.agents", NotFound)
    resolver.set("agents", NotFound)
    endpoints = (Endpoint(HARPER, POD), Endpoint(HARPER, OTHER))
    for confirmations in (2, 0):
        resolver.asked.clear()
        assert (await look(source, "harper"))["harper"] == Sighting(endpoints, ready=False)
        assert resolver.asked == [*["harper.agents"] * (1 + confirmations), "pallas-pods-harper.space", "agents"]
    for name in ("harper.agents", "registry"):
        resolver.set(name, Unresolved)
    assert (await look(source, "harper"))["harper"] == Sighting(endpoints, STALE, unsure=True, ready=False)
    assert source.undeclared == ()


async def test_an_agent_without_any_pod_is_not_found() -> None:
    source = on_kubernetes(Resolver(agents=["10.244.0.9"]))
    assert (await look(source, "harper"))["harper"] == Sighting(problem=NOT_FOUND)


async def test_a_look_up_of_pods_that_fails_says_nothing_about_the_agent() -> None:
    source = on_kubernetes(Resolver(**{"pallas-pods-harper.space": [Unresolved], "registry": [Unresolved]}))
    assert (await look(source, "harper"))["harper"] == Sighting(problem=UNRESOLVED, unsure=True)


async def test_a_pod_whose_address_is_never_asked_is_no_pod_that_is_not_ready() -> None:
    found = await look(on_kubernetes(Resolver(**{"pallas-pods-harper.space": ["169.254.169.254"]})), "harper")
    assert found["harper"].problem.code == "AddressNotAllowed"
