"""What the gateway asks of callers with a JWT, as far as something in front of it can ask the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pallas_contract import names
from pallas_contract.fleet.access_model import Gateway, Grant
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch import credentials

SEND = "send_message"
"""An agent's tool of that name and the one with its own name are one tool (decision 0037)."""


@dataclass(frozen=True, slots=True)
class Granted:
    """Tools that callers with a JWT are granted at one agent; `*` in a name stands for any characters."""

    subjects: tuple[str, ...]
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Door:
    """The gateway as a caller with a JWT finds it. Paths in grants are not in here: the gateway alone compares them."""

    grants: Mapping[str, tuple[Granted, ...]] = field(default_factory=dict)
    """Host name of each agent that it leads to -> what is granted there; not looked at where it is `open`."""
    open: bool = True
    """No grant is written, so that everybody may call everything."""
    tokens: bool = False
    """Callers with a static token may come too."""
    issuer: str = ""
    """Empty: it takes no JWT."""
    audience: str = ""
    jwks_url: str = ""
    """Empty: the issuer's keys are in a file."""
    tenants: Mapping[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)
    """Tenant -> the `sub` of its callers, and their requests a minute; those with such callers only."""


def door(fleet: ResolvedFleet, gateway: Gateway) -> Door:
    """Return what the gateway of `fleet` asks."""
    jwt = gateway.access.jwt
    return Door(
        grants={names.slug(agent): tuple(_granted(gateway, agent)) for agent in sorted(gateway.agents)},
        open=not gateway.grants,
        tokens=bool(gateway.access.tokens),
        issuer=jwt.issuer if jwt else "",
        audience=(jwt.audience or credentials.gateway_resource(fleet, "container")) if jwt else "",
        jwks_url=(jwt.jwks_url or "") if jwt else "",
        tenants={
            name: (tuple(sorted(tenant.subjects)), tenant.per_minute)
            for name, tenant in sorted(gateway.tenants.items())
            if tenant.subjects
        },
    )


def _granted(gateway: Gateway, agent: str) -> Iterator[Granted]:
    for grant in gateway.grants:
        subjects = _subjects(gateway, grant)
        if grant.agent == agent and subjects:
            both = {SEND, agent} if {SEND, agent} & set(grant.tools) else set()
            yield Granted(subjects, tuple(sorted({*grant.tools, *both})))


def _subjects(gateway: Gateway, grant: Grant) -> tuple[str, ...]:
    if grant.subject is not None:
        return (grant.subject,)
    tenant = gateway.tenants.get(grant.tenant or "")
    return tuple(sorted(tenant.subjects)) if tenant else ()
