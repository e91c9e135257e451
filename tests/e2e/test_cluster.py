"""examples/02-pallas in a real Kubernetes, from the generated chart, in a namespace that enforces `restricted`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from pallas_testing.fleet.start import Running

from . import connections, scenario
from .examples import copied_from
from .projects import edited
from .release import READY, Release, Started, running, until

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
def running_fleet(root: Path, kubernetes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The example, up for all tests here."""
    more = "registry: {probe_interval: 1}\n"
    with running(edited(root / "examples" / "02-pallas", tmp_path_factory.mktemp("cluster"), more=more)) as fleet:
        yield fleet


globals().update(copied_from("02-pallas"))


@pytest.fixture
def release(running_fleet: Running) -> Release:
    """The same, and what only Helm and Kubernetes have."""
    return Started(running_fleet)


@pytest.fixture
async def up(release: Release) -> Release:
    """The release with every agent ok."""
    await scenario.until_states(release.url("registry"), scenario.ALL_OK, within=60)
    return release


def test_helm_test_calls_every_agent(release) -> None:
    assert "Phase:          Succeeded" in release.helm("test", "--timeout", "120s").stdout


def test_declared_connections_go_through_and_no_other_by_name_and_by_address(release) -> None:
    """Nobody is called back either: of the two ends of a declared connection only one calls."""
    members = connections.addresses(release)
    assert connections.edges(release, {name: name for name in members}) == connections.declared(release)
    assert connections.edges(release, members) == connections.declared(release)


def test_strangers_reach_nobody_and_nobody_reaches_strangers(release) -> None:
    members = connections.addresses(release)
    with connections.strangers(release) as strangers:
        for space in strangers:
            assert connections.connects(space, "pod/stranger", list(members.values())) == [False] * len(members)
            assert connections.connects(space, "pod/stranger", list(strangers.values())) == [True, True]
        for name in members:
            reached = connections.connects(release.namespace, f"deployment/{name}", list(strangers.values()))
            assert reached == [False, False], name


def test_it_is_the_policies_that_refuse(release) -> None:
    """Without them every pod reaches every other; with them again, those of the graph."""
    before = release.templates()
    members = connections.addresses(release)
    everybody = {(caller, called) for caller in members for called in members if caller != called}
    release.kubectl("delete", "networkpolicies", "--all")
    try:
        until(lambda: connections.edges(release, members) == everybody, "every pod reaches every other", within=60)
    finally:
        release.upgrade()
    assert release.templates() == before, "an upgrade that changes nothing rolls nothing out"
    release.wait()
    members = connections.addresses(release)
    until(lambda: connections.edges(release, members) == connections.declared(release), "the graph holds", within=60)


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
    await scenario.until_states(registry, {**scenario.ALL_OK, "scout": "ok"}, within=60)
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


def test_a_second_fleet_in_the_namespace_is_refused(release) -> None:
    other = Release(release.config, release.namespace)
    other.name = "other"
    said = other.upgrade(check=False)
    assert said.returncode != 0
    assert "cannot be imported into the current release" in said.stderr
    instances = {item["metadata"]["labels"]["app.kubernetes.io/instance"] for item in release.objects("pods")}
    assert instances == {release.name}


def test_a_missing_secret_is_refused_before_anything_changes(release) -> None:
    before = release.helm("history", "-o", "json").stdout
    said = release.upgrade("--set", "secrets.fastagent-secrets-yaml.existingSecret=absent", check=False)
    assert said.returncode != 0
    assert f"there is no Secret absent in namespace {release.namespace}" in said.stderr
    assert release.helm("history", "-o", "json").stdout == before


def test_a_namespace_that_is_not_there_has_no_secret_and_is_not_created_for_it(release) -> None:
    nowhere = Release(release.config, "pallas-e2e-nowhere")
    options = ("--create-namespace", "--set", "secrets.fastagent-secrets-yaml.existingSecret=absent")
    assert "there is no Secret absent in namespace pallas-e2e-nowhere" in nowhere.upgrade(*options, check=False).stderr
    assert "pallas-e2e-nowhere" not in release.kubectl("get", "namespaces")
