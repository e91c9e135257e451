"""A project, digests of its images and the tools that it serves -> the lock, and its facts for a comparison. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pallas_contract import names
from pallas_contract.documents import lock as locks
from pallas_contract.documents.lock import Lock, LockedImage, LockedMember, LockedTool
from pallas_contract.documents.tool_contract import digest
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_gen.comparison import changes, facts
from pallas_gen.comparison.facts import Facts, Value
from pallas_gen.locking.served_tools import Tools
from pallas_gen.plan import Plan, Workload
from pallas_gen.project import contents
from pallas_gen.project.contents import Contents


def lock(fleet: ResolvedFleet, plan: Plan, files: Contents, *, digests: Mapping[str, str], tools: Tools) -> Lock:
    """Return the lock of a fleet; what `digests` (by image) and `tools` (by host name) have not is not known."""
    members = {
        workload.name: _member(plan, workload, files, fleet=fleet, digests=digests, tools=tools)
        for workload in plan.workloads
    }
    of_fleet = facts.of_fleet(fleet, "container").values
    return Lock(
        name=fleet.name,
        version=fleet.version,
        agents={name: members[name] for name in fleet.agents},
        services={name: members[name] for name in fleet.services if name in members},
        registry=members[names.REGISTRY],
        gateway=members.get(names.GATEWAY),
        facts={key: _closed(key, value) for key, value in of_fleet.items() if value not in (None, "", False)},
    )


def _member(
    plan: Plan,
    workload: Workload,
    files: Contents,
    *,
    fleet: ResolvedFleet,
    digests: Mapping[str, str],
    tools: Tools,
) -> LockedMember:
    served = tools.get(workload.host) if workload.kind == "agent" else None
    return LockedMember(
        image=LockedImage(name=workload.image, digest=digests.get(workload.image, "")),
        configuration=locks.configuration(fleet, workload.name) if workload.kind == "agent" else "",
        code=_code(plan, workload, files) if workload.kind in ("agent", "service") else "",
        tools=None
        if served is None
        else {
            name: LockedTool(input=tool.input, output=tool.output, annotations=tool.annotations)
            for name, tool in served.items()
        },
    )


def _code(plan: Plan, workload: Workload, files: Contents) -> str:
    """Return the digest of what a member gets of the folder, but for the fleet file, whose facts are there."""
    shared = {} if workload.foreign else {path: files.config[path] for path in plan.config if path != plan.source}
    own = {path: files.files[path] for path in contents.files_of(workload, files.files)}
    return digest([shared, own])


def _closed(key: str, value: Value) -> str | int | float | bool:
    """Return a value as a lock may have it: one that may be secret as a digest."""
    if value is None:
        return ""
    return value if not isinstance(value, str) or changes.is_shown(key) else f"digest:{digest(value)}"


def completed(current: Lock, former: Lock | None, *, lasting: bool) -> Lock:
    """Return a lock with what the one before knew and nobody can tell now: digests of the same images, and tools.

    With `lasting`, tools are dropped of an agent whose configuration or code has changed: nobody has seen the new ones.
    """
    if former is None:
        return current

    def section(new: Mapping[str, LockedMember], old: Mapping[str, LockedMember]) -> dict[str, LockedMember]:
        return {name: _completed(entry, old.get(name), lasting=lasting) for name, entry in new.items()}

    return current.model_copy(
        update={
            "agents": section(current.agents, former.agents),
            "services": section(current.services, former.services),
            "registry": current.registry and _completed(current.registry, former.registry, lasting=lasting),
            "gateway": current.gateway and _completed(current.gateway, former.gateway, lasting=lasting),
        }
    )


def _completed(new: LockedMember, old: LockedMember | None, *, lasting: bool) -> LockedMember:
    if old is None:
        return new
    keeps_image = not new.image.digest and new.image.name == old.image.name
    same = (new.configuration, new.code) == (old.configuration, old.code)
    keeps_tools = new.tools is None and (not lasting or same)
    update = ({"image": old.image} if keeps_image else {}) | ({"tools": old.tools} if keeps_tools else {})
    return new.model_copy(update=update)


def facts_of(lock: Lock) -> Facts:
    """Return the facts of a lock for `comparison.changes`: those of its fleet file, and its digests."""
    members = [
        *((f"agents.{name}", member) for name, member in lock.agents.items()),
        *((f"services.{name}", member) for name, member in lock.services.items()),
        *(
            (name, member)
            for name, member in ((names.REGISTRY, lock.registry), (names.GATEWAY, lock.gateway))
            if member
        ),
    ]
    return Facts(dict(lock.facts) | {key: value for path, member in members for key, value in _of_member(path, member)})


def _of_member(path: str, member: LockedMember) -> Iterator[tuple[str, Value]]:
    if member.image.digest:
        yield f"{path}.image_digest", member.image.digest
    if member.code:
        yield f"{path}.code_digest", member.code
    if member.tools is None:
        return
    yield f"{path}.tools", True
    for name, tool in member.tools.items():
        # a dot would make it part of a section
        key = f"{path}.tools.{name.replace('.', ':')}"
        yield key, True
        yield from ((f"{key}.{part}", value) for part, value in tool.model_dump().items() if value)
