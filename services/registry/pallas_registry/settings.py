"""The settings of the registry, read from the environment; the names are the contract's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.launch import addresses as launch_addresses
from pallas_contract.launch.addresses import Placement
from pallas_contract.problems import Problem, Refused, Where


@dataclass(frozen=True, slots=True)
class Settings:
    """Paths, addresses and the format of the log.

    `bind` is None for the file's own `registry_port`. `addresses` maps agent -> `host:port`; None means DNS.
    `domain` is the one that has a record per replica; empty where an agent's own name has them. `pods_domain` has
    those that are not ready too. `hosts` is what `/mcp` is known by; empty for what follows from the file.
    """

    config: Path
    log_format: str
    bind: tuple[str, int] | None = None
    addresses: Mapping[str, str] | None = None
    domain: str = ""
    pods_domain: str = ""
    hosts: tuple[str, ...] = ()
    registrations: Path | None = None
    """File in which registrations outlive a restart; None where they do not."""
    absences: Path | None = None
    """File in which the supervisor says why agents are not up; None where there is no supervisor."""
    placement: Placement = "local"
    """Whether the fleet runs in containers or as processes of this machine, as it was told."""


def read(env: Mapping[str, str]) -> Settings:
    """Return settings from environment variables; an empty variable is as good as an unset one.

    Raises:
        Refused: with every variable that cannot be understood.
    """
    problems: list[Problem] = []
    bind = _bind(env.get(names.ENV_BIND, ""), problems)
    addresses = _addresses(env.get(names.ENV_ADDRESSES, ""), problems)
    placement = _placement(env, problems)
    if problems:
        raise Refused(problems)
    config = Path(env.get(names.ENV_AGENTS_CONFIG) or names.AGENTS_FILE)
    registrations = env.get(names.ENV_REGISTRATIONS)
    return Settings(
        config=config,
        log_format=env.get(names.ENV_LOG_FORMAT) or "json",
        bind=bind,
        addresses=addresses,
        domain=env.get(names.ENV_REPLICA_DOMAIN, ""),
        pods_domain=env.get(names.ENV_PODS_DOMAIN, ""),
        hosts=tuple(host.strip() for host in env.get(names.ENV_ALLOWED_HOSTS, "").split(",") if host.strip()),
        registrations=config.parent / registrations if registrations else None,
        absences=Path(env[names.ENV_ABSENCES]) if env.get(names.ENV_ABSENCES) else None,
        placement=placement,
    )


def authority(text: str) -> tuple[str, int] | None:
    """Return `address:port` split, the brackets of an IPv6 address removed; None when it is not one."""
    host, _, port = text.rpartition(":")
    # str.isdigit takes digits of every script, and int() does too
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        return None
    return host.removeprefix("[").removesuffix("]"), int(port)


def _bind(text: str, problems: list[Problem]) -> tuple[str, int] | None:
    if not text:
        return None
    bind = authority(text)
    if bind is None:
        problems.append(_problem(names.ENV_BIND, f"must be `address:port`, not {text!r}"))
    return bind


def _placement(env: Mapping[str, str], problems: list[Problem]) -> Placement:
    try:
        return launch_addresses.placement(env)
    except ValueError as error:
        problems.append(_problem(names.ENV_PLACEMENT, str(error)))
        return "local"


def _addresses(text: str, problems: list[Problem]) -> Mapping[str, str] | None:
    if not text:
        return None
    try:
        data = json.loads(text)
    except ValueError as error:
        problems.append(_problem(names.ENV_ADDRESSES, f"is not JSON: {error}"))
        return None
    if not isinstance(data, dict) or not all(isinstance(value, str) and authority(value) for value in data.values()):
        problems.append(_problem(names.ENV_ADDRESSES, 'must be a JSON object of agents: {"name": "address:port"}'))
        return None
    return data


def _problem(variable: str, message: str) -> Problem:
    return Problem(Where(variable), message, code=Code.WRONG_VARIABLE)
