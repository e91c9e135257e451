"""All that the gateway keeps over a restart, and shares with other replicas; nothing where nothing needs it."""

from __future__ import annotations

import socket
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Gauge
from starlette.applications import Starlette

from pallas_gateway.audit.recorder import Audit
from pallas_gateway.audit.retention import Retention
from pallas_gateway.audit.shared_trail import SharedTrail
from pallas_gateway.audit.trail import Records, Trail
from pallas_gateway.confirmation.api import Api
from pallas_gateway.confirmation.confirmations import Confirmations, Store
from pallas_gateway.confirmation.decisions import Decisions
from pallas_gateway.confirmation.gatekeeper import Gatekeeper, Noted, nothing
from pallas_gateway.confirmation.shared import SharedConfirmations
from pallas_gateway.metrics import Metrics
from pallas_gateway.own.execution.durable.journal import Journal, SqliteJournal
from pallas_gateway.own.execution.durable.shared import SharedJournal
from pallas_gateway.policy.policy import Policy
from pallas_gateway.settings import Settings
from pallas_gateway.state.counters import Counters
from pallas_gateway.state.postgres import Postgres
from pallas_gateway.watching.board import Board

if TYPE_CHECKING:
    from pallas_gateway.state.database import Database

AUDIT = "audit"
"""Name of the folder of the audit in that of the state."""


def noting(noted: Noted, board: Board | None) -> Noted:
    """Return what has a change of a confirmation recorded, and shown once it is."""

    async def shown(id_: str, state: str, about: Mapping[str, Any]) -> bool:
        done = await noted(id_, state, about)
        if done and board:
            board.confirmation(id_, state, about)
        return done

    return shown


class Keeping:
    """The audit, confirmations, the journal of graphs and shared counts of one gateway, of which it may have none."""

    def __init__(self, settings: Settings, policy: Policy) -> None:
        """Open them. What is in databases is not waited for: while one is away, what needs it is refused.

        Raises:
            CannotStore: one cannot be kept in its files.
        """
        self.board = Board() if settings.gateway.console else None
        """What people see of calls, in memory alone."""
        self.audit: Audit | None = None
        self._database: Database | None = None
        self._postgres: Postgres | None = None
        self._retention: Retention | None = None
        self.counters: Counters | None = None
        self.gatekeeper: Gatekeeper | None = None
        self.api: Starlette | None = None
        self.journal: Journal | None = None
        fleet = settings.fleet.name
        self.decisions: Decisions | None = None
        key = settings.audit_key
        if settings.store and settings.gateway.keeps:
            self._postgres = Postgres(settings.store, fleet)
        if settings.counters and settings.gateway.tenants:
            self.counters = Counters(settings.counters, fleet)
        if settings.gateway.audit:
            size = settings.gateway.audit.bytes
            trail: Records
            if self._postgres:
                trail = shared = SharedTrail(self._postgres, key, name=socket.gethostname(), size=size)
                self._retention = Retention(self._postgres, shared, size)
            else:
                trail = Trail(settings.state / AUDIT, key, size=size)
            self.audit = Audit(trail, key, policy.version)
        if (settings.gateway.is_durable or settings.gateway.confirm) and not self._postgres:
            from pallas_gateway.state.database import FILE, Database  # noqa: PLC0415 - SQLite, for who needs it

            self._database = Database(settings.state / FILE)
        if settings.gateway.is_durable:
            self.journal = self._journal()
        self.confirmations = self._confirmations(settings)
        if self.confirmations:
            noted = self.audit.confirmation if self.audit else nothing
            self.gatekeeper = Gatekeeper(self.confirmations, noting(noted, self.board))
            shown = {"shown": self.board.confirmation} if self.board else {}
            self.decisions = Decisions(self.confirmations, noted, **shown)
            self.api = Api(self.decisions).app()

    @property
    def problem(self) -> str:
        """Return why something cannot be stored, or counted together, at present; empty where all can."""
        parts = (self.audit, self._database, self._postgres, self.counters)
        return "; ".join(filter(None, (part.problem for part in parts if part)))

    def start(self, metrics: Metrics) -> list[Coroutine[Any, Any, None]]:
        """Begin the audit, and return what has to run as long as the gateway does."""
        jobs = []
        self._observe(metrics.registry)
        if self._postgres:
            jobs.append(self._postgres.watch())
        if self.counters:
            jobs.append(self.counters.watch())
        if self.audit:
            self.audit.start()
            self.audit.observe(metrics.registry)
            jobs.append(self.audit.watch())
        if self._retention:
            jobs.append(self._retention.watch())
        return jobs

    async def stop(self) -> None:
        """Write to the end, and close files and connections."""
        if self.audit:
            await self.audit.stop()
        if self._database:
            self._database.close()
        if self._postgres:
            await self._postgres.close()
        if self.counters:
            await self.counters.close()

    def _confirmations(self, settings: Settings) -> Store | None:
        if not settings.gateway.confirm:
            return None
        if self._postgres:
            return SharedConfirmations(self._postgres)
        return Confirmations(self._database) if self._database else None

    def _journal(self) -> Journal | None:
        if self._postgres:
            return SharedJournal(self._postgres)
        return SqliteJournal(self._database) if self._database else None

    def _observe(self, registry: CollectorRegistry) -> None:
        shared: dict[str, Postgres | Counters | None] = {"store": self._postgres, "counters": self.counters}
        there = {name: part for name, part in shared.items() if part}
        if not there:
            return
        text = "1 while what replicas share can be used, else 0: by `store` and `counters` of the gateway."
        up = Gauge("pallas_gateway_shared_state_up", text, ["state"], registry=registry)
        for name, part in there.items():
            up.labels(name).set_function(partial(_is_up, part))


def _is_up(part: Postgres | Counters) -> float:
    return float(not part.problem)
