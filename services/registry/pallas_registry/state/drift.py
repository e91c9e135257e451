"""Agents that are not as agents.lock has them: what it says of each, and what an answer is beside that. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pallas_contract import names
from pallas_contract.documents import lock as locks
from pallas_contract.documents.lock import Lock
from pallas_contract.documents.reason import Reason, joined
from pallas_contract.documents.tool_contract import ToolContract
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.probe.probe import Result

_SOME = 3
"""Tools named one by one; a reason is read by people."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The lock's word about one agent.

    `version` is empty, and `tools` None, where any will do. `remark` says how the fleet file differs from the lock.
    """

    version: str = ""
    tools: Mapping[str, ToolContract] | None = None
    remark: str = ""


def expected(lock: Lock | None, fleet: ResolvedFleet) -> dict[str, Expected]:
    """Return what the lock expects of each agent of the file; nothing where there is no lock."""
    return {name: _of_agent(lock, fleet, name) for name in fleet.agents} if lock else {}


def _of_agent(lock: Lock, fleet: ResolvedFleet, name: str) -> Expected:
    member = lock.agents.get(name)
    if member is None:
        return Expected(remark=f"{names.LOCK_FILE} has no such agent")
    same = member.configuration in ("", locks.configuration(fleet, name))
    tools = None if member.tools is None else {tool: entry.contract for tool, entry in member.tools.items()}
    return Expected(
        version=lock.version,
        tools=tools,
        remark="" if same else f"its entry in the fleet file is not the one of {names.LOCK_FILE}",
    )


def marked(result: Result, expected: Expected | None) -> Result:
    """Return the result as degraded where it is not what is expected; one that is no answer stays as it is."""
    if expected is None or result.state not in ("ok", "degraded"):
        return result
    differences = list(_differences(result, expected))
    if not differences:
        return result
    reason = Reason("Drift", f"drift: {', '.join(differences)}")
    # the agent's own word first; a remark of one that is well comes last
    both = (result.reason, reason) if result.state == "degraded" else (reason, result.reason)
    return replace(result, state="degraded", reason=joined(both))


def _differences(result: Result, expected: Expected) -> Iterator[str]:
    if expected.remark:
        yield expected.remark
    if expected.version and result.version not in ("", expected.version):
        yield f"version {result.version} is not {expected.version}"
    if expected.tools is not None and result.tools is not None:
        changed = [*_tools(result.tools, expected.tools)]
        yield from changed[:_SOME]
        if len(changed) > _SOME:
            yield f"and {len(changed) - _SOME} more tools"


def _tools(current: Mapping[str, ToolContract], former: Mapping[str, ToolContract]) -> Iterator[str]:
    for name in sorted(current.keys() | former.keys()):
        contract = current.get(name)
        before = former.get(name)
        if before is None or contract is None:
            yield f"tool {name} is {'new' if before is None else 'gone'}"
        elif contract != before:
            yield f"tool {name} {_difference(contract, before)}"


def _difference(contract: ToolContract, before: ToolContract) -> str:
    if contract.input != before.input:
        return "takes other arguments"
    return "gives other results" if contract.output != before.output else "has other annotations"
