"""Programs as they run, against the plan: missing, extra, edited. Pure; values of variables are never shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Where
from pallas_gen.targets import wording


@dataclass(frozen=True, slots=True)
class Shape:
    """A program in the words in which what runs is compared with the plan."""

    image: str
    command: tuple[str, ...]
    variables: tuple[str, ...]
    """Names, sorted."""
    networks: tuple[str, ...]
    """In compose the networks that it is on; on Kubernetes the hosts that its policies connect it with. Sorted."""
    read_only: bool = True
    user: str = ""
    privileges: tuple[str, ...] = ()
    """What it may do or is kept from, such as `cap_drop ALL`, sorted."""
    mounts: tuple[str, ...] = ()
    """Where -> what, and whether it may be written to, sorted."""
    ports: tuple[str, ...] = ()
    """Published addresses -> its port, sorted."""
    memory: str = ""
    cpus: str = ""
    pids: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """A program as it runs: the differing shapes of its replicas, of which there are `count` in `state`."""

    shapes: tuple[Shape, ...]
    count: int
    """Replicas that run."""
    state: str = ""
    """The state of one that does not run, in the tool's word; empty where all do."""


def problems(
    planned: Mapping[str, tuple[Shape, int]], running: Mapping[str, Running], *, place: str, start: str, anew: str
) -> Iterator[Problem]:
    """Yield everything in which what runs is not as planned: a shape and a number of replicas per host.

    `place` is the compose project or namespace; `start` says how to start what is missing, `anew` how to replace what
    was edited.
    """
    for host, (shape, replicas) in planned.items():
        actual = running.get(host)
        if actual is None:
            yield Problem(Where(place, field=host), "does not run", start, code=Code.NOT_RUNNING)
            continue
        if actual.count < replicas:
            state = f" ({actual.state})" if actual.state else ""
            message = f"{actual.count} of {replicas} replicas run{state}" if replicas > 1 else f"does not run{state}"
            yield Problem(Where(place, field=host), message, start, code=Code.NOT_RUNNING)
        for other in actual.shapes:
            yield from _edited(Where(place, field=host), shape, other, anew)


def _edited(where: Where, planned: Shape, actual: Shape, hint: str) -> Iterator[Problem]:
    for name in (entry.name for entry in fields(Shape)):
        wanted, value = getattr(planned, name), getattr(actual, name)
        if value != wanted:
            place = replace(where, field=f"{where.field}.{name}")
            yield Problem(place, _words(name, value, wanted), hint, code=Code.RUNNING_DIFFERS)


def _words(name: str, value: object, wanted: object) -> str:
    if isinstance(value, tuple) and isinstance(wanted, tuple):
        return wording.commands(value, wanted) if name == "command" else wording.entries(value, wanted)
    return wording.instead(str(value), str(wanted))
