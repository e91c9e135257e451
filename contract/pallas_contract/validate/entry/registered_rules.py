"""Rules for `gateway.registered`: whom the gateway leads to can be registered by one token only, and may be reached."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.fleet.access_model import Gateway
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.problems import Problem
from pallas_contract.validate.suggestions import Suggestions

_AT = ("gateway", "registered")


def problems(fleet: ResolvedFleet, gateway: Gateway, tree: Source) -> Iterator[Problem]:
    """Yield a problem per rule about registered agents that `gateway` breaks."""
    if not gateway.registered:
        return
    registration = fleet.registry.registration
    if not gateway.tenants:
        hint = "add `tenants: {NAME: {}}`: `agent.execute` is there with tenants only"
        yield tree.problem(*_AT, message="needs `tenants`", hint=hint, code=Code.TOOLS_WITHOUT_TENANTS)
    if registration is None or not registration.reach:
        message = "the gateway may go to no agent outside of this file"
        hint = "add `registry.registration` with `tokens`, and with `reach`: the networks or hosts of these agents"
        yield tree.problem(*_AT, message=message, hint=hint, code=Code.REGISTERED_AGENT)
        return
    bound = sorted({agent for token in registration.tokens.values() for agent in token.agents})
    hosts = [names.slug(name) for name in gateway.registered]
    for index, name in enumerate(gateway.registered):
        hint = ""
        if name in fleet.agents:
            message, hint = f"`{name}` is in this file", "name it in `agents` of the gateway"
        elif name not in bound:
            message = f"whoever has a token may register as `{name}`"
            hint = Suggestions().hint(name, bound) if bound else "add it to `agents` of one token of the registration"
        elif hosts.index(hosts[index]) != index:
            message, hint = f"`{name}` is there twice", "remove one of them"
        else:
            continue
        yield tree.problem(*_AT, index, message=message, hint=hint, code=Code.REGISTERED_AGENT)
