"""`keep_conversations` on its way to processes, containers and pods: a file, and a place for it that outlives both."""

from __future__ import annotations

from pathlib import PurePosixPath

import yaml

from pallas_contract import names
from pallas_contract.launch import program
from pallas_gen.project import load
from pallas_gen.project.configmaps import Delivery
from pallas_gen.project.contents import Contents
from pallas_gen.targets.compose import render as compose
from pallas_gen.targets.helm import render as helm

WRITTEN = """\
name: x
defaults: {keep_conversations: true}
agents:
  scout: {module: agents.scout, port: 8101}
  guide: {module: agents.other, port: 8102, keep_conversations: false}
  clerk: {module: agents.model, port: 8103, instance_scope: request}
"""


def test_conversations_are_kept_where_there_are_any_and_somebody_asked(plan) -> None:
    made = plan(WRITTEN)
    assert {item.host: item.state for item in made.workloads if item.kind == "agent"} == {
        "scout": True,
        "guide": False,
        "clerk": False,
    }
    assert made.workload("scout").env[names.ENV_CONVERSATIONS] == "/state/conversations.db"
    assert names.ENV_CONVERSATIONS not in made.workload("guide").env | made.workload("clerk").env


def test_as_processes_they_are_beside_agents_yaml(make) -> None:
    env = program.agent(load.load(make(WRITTEN), {}).fleet, "scout", "local").env
    assert env[names.ENV_CONVERSATIONS] == ".pallas/conversations.db"


def test_a_container_gets_a_volume_and_a_pod_a_claim(plan) -> None:
    made = plan(WRITTEN)
    document = yaml.safe_load(compose.render(made, PurePosixPath("project"), Contents())[compose.FILE])
    assert document["volumes"] == {"scout-state": {}}
    kept = [each["target"] for each in document["services"]["scout"]["volumes"] if each["type"] == "volume"]
    assert kept == ["/state"]
    values = yaml.safe_load(helm.render_values(made, Delivery())[helm.FILE])["agents"]
    assert (values["scout"]["state"]["enabled"], values["scout"]["stateless"]) == (True, False)
    assert "state" not in values["guide"]
