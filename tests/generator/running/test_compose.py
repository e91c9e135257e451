"""Containers that somebody edited, stopped, added or left behind are named, with what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pallas_gen.plan import Plan
from pallas_gen.running import compose
from pallas_gen.running.tool import Done
from tests.generator.running.conftest import Docker

Edit = Callable[[dict[str, Any]], object]
FOLDER = Path("/nowhere")
EDITS: dict[str, Edit] = {
    "scout.image: is evil:1, and pallas-agent:": lambda it: it["Config"].update(Image="evil:1"),
    "scout.command: is sh -c canary2, and -P -m": lambda it: it["Config"].update(
        Entrypoint=["sh"], Cmd=["-c", "canary2"]
    ),
    "scout.variables: has DEBUG, unlike the plan": lambda it: it["Config"]["Env"].append("DEBUG=canary"),
    "scout.variables: lacks COST, unlike the plan": lambda it: it["Config"]["Env"].remove("COST=canary"),
    "scout.networks: has bridge, unlike the plan": lambda it: it["NetworkSettings"]["Networks"].update(bridge={}),
    "scout.networks: lacks x_agent.scout, unlike": lambda it: it["NetworkSettings"]["Networks"].pop("x_agent.scout"),
    "scout.read_only: is False, and True in the plan": lambda it: it["HostConfig"].update(ReadonlyRootfs=False),
    "scout.user: is empty, and 10001:10001 in the plan": lambda it: it["Config"].update(User=""),
    "scout.privileges: has privileged, unlike the plan": lambda it: it["HostConfig"].update(Privileged=True),
    "scout.privileges: has cap_add NET_ADMIN and lacks cap_drop ALL": lambda it: it["HostConfig"].update(
        CapAdd=["CAP_NET_ADMIN"], CapDrop=None
    ),
    "scout.privileges: has security_opt seccomp and lacks security_opt no-new": lambda it: it["HostConfig"].update(
        SecurityOpt=['seccomp={"canary": 1}']
    ),
    "scout.privileges: has device /dev/kmsg, ipc host, pid host, unlike": lambda it: it["HostConfig"].update(
        Devices=[{"PathOnHost": "/dev/kmsg"}], IpcMode="host", PidMode="host"
    ),
    "scout.mounts: has /x from /host (writable), unlike the plan": lambda it: it["Mounts"].append(
        {"Type": "bind", "Source": "/host", "Destination": "/x", "RW": True}
    ),
    "scout.mounts: has /project/agents.yaml from agents.yaml (writable) and lacks /project/agents.yaml from": (
        lambda it: it["Mounts"][0].update(RW=True)
    ),
    "scout.mounts: has /project/agents.yaml from /etc/passwd and lacks": lambda it: it["Mounts"][0].update(
        Source="/etc/passwd"
    ),
    "scout.mounts: has /tmp in memory () and lacks /tmp in memory (size=": lambda it: it["HostConfig"].update(
        Tmpfs={"/tmp": ""}
    ),
    "scout.ports: has 127.0.0.2:8101 for 8080/tcp and lacks 127.0.0.1:8101 for 8080/tcp, unlike": (
        lambda it: it["HostConfig"]["PortBindings"]["8080/tcp"][0].update(HostIp="127.0.0.2")
    ),
    "scout.ports: has any address:99 for 9/udp, unlike": lambda it: it["HostConfig"]["PortBindings"].update(
        {"9/udp": [{"HostIp": "", "HostPort": "99"}]}
    ),
    "scout.memory: is 900 MiB, and 512 MiB in the plan": lambda it: it["HostConfig"].update(Memory=900 << 20),
    "scout.cpus: is unlimited, and 1 in the plan": lambda it: it["HostConfig"].update(NanoCpus=0),
    "scout.pids: is unlimited, and 256 in the plan": lambda it: it["HostConfig"].update(PidsLimit=None),
    "scout: does not run (exited)": lambda it: it["State"].update(Status="exited"),
}


def lines(planned: Plan, docker: Docker, **environ: str) -> list[str]:
    problems = list(compose.problems(planned, FOLDER, environ, docker.run))
    assert all(problem.hint.startswith(("`docker compose", "where no")) for problem in problems)
    assert "canary" not in "".join(map(str, problems)).replace("canary2", "")
    return [f"{problem.where}: {problem.message}".removeprefix("compose project x ") for problem in problems]


def test_what_compose_makes_of_the_plan_is_the_plan(planned: Plan, docker: Docker) -> None:
    """An image's own command, variables and entrypoint are no difference; nor is what only compose sets."""
    assert lines(planned, docker) == []


@pytest.mark.parametrize("expected", EDITS)
def test_an_edit_is_named(expected: str, planned: Plan, docker: Docker) -> None:
    EDITS[expected](docker.of("scout"))
    (line,) = lines(planned, docker)
    assert line.startswith(expected)


