"""Calls on their way into the audit: a record of each decision before it takes effect, and of each outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge

from pallas_contract.documents import audit_record
from pallas_gateway.audit.trail import Records
from pallas_gateway.data_plane.record import Call, Record, Unrecorded
from pallas_gateway.tenants import is_counted
from pallas_service.sqlite_file import CannotStore

SYNC_SECONDS = 1.0
"""Seconds after which records survive a power cut."""
HEAD_SECONDS = 60.0
"""Seconds after which the last record is logged, where there are new ones."""
_VERSION = 16
"""Characters of the version of a policy that tell it from others."""
_SHOWN = 200
"""Characters of a name from outside that are written."""
log = structlog.get_logger(__name__)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Audit:
    """A `Watcher` and `Ledger` that writes to `trail`; `policy` is the version of what decisions follow."""

    def __init__(self, trail: Records, key: bytes, policy: str, now: Callable[[], datetime] = _utc_now) -> None:
        self._trail = trail
        self._key = key
        self._policy = policy[:_VERSION]
        self._now = now
        self._lost = 0
        self._synced = trail.head
        self._doubted = 0
        self._logged = trail.head
        self._syncing = asyncio.Lock()
        self._behind = asyncio.Event()
        self._unwritten = ""
        self._unsynced = ""
        self._failures = Counter("pallas_gateway_audit_failures", "Records that could not be written.", registry=None)

    @property
    def problem(self) -> str:
        """Return why records cannot be written, or may not survive a power cut, at present; empty where all is well."""
        return self._unwritten or self._unsynced

    def start(self) -> None:
        """Write that the gateway began; where that cannot be done, it is done before the next record."""
        started = {"event": "started", "policy": self._policy, "cut": self._trail.cut}
        if self._trail.broken:
            started["broken"] = self._trail.broken
        try:
            self._append(started)
        except Unrecorded:
            self._lost += 1

    async def stop(self) -> None:
        """Write that it ends, and close the files."""
        with suppress(Unrecorded):
            self._append({"event": "stopped"})
        await self.sync()
        self._log_head()
        self._trail.close()

    def digest(self, arguments: object) -> str:
        return audit_record.arguments_digest(self._key, arguments)

    def allowed(self, call: Call) -> int:
        if not _is_audited(call):
            return 0
        return self._append({"event": "decision", **_about(call), "decision": "allow", "policy": self._policy})

    async def kept(self, seq: int) -> None:
        try:
            await self._trail.kept(seq)
        except CannotStore as error:
            self._unwritten = self._failed(str(error))
            raise Unrecorded("the audit cannot be written") from None

    async def confirmation(self, id_: str, state: str, about: Mapping[str, Any]) -> bool:
        """Record what becomes of a confirmation, and return whether that is done, also for a power cut."""
        try:
            seq = self._append({"event": "confirmation", "id": id_, "state": state, **about})
        except Unrecorded:
            return False
        await self.sync()
        return self._doubted < seq <= self._synced.seq

    def begin(self, call: Call) -> None:
        """Write nothing: what is to be done is not known yet."""

    def end(self, record: Record) -> None:
        call = record.call
        ended = {"status": record.status, "seconds": round(record.seconds, 4)}
        try:
            if call.decision:
                self._append(
                    {"event": "outcome", "of": call.decision, **_about(call), "reason": record.outcome, **ended}
                )
            elif record.outcome not in ("answered", "hung_up"):
                refused = {"decision": "refuse", "reason": record.outcome, "policy": self._policy}
                self._append({"event": "decision", **_about(call), **refused, **ended})
        except Unrecorded:
            self._lost += 1

    def observe(self, registry: CollectorRegistry) -> None:
        """Add its metrics to `registry`."""
        records = Gauge("pallas_gateway_audit_records", "Number of the last record.", registry=registry)
        records.set_function(lambda: self._trail.head.seq)
        up = Gauge("pallas_gateway_audit_up", "1 while records can be written, else 0.", registry=registry)
        up.set_function(lambda: float(not self.problem))
        registry.register(self._failures)

    @property
    def head(self) -> str:
        """Return the last record, as `pallas-gen audit verify --head` takes it."""
        return str(self._trail.head)

    async def watch(self) -> None:
        """Have the records survive a power cut, and log the last of them; for ever, whatever a round raises."""
        logged = time.monotonic()
        while True:
            with suppress(TimeoutError):
                # a file that is full is synced at once, and the oldest goes: the audit takes no more room than it has
                await asyncio.wait_for(self._behind.wait(), SYNC_SECONDS)
            self._behind.clear()
            try:
                await self.sync()
                self._mend()
            except Exception:
                log.exception("the audit could not be synced, the next round follows")
            if time.monotonic() - logged >= HEAD_SECONDS:
                logged = time.monotonic()
                self._log_head()

    async def sync(self) -> None:
        """Wait until all records that are there survive a power cut.

        Trouble is noted as `problem`, until a record that is written after it is on disk: the kernel reports a failure
        once, and the next `fdatasync` is fine although what the first one held may be lost.
        """
        async with self._syncing:  # of two at once the failure would be reported to one alone
            head = self._trail.head
            if head == self._synced:
                return
            try:
                await self._trail.sync()
            except CannotStore as error:
                self._doubted = self._trail.head.seq if self._trail.forgets else 0
                self._unsynced = self._failed(str(error), until=self._doubted)
                return
            self._synced = head
            if self._unsynced and head.seq > self._doubted:
                self._unsynced = ""
                log.info("the audit reaches the disk again")

    def _mend(self) -> None:
        """Write how many records were lost, as soon as that can be: no call has to come for it."""
        if self._unwritten:
            with suppress(Unrecorded):
                self._append({"event": "resumed"})

    def _append(self, fields: dict[str, Any]) -> int:
        at = {"time": self._now().isoformat(timespec="milliseconds")}
        try:
            if self._lost:
                self._trail.append({**at, "event": "lost", "records": self._lost})
                self._lost = 0
            seq = self._trail.append(at | fields)
        except CannotStore as error:
            self._unwritten = self._failed(str(error))
            raise Unrecorded("the audit cannot be written") from None
        if self._trail.is_behind:
            self._behind.set()
        if self._unwritten:
            log.info("the audit is written again")
            self._unwritten = ""
        return seq

    def _failed(self, reason: str, **about: int) -> str:
        """Count a failure, log the first of those in a row, and return the problem that it is."""
        if not self.problem:
            log.error("the audit cannot be written", reason=reason, **about)
        self._failures.inc()
        return f"the audit cannot be written: {reason.rpartition(': ')[2]}"

    def _log_head(self) -> None:
        if self._trail.head != self._logged:
            self._logged = self._trail.head
            log.info("audit", head=self.head)


def _is_audited(call: Call) -> bool:
    """Return whether a request makes somebody work: lists, pings and notifications do not."""
    return call.http_method == "POST" and is_counted(call.method)


def _about(call: Call) -> dict[str, Any]:
    """Return whose call it is and of what; of arguments the digest alone."""
    about = {
        "caller": call.caller,
        "tenant": call.tenant,
        "agent": call.agent[:_SHOWN],
        "method": call.method[:_SHOWN],
        "name": (call.name or "")[:_SHOWN],
        "arguments": call.arguments,
        "trace_id": call.trace,
    }
    return {key: value for key, value in about.items() if value}
