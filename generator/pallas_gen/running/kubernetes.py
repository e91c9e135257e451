"""The release in a namespace, asked of kubectl -> problems: where it is not what the plan says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Where
from pallas_gen.plan import Plan
from pallas_gen.running import differences, pods
from pallas_gen.running.compose import NoAnswer
from pallas_gen.running.differences import Running, Shape
from pallas_gen.running.tool import Run
from pallas_gen.targets.helm import read_back
from pallas_gen.targets.observed import ObservedWorkload
from pallas_gen.verify import planned

_SELECTOR = "app.kubernetes.io/component in (agent,service,registry,gateway)"
_START = "`kubectl describe` of its Deployment and pods says why, `helm upgrade` installs what is missing"
_UPGRADE = "`helm upgrade` of the release makes it so"


def problems(plan: Plan, namespace: str, run: Run) -> Iterator[Problem]:
    """Yield everything in which the release in `namespace` differs from the plan.

    Raises:
        NoAnswer: kubectl is not here, or the cluster refuses.
    """
    place = f"namespace {namespace}"
    objects = _objects(namespace, run)
    deployments = {entry["metadata"]["name"]: entry for entry in objects if entry["kind"] == "Deployment"}
    if not deployments:
        hint = f"`helm install RELEASE chart --namespace {namespace}` starts it"
        yield Problem(Where(place), "has no release of the kit", hint, code=Code.NOT_RUNNING)
        return
    try:
        observed = read_back.workloads(objects, plan)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        message = f"cannot be read as the kit's chart installs it ({type(error).__name__}: {error})"
        yield Problem(Where(place), message, _UPGRADE, code=Code.RUNNING_DIFFERS)
        return
    isolated = any(entry["kind"] == "NetworkPolicy" for entry in objects)
    images = {workload.host: workload.image for workload in plan.workloads}
    running = {
        host: _running(shape, deployments[host], images.get(host, ""), isolated=isolated)
        for host, shape in observed.items()
    }
    wanted = {
        workload.host: (
            _shape(planned(plan, workload), pods.planned(workload), isolated=isolated),
            _replicas(deployments.get(workload.host)),
        )
        for workload in plan.workloads
    }
    for problem in differences.problems(wanted, running, place=place, start=_START, anew=_UPGRADE):
        yield _judged(problem)
    for host in sorted(observed.keys() - wanted.keys()):
        yield Problem(Where(place, field=host), "is not in the plan", _UPGRADE, code=Code.RUNNING_DIFFERS)


def _objects(namespace: str, run: Run) -> list[dict[str, Any]]:
    command = ["kubectl", "--namespace", namespace, "get", "deployments,networkpolicies", "--selector", _SELECTOR]
    done = run([*command, "--output", "json"])
    if done is None:
        raise NoAnswer("kubectl is not here, and -n needs it")
    if done.code:
        raise NoAnswer(f"kubectl: {done.reason}")
    items: list[dict[str, Any]] = json.loads(done.output)["items"]
    return items


def _replicas(deployment: Mapping[str, Any] | None) -> int:
    """Return how many pods a Deployment is to have: scaling is the cluster's (decision 0007)."""
    return int(deployment["spec"].get("replicas", 1)) if deployment else 1


def _judged(problem: Problem) -> Problem:
    """Return the problem, as a warning where values of a user's own, which nobody sees here, can ask for it."""
    if problem.where.field.partition(".")[2] not in pods.OF_VALUES:
        return problem
    return replace(problem, level="warning", hint=f"where no values of yours say so, {_UPGRADE}")


def _running(observed: ObservedWorkload, deployment: Mapping[str, Any], image: str, *, isolated: bool) -> Running:
    ready = int((deployment.get("status") or {}).get("readyReplicas", 0))
    state = "" if ready >= _replicas(deployment) else "not ready"
    shape = _shape(observed, pods.actual(deployment["spec"]["template"]["spec"], image), isolated=isolated)
    return Running((shape,), ready, state)


def _shape(observed: ObservedWorkload, granted: Mapping[str, Any], *, isolated: bool) -> Shape:
    cpus, memory = observed.limits
    return Shape(
        image=observed.image,
        command=observed.command,
        variables=tuple(name for name, _ in observed.env),
        networks=observed.peers if isolated else (),
        memory=f"{memory} MiB",
        cpus=f"{cpus:g}",
        **granted,
    )
