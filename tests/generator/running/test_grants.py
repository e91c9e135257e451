"""A container as docker has told of one, with secrets, a state and everything that an overriding file can grant."""

from __future__ import annotations

import copy
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from pallas_gen.plan import Plan
from pallas_gen.running import grants
from pallas_gen.targets.compose import render

FLEET = """\
name: x
agents:
  scout:
    module: agents.scout
    port: 8101
    keep_conversations: true
    secrets: {KEY: {file: keys/one}, OTHER: {file: ../two}, THIRD: {file: /etc/three}}
"""
ROOT = "/home/me/desk"


def bind(source: str, target: str) -> dict[str, Any]:
    return {"Type": "bind", "Source": source, "Destination": target, "Mode": "", "RW": False, "Propagation": "rprivate"}


CONTAINER: dict[str, Any] = {
    "Config": {"User": "10001:10001"},
    "HostConfig": {
        "PortBindings": {"8080/tcp": [{"HostIp": "127.0.0.1", "HostPort": "8101"}]},
        "CapAdd": None,
        "CapDrop": ["ALL"],
        "CgroupnsMode": "host",
        "GroupAdd": None,
        "IpcMode": "private",
        "PidMode": "",
        "Privileged": False,
        "SecurityOpt": ["no-new-privileges:true"],
        "Tmpfs": {"/tmp": "size=64m,mode=1777,noexec,nosuid,nodev"},
        "UTSMode": "",
        "UsernsMode": "",
        "Memory": 536870912,
        "NanoCpus": 1000000000,
        "Devices": None,
        "DeviceCgroupRules": None,
        "DeviceRequests": None,
        "PidsLimit": 256,
    },
    "Mounts": [
        bind(f"{ROOT}/keys/one", "/run/secrets/KEY"),
        bind("/home/me/two", "/run/secrets/OTHER"),
        bind("/etc/three", "/run/secrets/THIRD"),
        bind(f"{ROOT}/agents.yaml", "/project/agents.yaml"),
        bind(f"{ROOT}/agents/scout.py", "/project/agents/scout.py"),
        {
            "Type": "volume",
            "Name": "x_scout-state",
            "Source": "/var/lib/docker/volumes/x_scout-state/_data",
            "Destination": "/state",
            "Driver": "local",
            "Mode": "z",
            "RW": True,
        },
    ],
}
GRANTED = {
    "CapAdd": ["NET_ADMIN"],
    "Privileged": True,
    "SecurityOpt": ["no-new-privileges", "seccomp:unconfined", "label=disable"],
    "GroupAdd": ["5"],
    "IpcMode": "host",
    "PidMode": "container:1234",
    "UTSMode": "host",
    "UsernsMode": "host",
    "Devices": [{"PathOnHost": "/dev/null", "PathInContainer": "/dev/q", "CgroupPermissions": "rwm"}],
    "DeviceCgroupRules": ["c 1:3 mr"],
    "DeviceRequests": [{"Driver": "", "Count": -1, "Capabilities": [["gpu"]]}],
    "Memory": 1000,
}


@pytest.fixture
def planned(plan, tmp_path: Path) -> Plan:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "one").write_text("1\n")
    made: Plan = plan(FLEET)
    return made


def test_what_compose_makes_of_the_plan_has_what_it_grants(planned: Plan) -> None:
    service = render.services(planned, PurePosixPath())["scout"]
    workload = planned.workload("scout")
    root = grants.root([(CONTAINER, workload, service)], "/elsewhere")
    assert root == ROOT
    assert grants.actual(CONTAINER, root) == grants.planned(service, workload, "x", root)
    assert grants.planned(service, workload, "x", root)["mounts"] == (
        "/project/agents.yaml from agents.yaml",
        "/project/agents/scout.py from agents/scout.py",
        "/run/secrets/KEY from keys/one",
        "/run/secrets/OTHER from /home/me/two",
        "/run/secrets/THIRD from /etc/three",
        "/state from volume x_scout-state (writable)",
        "/tmp in memory (size=64m,mode=1777,noexec,nosuid,nodev)",
    )


def test_all_that_a_file_can_grant_is_told() -> None:
    container = copy.deepcopy(CONTAINER)
    container["HostConfig"] |= GRANTED
    container["Mounts"].append({"Type": "tmpfs", "Source": "", "Destination": "/scratch", "RW": True})
    told = grants.actual(container, ROOT)
    assert set(told["privileges"]) == {
        "cap_add NET_ADMIN",
        "cap_drop ALL",
        "device /dev/null",
        "device_cgroup_rule c 1:3 mr",
        "devices of a driver, such as GPUs",
        "group_add 5",
        "ipc host",
        "pid container:1234",
        "privileged",
        "security_opt label=disable",
        "security_opt no-new-privileges:true",
        "security_opt seccomp:unconfined",
        "userns_mode host",
        "uts host",
    }
    assert told["memory"] == "1000 bytes"
    assert "/scratch from tmpfs (writable)" in told["mounts"]


def test_without_a_mount_the_folder_is_where_the_fleet_file_is(planned: Plan) -> None:
    workload = planned.workload("scout")
    assert grants.root([({}, workload, {})], "/here") == "/here"
