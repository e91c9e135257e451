"""examples/02-pallas in a real Kubernetes, from the generated chart, in a namespace that enforces `restricted`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import pytest

from . import connections, scenario
from .projects import copy_example
from .release import READY, Release, namespace, until, until_replicas

pytestmark = pytest.mark.cluster

SCOUT = """
  scout:
    card: agents/scout.md
    port: 19999
    depends_on: [model]
"""
SCOUT_CARD = "---\ntype: agent\nname: scout\nmodel: passthrough\n---\nYou are Scout.\n"
CURRENT = 10
"""Seconds after an upgrade until the catalogue is that of the file: the old registry answers for half of them."""


@pytest.fixture(scope="module")
def release(root, kubernetes, tmp_path_factory) -> Iterator[Release]:
    """A namespace and what is to be installed in it."""
    folder = tmp_path_factory.mktemp("cluster")
    config = copy_example(root / "examples" / "02-pallas", folder, more="registry: {probe_interval: 1}\n")
    text = config.read_text().replace("  tech_research:\n", "  tech_research:\n    instance_scope: request\n", 1)
    config.write_text(text)
    with namespace("pallas-e2e") as space:
        release = Release(config, space)
        try:
            yield release
        finally:
            release.close()


@pytest.fixture
def fleet(release: Release) -> Release:
    """Installed, also where the test before has uninstalled it."""
    if not release.installed:
        release.upgrade()
        release.wait()
        release.first_look = asyncio.run(scenario.states(release.url("registry")))
    return release


@pytest.fixture
async def up(fleet: Release) -> Release:
    """The fleet with every agent ok."""
    await scenario.until_states(fleet.url("registry"), scenario.ALL_OK, within=60)
    return fleet


def test_the_first_look_after_the_installation_shows_every_agent_ok(fleet) -> None:
    assert fleet.first_look == scenario.ALL_OK


def test_helm_test_calls_every_agent(fleet) -> None:
    assert "Phase:          Succeeded" in fleet.helm("test", "--timeout", "120s").stdout


def test_declared_connections_go_through_and_no_other_by_name_and_by_address(fleet) -> None:
    """Nobody is called back either: of the two ends of a declared connection only one calls."""
    members = connections.addresses(fleet)
    assert connections.edges(fleet, {name: name for name in members}) == connections.declared(fleet)
    assert connections.edges(fleet, members) == connections.declared(fleet)


def test_strangers_reach_nobody_and_nobody_reaches_strangers(fleet) -> None:
    members = connections.addresses(fleet)
    with connections.strangers(fleet) as strangers:
        for space in strangers:
            assert connections.connects(space, "pod/stranger", list(members.values())) == [False] * len(members)
            assert connections.connects(space, "pod/stranger", list(strangers.values())) == [True, True]
        for name in members:
            reached = connections.connects(fleet.namespace, f"deployment/{name}", list(strangers.values()))
            assert reached == [False, False], name


def test_it_is_the_policies_that_refuse(fleet) -> None:
    """Without them every pod reaches every other; with them again, those of the graph."""
    before = fleet.templates()
    members = connections.addresses(fleet)
    everybody = {(caller, called) for caller in members for called in members if caller != called}
    fleet.kubectl("delete", "networkpolicies", "--all")
    try:
        until(lambda: connections.edges(fleet, members) == everybody, "every pod reaches every other", within=60)
    finally:
        fleet.upgrade()
    assert fleet.templates() == before, "an upgrade that changes nothing rolls nothing out"
    fleet.wait()
    members = connections.addresses(fleet)
    until(lambda: connections.edges(fleet, members) == connections.declared(fleet), "the graph holds", within=60)


@pytest.mark.parametrize("era", scenario.ERAS)
async def test_harper_delegates_to_other_pods(up, era) -> None:
    answer = await scenario.harper_delegates(f"{up.url('harper')}/mcp", era)
    said = {"(?<!Tech )Research": "research", "Tech Research": "tech_research", "Engineering": "engineering"}
    for name, agent in said.items():
        (address,) = re.findall(rf"{name}, asking from ([0-9.]+)", answer.text)
        assert {address} == up.addresses(agent)
    (pod,) = up.pods("argos").values()
    assert f"(argos on {pod['metadata']['name']})" in answer.text


async def test_the_registry_follows_a_crash(up) -> None:
    await scenario.registry_follows_a_crash(up.url("registry"), f"{up.url('harper')}/mcp", up)


async def test_the_registry_follows_a_freeze(up) -> None:
    await scenario.registry_follows_a_freeze(up.url("registry"), f"{up.url('harper')}/mcp", up)


async def test_a_deleted_pod_is_replaced(up) -> None:
    (before,) = up.pods("engineering")
    up.kubectl("delete", "pod", "-l", "app.kubernetes.io/name=engineering", "--wait=false")
    until(lambda: up.ready("engineering") and before not in up.pods("engineering"), "another pod is ready", within=90)
    await scenario.until_probed(up.url("registry"), "engineering", lambda: up.addresses("engineering"), within=60)
    await scenario.until_states(up.url("registry"), scenario.ALL_OK, within=60)


async def test_replicas_are_seen_one_by_one(up) -> None:
    up.kubectl("scale", "deployment/tech-research", "--replicas=3")
    up.kubectl("rollout", "status", "deployment/tech-research", "--timeout=120s")
    await until_replicas(up.url("registry"), "tech_research", 3, within=60)
    await scenario.until_probed(up.url("registry"), "tech_research", lambda: up.addresses("tech_research"), within=60)
    await scenario.until_states(up.url("registry"), scenario.ALL_OK, within=60)
    up.kubectl("scale", "deployment/tech-research", "--replicas=1")
    await until_replicas(up.url("registry"), "tech_research", 1, within=60)


async def test_an_added_agent_is_listed_at_once_and_disturbs_no_other(up) -> None:
    """The registry is replaced, and answers all the time: first the old one, then the new one."""
    before, text = set(up.pods()) - set(up.pods("registry")), up.config.read_text()
    (up.config.parent / "agents" / "scout.md").write_text(SCOUT_CARD)
    up.config.write_text(text.replace("\nservices:", SCOUT + "\nservices:", 1))
    registry = up.service("registry")
    agents = set(await scenario.catalogue(registry))
    async with scenario.asking(registry) as answers:
        await asyncio.to_thread(up.upgrade, "--wait", "--timeout", READY)
        await scenario.until_listed(registry, agents | {"scout"}, within=CURRENT)
    assert set(answers) == {"200"}
    await scenario.until_states(registry, {**scenario.ALL_OK, "scout": "ok"}, within=30)
    assert before < set(up.pods())

    (up.config.parent / "agents" / "scout.md").unlink()  # a card of no agent would be anybody's file
    up.config.write_text(text)
    async with scenario.asking(registry) as answers:
        await asyncio.to_thread(up.upgrade, "--wait", "--timeout", READY)
        await scenario.until_listed(registry, agents, within=CURRENT)
    assert set(answers) == {"200"}
    up.close()  # the forward led to a pod that is gone
    await scenario.until_states(registry, scenario.ALL_OK, within=60)
    assert set(up.pods()) - set(up.pods("registry")) == before


async def test_a_broken_upgrade_leaves_the_old_one_serving_until_it_is_rolled_back(up) -> None:
    before = set(up.pods("research"))
    up.upgrade("--set", "agents.research.image.tag=no-such-tag")
    until(lambda: before < set(up.pods("research")), "the pod with the wrong image is made", within=60)
    await scenario.harper_delegates(f"{up.url('harper')}/mcp", scenario.ERAS[0])
    up.helm("rollback", "--wait", "--timeout", "60s")
    until(lambda: set(up.pods("research")) == before, "only the pod of before is left", within=60)
    await scenario.until_states(up.url("registry"), scenario.ALL_OK, within=60)


def test_a_second_fleet_in_the_namespace_is_refused(fleet) -> None:
    other = Release(fleet.config, fleet.namespace)
    other.name = "other"
    said = other.upgrade(check=False)
    assert said.returncode != 0
    assert "cannot be imported into the current release" in said.stderr
    assert all(item["metadata"]["labels"]["app.kubernetes.io/instance"] == "fleet" for item in fleet.pods().values())


def test_a_missing_secret_is_refused_before_anything_changes(fleet) -> None:
    before = fleet.helm("history", "-o", "json").stdout
    said = fleet.upgrade("--set", "secrets.fastagent-secrets-yaml.existingSecret=absent", check=False)
    assert said.returncode != 0
    assert f"there is no Secret absent in namespace {fleet.namespace}" in said.stderr
    assert fleet.helm("history", "-o", "json").stdout == before


def test_a_namespace_that_is_not_there_has_no_secret_and_is_not_created_for_it(fleet) -> None:
    nowhere = Release(fleet.config, "pallas-e2e-nowhere")
    options = ("--create-namespace", "--set", "secrets.fastagent-secrets-yaml.existingSecret=absent")
    assert "there is no Secret absent in namespace pallas-e2e-nowhere" in nowhere.upgrade(*options, check=False).stderr
    assert "pallas-e2e-nowhere" not in fleet.kubectl("get", "namespaces")


def test_uninstall_leaves_nothing(fleet) -> None:
    fleet.close()
    fleet.helm("uninstall", "--wait", "--timeout", "120s")
    until(lambda: fleet.left() == set(), "nothing is left of the release", within=60)
