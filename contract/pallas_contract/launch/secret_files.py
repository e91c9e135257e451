"""Every secret file of a fleet by the program that gets it, the one list for all targets and for messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pallas_contract import names
from pallas_contract.fleet.base import SecretFile
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch import credentials


@dataclass(frozen=True, slots=True, order=True)
class Secret:
    """A secret by reference: `file`, relative to agents.yaml or absolute, appears to a program as `target`."""

    target: str
    """File name in the secrets folder."""
    file: str
    path: tuple[str, ...] = ()
    """Keys in agents.yaml that lead to `file`; empty for a file that is not named there."""

    @property
    def is_variable(self) -> bool:
        """True when it becomes an environment variable; a token that is only compared has no name for one."""
        return self.target.isidentifier()

    @property
    def place(self) -> tuple[str, ...]:
        """Return the keys that messages point to: of a variable or a registration its own, else that of the file."""
        return self.path[:-1] if self.path[-3:-2] == ("secrets",) or self.path[:1] == ("registry",) else self.path


def of_fleet(fleet: ResolvedFleet) -> Iterator[Secret]:
    """Yield every secret that agents.yaml names, also those in `defaults` that no agent takes from there."""
    yield from _variables(fleet.written.defaults.secrets, ("defaults",), {})
    for name in fleet.agents:
        yield from of_agent(fleet, name)
    for name in fleet.services:
        yield from of_service(fleet, name)
    yield from of_registry(fleet)
    yield from of_gateway(fleet)


def of_agent(fleet: ResolvedFleet, name: str) -> tuple[Secret, ...]:
    """Return the secrets of agent `name`: its variables, the tokens it accepts and presents, and an issuer's keys."""
    agent = fleet.agents[name]
    written = fleet.written.agents[name]
    inherited = {key: ("defaults",) for key in agent.secrets if key not in written.secrets}
    secrets = [*_variables(agent.secrets, ("agents", name), inherited)]
    for caller, secret in agent.access.tokens.items():
        path = (*credentials.token_owner(fleet, name, caller), "tokens", caller, "file")
        secrets.append(Secret(names.token_file(caller), secret.file, path))
    if agent.access.jwt and agent.access.jwt.jwks_file:
        path = (*credentials.jwt_owner(fleet, name), "jwt", "jwks_file")
        secrets.append(Secret(names.KEYS_FILE, agent.access.jwt.jwks_file, path))
    for peer, secret in credentials.presented(fleet, name).items():
        path = (*credentials.token_owner(fleet, peer, name), "tokens", name, "file")
        secrets.append(Secret(names.call_token(peer), secret.file, path))
    return _unique(secrets)


def of_service(fleet: ResolvedFleet, name: str) -> tuple[Secret, ...]:
    """Return the secrets of service `name`."""
    return _unique(_variables(fleet.services[name].secrets, ("services", name), {}))


def of_registry(fleet: ResolvedFleet) -> tuple[Secret, ...]:
    """Return the tokens that agents outside of the file register with."""
    registration = fleet.registry.registration
    tokens = registration.tokens if registration else {}
    path = ("registry", "registration", "tokens")
    return _unique(
        Secret(names.registration_secret(name), token.file, (*path, name, "file")) for name, token in tokens.items()
    )


def of_gateway(fleet: ResolvedFleet) -> tuple[Secret, ...]:
    """Return the gateway's variables, tokens that it takes and shows, keys of issuer and audit, and URLs of stores."""
    if fleet.gateway is None or fleet.written.gateway is None:
        return ()
    own = fleet.written.gateway.access
    access = fleet.gateway.access
    secrets = [*gateway_variables(fleet)]
    for caller, secret in access.tokens.items():
        owner = ("gateway", "access") if caller in own.tokens else ("access",)
        secrets.append(Secret(names.token_file(caller), secret.file, (*owner, "tokens", caller, "file")))
    if access.jwt and access.jwt.jwks_file:
        owner = ("gateway", "access") if own.jwt else ("access",)
        secrets.append(Secret(names.KEYS_FILE, access.jwt.jwks_file, (*owner, "jwt", "jwks_file")))
    if fleet.gateway.audit:
        secrets.append(Secret(names.AUDIT_KEY, fleet.gateway.audit.key.file, ("gateway", "audit", "key", "file")))
    stores = ("store", names.STORE_URL, fleet.gateway.store), ("counters", names.COUNTERS_URL, fleet.gateway.counters)
    for key, target, store in stores:
        if store:
            secrets.append(Secret(target, store.url.file, ("gateway", key, "url", "file")))
    for agent, secret in credentials.presented_by_gateway(fleet).items():
        path = (*credentials.token_owner(fleet, agent, names.GATEWAY), "tokens", names.GATEWAY, "file")
        secrets.append(Secret(names.call_token(agent), secret.file, path))
    return _unique(secrets)


def gateway_variables(fleet: ResolvedFleet) -> Iterator[Secret]:
    """Yield the secrets of the gateway that become environment variables."""
    if fleet.gateway:
        yield from _variables(fleet.gateway.secrets, ("gateway",), {})


def _variables(
    secrets: Mapping[str, SecretFile], owner: tuple[str, ...], inherited: Mapping[str, tuple[str, ...]]
) -> Iterator[Secret]:
    for key, secret in secrets.items():
        yield Secret(key, secret.file, (*inherited.get(key, owner), "secrets", key, "file"))


def _unique(secrets: Iterable[Secret]) -> tuple[Secret, ...]:
    """Return `secrets` in the order of their targets. Of two with one target the later one is meant: a token."""
    return tuple(sorted({secret.target: secret for secret in secrets}.values()))
