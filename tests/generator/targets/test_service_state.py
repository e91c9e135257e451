"""`services.NAME.state` on its way to containers and pods: a folder, and a place for it that outlives both."""

from __future__ import annotations

from pathlib import PurePosixPath

import yaml

from pallas_contract import names
from pallas_gen.project.configmaps import Delivery
from pallas_gen.project.contents import Contents
from pallas_gen.targets.compose import render as compose
from pallas_gen.targets.helm import render as helm

WRITTEN = """\
name: x
agents:
  scout: {module: agents.scout, port: 8101, depends_on: [my_memory, library]}
services:
  my_memory: {module: agents.other, port: 8110, state: true}
  library: {module: agents.other, port: 8111}
"""


def test_a_container_gets_a_volume_and_a_pod_a_claim(plan) -> None:
    made = plan(WRITTEN)
    assert made.workload("my-memory").env[names.ENV_STATE] == "/state"
    assert names.ENV_STATE not in made.workload("library").env
    document = yaml.safe_load(compose.render(made, PurePosixPath("project"), Contents())[compose.FILE])
    assert document["volumes"] == {"my-memory-state": {}}
    mounts = {
        name: [each["target"] for each in service.get("volumes", []) if each["type"] == "volume"]
        for name, service in document["services"].items()
    }
    assert mounts == {"my-memory": ["/state"], "library": [], "scout": [], "registry": []}
    values = yaml.safe_load(helm.render_values(made, Delivery())[helm.FILE])["services"]
    assert (values["my_memory"]["state"]["enabled"], values["my_memory"]["stateless"]) == (True, False)
    assert "state" not in values["library"]
    assert values["library"]["stateless"] is True
