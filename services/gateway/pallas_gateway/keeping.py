"""All that the gateway keeps over a restart: audit, confirmations, durable graphs; nothing where nothing needs it."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any

from starlette.applications import Starlette

from pallas_gateway.audit.recorder import Audit
from pallas_gateway.audit.trail import Trail
from pallas_gateway.confirmation.api import Api
from pallas_gateway.confirmation.confirmations import Confirmations
from pallas_gateway.confirmation.gatekeeper import Gatekeeper, Noted, nothing
from pallas_gateway.metrics import Metrics
from pallas_gateway.own.execution.durable.journal import Journal, SqliteJournal
from pallas_gateway.policy.policy import Policy
from pallas_gateway.settings import Settings
from pallas_gateway.state.database import FILE, Database
from pallas_gateway.watching.board import Board

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
    """The audit, the confirmations and the journal of graphs of one gateway, of which it may have none."""

    def __init__(self, settings: Settings, policy: Policy) -> None:
        """Open them.

        Raises:
            CannotStore: one cannot be kept.
        """
        self.board = Board() if settings.gateway.console else None
        """What people see of calls, in memory alone."""
        self.audit: Audit | None = None
        self._database: Database | None = None
        self.gatekeeper: Gatekeeper | None = None
        self.api: Starlette | None = None
        self.journal: Journal | None = None
        self.confirmations: Confirmations | None = None
        key = settings.audit_key
        if settings.gateway.audit:
            trail = Trail(settings.state / AUDIT, key, size=settings.gateway.audit.bytes)
            self.audit = Audit(trail, key, policy.version)
        durable = bool(settings.gateway.tasks and settings.gateway.tasks.durable)
        if settings.gateway.confirm or durable:
            self._database = Database(settings.state / FILE)
        if self._database and durable:
            self.journal = SqliteJournal(self._database)
        if self._database and settings.gateway.confirm:
            self.confirmations = Confirmations(self._database)
            noted = noting(self.audit.confirmation if self.audit else nothing, self.board)
            self.gatekeeper = Gatekeeper(self.confirmations, noted)
            self.api = Api(self.confirmations, noted).app()

    @property
    def problem(self) -> str:
        """Return why something cannot be stored at present; empty where all can."""
        problems = [self.audit.problem if self.audit else "", self._database.problem if self._database else ""]
        return "; ".join(filter(None, problems))

    def start(self, metrics: Metrics) -> list[Coroutine[Any, Any, None]]:
        """Begin the audit, and return what has to run as long as the gateway does."""
        if self.audit is None:
            return []
        self.audit.start()
        self.audit.observe(metrics.registry)
        return [self.audit.watch()]

    async def stop(self) -> None:
        """Write to the end, and close the files."""
        if self.audit:
            await self.audit.stop()
        if self._database:
            self._database.close()