def test_another_copy_of_the_project_is_no_difference(planned: Plan, docker: Docker) -> None:
    """In a machine of its own an engine has other paths, too."""
    for container in docker.containers:
        for mount in container["Mounts"]:
            mount["Source"] = f"/host_mnt{mount['Source']}"
    assert lines(planned, docker) == []


def test_a_volume_that_an_image_asks_for_is_no_difference(planned: Plan, docker: Docker) -> None:
    docker.of("db")["Mounts"].append({"Type": "volume", "Name": "93d9" * 16, "Destination": "/data", "RW": True})
    assert lines(planned, docker) == []
    docker.of("db")["Mounts"].append({"Type": "volume", "Name": "x_data", "Destination": "/data", "RW": True})
    assert lines(planned, docker) == ["db.mounts: has /data from volume x_data (writable), unlike the plan"]


def test_the_command_of_an_image_counts_where_the_plan_has_none(plan, docker: Docker, tmp_path) -> None:
    services = "services: {db: {image: 'postgres:17', port: 5432, provides: other}}"
    made = plan(f"name: x\nagents: {{a: {{module: agents.scout, port: 8101}}}}\n{services}\n")
    own = Docker(made, tmp_path / "compose.yaml")
    container = own.of("db")
    container["Config"].update(Entrypoint=["python"], Cmd=["-m", "kit"])
    own.hashes.clear()
    assert lines(made, own) == []
    container["Config"]["Cmd"] = ["-m", "other"]
    assert lines(made, own) == ["db.command: is python -m other, and that of the image in the plan"]


def test_what_is_missing_and_what_is_too_much(planned: Plan, docker: Docker) -> None:
    docker.containers.remove(docker.of("scout"))
    docker.containers.remove(docker.of("other"))
    gone = docker.of("db")
    gone["Config"]["Labels"]["com.docker.compose.service"] = "old"
    assert sorted(lines(planned, docker)) == [
        "db: does not run",
        "old: is not in the plan",
        "other: 1 of 2 replicas run",
        "scout: does not run",
    ]
    del gone["Config"]["Labels"]["io.pallas-kit.kind"]
    (beside,) = (
        problem for problem in compose.problems(planned, FOLDER, {}, docker.run) if problem.where.field == "old"
    )
    assert (beside.level, beside.message) == ("warning", "is not in the plan, and not the kit's")
    gone["Config"]["Labels"]["com.docker.compose.oneoff"] = "True"
    assert "old" not in [problem.where.field for problem in compose.problems(planned, FOLDER, {}, docker.run)]


def test_what_up_would_make_anew_is_named(planned: Plan, docker: Docker) -> None:
    docker.hashes["scout"] = "another"
    docker.images["postgres:17"] = {"Id": "sha256:newer", "Config": {}}
    assert [line.partition(" was made before ")[0] for line in lines(planned, docker)] == [
        "db: runs an older postgres:17 than is here",
        "scout:",
    ]


def test_an_image_that_is_gone_is_no_difference(planned: Plan, docker: Docker) -> None:
    docker.images.clear()
    assert lines(planned, docker) == []


def test_files_that_are_gone_are_no_change(planned: Plan, docker: Docker) -> None:
    docker.hashes["scout"] = "another"
    labels = docker.of("scout")["Config"]["Labels"]
    labels["com.docker.compose.project.config_files"] = "/nowhere/compose.yaml"
    assert lines(planned, docker) == []


def test_nothing_that_runs_is_one_problem(planned: Plan, docker: Docker) -> None:
    docker.containers.clear()
    (problem,) = compose.problems(planned, FOLDER, {"COMPOSE_PROJECT_NAME": "x"}, docker.run)
    assert str(problem).startswith("compose project x: has no containers here")


@pytest.mark.parametrize("question", ["docker inspect", "docker image inspect"])
def test_an_answer_that_does_not_come_is_no_empty_one(question: str, planned: Plan, docker: Docker) -> None:
    """A busy engine has the containers, whatever it does not say of them."""

    def run(command: Sequence[str]) -> Done | None:
        return Done(1, "", "no answer in 15 s") if " ".join(command).startswith(question) else docker.run(command)

    with pytest.raises(compose.NoAnswer, match=f"docker does not answer `{question}.*`: no answer in 15 s"):
        list(compose.problems(planned, FOLDER, {}, run))


@pytest.mark.parametrize(("done", "message"), [(None, "docker is not here"), (Done(1, "", "no socket\n"), "no socket")])
def test_who_cannot_be_asked_is_told(planned: Plan, done: Done | None, message: str) -> None:
    with pytest.raises(compose.NoAnswer, match=message):
        list(compose.problems(planned, FOLDER, {}, lambda _: done))
