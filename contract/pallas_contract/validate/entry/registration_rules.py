"""Rules for `registry.registration`: whose name a token may be bound to, and where the token is."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.problems import Problem

_AT = ("registry", "registration", "tokens")


def problems(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    """Yield a problem per rule about tokens that `fleet` breaks, placed in `tree`."""
    registration = fleet.registry.registration
    if registration is None:
        return
    files: dict[str, str] = {}
    for name, token in registration.tokens.items():
        other = files.setdefault(token.file, name)
        if other != name:
            message = f"is the same file as that of `{other}`"
            yield tree.problem(
                *_AT, name, "file", message=message, hint="give each token a file of its own", code=Code.SAME_TOKEN
            )
        for index, agent in enumerate(token.agents):
            if reason := taken(fleet, agent):
                yield tree.problem(
                    *_AT,
                    name,
                    "agents",
                    index,
                    message=reason,
                    hint="name an agent outside this file",
                    code=Code.REGISTRATION_NAME,
                )


def taken(fleet: ResolvedFleet, agent: str) -> str:
    """Return the reason why no agent outside of the file can be called `agent`; empty when one can."""
    slug = names.slug(agent)
    if not names.is_name(agent):
        return f"`{agent[: names.MAX_NAME]}` cannot be an agent's name"
    if slug in names.RESERVED:
        return f"the name `{slug}` is reserved for the kit"
    if slug in fleet.slugs:
        return f"`{slug}` is a name in agents.yaml"
    return ""
