"""Rules for what replicas of the gateway share: PostgreSQL and Valkey, which nobody brings along silently."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_contract.codes import Code
from pallas_contract.fleet.access_model import Gateway
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.problems import Problem
from pallas_contract.validate.suggestions import Suggestions

_AT = "gateway"


def problems(fleet: ResolvedFleet, gateway: Gateway, tree: Source) -> Iterator[Problem]:
    """Yield a problem per store that several replicas lack, and per service that cannot be one."""
    if gateway.replicas > 1:
        yield from _missing(gateway, tree)
    for key, store in (("store", gateway.store), ("counters", gateway.counters)):
        if store and store.service:
            yield from _service(fleet, key, store.service, tree)


def _missing(gateway: Gateway, tree: Source) -> Iterator[Problem]:
    many = f"{gateway.replicas} replicas"
    kept = "audit" if gateway.audit else "confirm" if gateway.confirm else "tasks: {durable: true}"
    if gateway.keeps and gateway.store is None:
        message = f"{many} with `{kept}` need one PostgreSQL for all: `gateway.store`"
        hint = (
            "add `store: {url: {file: secrets/postgres.url}}`, with `postgresql://user:password@host:5432/name` in it"
        )
        yield tree.problem(_AT, "replicas", message=message, hint=hint, code=Code.REPLICAS_WITHOUT_STORE)
    if gateway.tenants and gateway.counters is None:
        message = f"{many} with `tenants` need one Valkey for all: `gateway.counters`"
        hint = "add `counters: {url: {file: secrets/valkey.url}}`, with `valkey://host:6379/0` in it"
        yield tree.problem(_AT, "replicas", message=message, hint=hint, code=Code.REPLICAS_WITHOUT_STORE)


def _service(fleet: ResolvedFleet, key: str, name: str, tree: Source) -> Iterator[Problem]:
    fitting = sorted(name for name, service in fleet.services.items() if service.provides == "other")
    if name in fitting:
        return
    message = f"there is no service `{name}`"
    hint = Suggestions().hint(name, fitting) or "add it to `services`, with `image` and `provides: other`"
    if name in fleet.services:
        message = f"`{name}` is no database: it has `provides: {fleet.services[name].provides}`"
        hint = "name a service with `provides: other`"
    yield tree.problem(_AT, key, "service", message=message, hint=hint, code=Code.STORE_SERVICE)
