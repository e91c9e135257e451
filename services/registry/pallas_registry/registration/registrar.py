"""What registering, heartbeats, silence and leaving do: to the ledger, the file that keeps it, and the board."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Protocol

import structlog

from pallas_contract import names
from pallas_contract.documents.reason import Reason
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.validate import registration_rules
from pallas_registry.discovery.sighting import Sighting
from pallas_registry.registration import errors, token_files
from pallas_registry.registration.errors import Refusal
from pallas_registry.registration.leases import Forgiven, Ledger, Registration, expiry, none_forgiven
from pallas_registry.registration.messages import Heartbeat, Register
from pallas_registry.registration.reach import Reach
from pallas_registry.registration.store import RegistrationStore
from pallas_registry.state.status import Verdict
from pallas_service.sqlite_file import CannotStore

TICK = 1.0
"""Seconds between two looks at who has been silent."""
NOT_LOOKED_UP = Sighting(problem=Reason("NotProbedYet", "not looked up yet"), unsure=True)

_log = structlog.get_logger()


class Board(Protocol):
    """What is told of registered agents (board.Board)."""

    def sight(self, agent: str, sighting: Sighting | None) -> None: ...

    def vouch(self, agent: str, said: Verdict) -> None: ...

    def dismiss(self, agent: str, reason: Reason) -> None: ...


class Registrar:
    """`members` hears when it is others who are registered, before the board is told of the newcomer."""

    def __init__(
        self,
        store: RegistrationStore,
        board: Board,
        members: Callable[[], None],
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        forgiven: Forgiven = none_forgiven,
    ) -> None:
        self._store, self._board, self._members, self._now = store, board, members, now
        self.ledger = Ledger(clock=clock, now=now, forgiven=forgiven)
        self._turn = asyncio.Lock()
        self._to_forget: set[str] = set()
        self._probed: dict[str, bool] = {}
        self._fleet: ResolvedFleet | None = None
        self.reach = Reach(())
        for kept in store.load():
            self.ledger.recall(kept)

    @property
    def urls(self) -> Mapping[str, str]:
        """Agent -> URL of those that are probed."""
        return {each.agent: url for each in self.ledger.all if (url := self.url(each.agent))}

    def url(self, agent: str) -> str:
        """The URL at which `agent` is probed; empty when it is not registered, or not probed."""
        found = self.ledger.get(agent)
        url = found.said.url if found else None
        return url if url and self.reach.host(url) else ""

    def use(self, fleet: ResolvedFleet) -> None:
        """Take over what the file says: it has the first right to a name, and ends what it no longer lets register.

        `members` is not called: the file changed them too.
        """
        self._fleet = fleet
        chosen = fleet.registry.registration
        self.reach = Reach(chosen.reach if chosen else ())
        for each in self.ledger.all:
            if reason := _barred(fleet, each.agent, each.token):
                self._end(each.agent, _ended(reason))

    def announce(self) -> None:
        """Tell the board of everybody who is registered, and of whom it is to see the addresses."""
        for each in self.ledger.all:
            self._tell(each.agent)

    async def register(self, token: str, said: Register) -> Registration:
        """Take an agent in, or take over what it now says of itself; kept before this returns.

        Raises:
            Refusal: the name is another's, there are too many, its URL is out of bounds, or it cannot be kept.
        """
        async with self._turn:
            before = self._own(token, said.agent_id)
            self._check(token, said, new=before is None)
            registration = Registration(said.agent_id, token, before.since if before else self._now(), said)
            await _kept(self._store.save(registration))
            self._to_forget.discard(said.agent_id)
            try:
                self._check(token, said, new=False)  # agents.yaml may have been read again meanwhile
            except Refusal:
                self._to_forget.add(said.agent_id)
                raise
            self.ledger.put(registration)
        self._members()
        if before and before.said.url != said.url:
            self._probed.pop(said.agent_id, None)
        self._tell(said.agent_id)
        if before is None:
            _log.info("agent registered", agent=registration.agent, token=token)
        return registration

    async def deregister(self, token: str, agent: str) -> None:
        """Let an agent go.

        Raises:
            Refusal: it is not registered, is another token's, or the file cannot be written to.
        """
        async with self._turn:
            if self._own(token, agent) is None:
                raise _unregistered(agent)
            await _kept(self._store.forget([agent]))
            if self.ledger.get(agent):
                self._end(agent, Reason("Deregistered", "deregistered"))
                self._members()

    def beat(self, token: str, said: Heartbeat) -> Registration:
        """Note a sign of life.

        Raises:
            Refusal: the agent is not registered, or is another token's.
        """
        registration = self._own(token, said.agent_id)
        if registration is None:
            raise _unregistered(said.agent_id)
        self.ledger.beat(said)
        self._board.vouch(said.agent_id, self.ledger.verdict(said.agent_id))
        return registration

    async def tick(self) -> None:
        """Draw the conclusions from silence. What cannot be forgotten in the file now is tried again."""
        expired = self.ledger.expired()
        for each in expired:
            self._end(each.agent, _ended(f"no heartbeat for {expiry(each.said.heartbeat_interval):g} s"))
        if expired:
            self._members()
        for each in self.ledger.all:
            self._board.vouch(each.agent, self.ledger.verdict(each.agent))
        async with self._turn:
            if gone := sorted(self._to_forget):
                try:
                    await self._store.forget(gone)
                    self._to_forget.difference_update(gone)
                except CannotStore as error:
                    _log.error("registrations cannot be stored", reason=str(error))

    def _own(self, token: str, agent: str) -> Registration | None:
        found = self.ledger.get(agent)
        if found is not None and found.token != token and not self._bound(token, agent):
            raise Refusal(403, errors.FORBIDDEN, f"{agent} is registered with another token")
        return found

    def _bound(self, token: str, agent: str) -> bool:
        """A token that agents.yaml binds to a name has a right to it, whoever has it now."""
        chosen = self._fleet.registry.registration if self._fleet else None
        known = chosen.tokens.get(token) if chosen else None
        return known is not None and names.slug(agent) in map(names.slug, known.agents)

    def _check(self, token: str, said: Register, *, new: bool) -> None:
        assert self._fleet is not None  # noqa: S101 - `use` comes first
        if reason := _barred(self._fleet, said.agent_id, token):
            raise Refusal(403, errors.FORBIDDEN, reason)
        others = {names.slug(each.agent) for each in self.ledger.all if each.agent != said.agent_id}
        if names.slug(said.agent_id) in others:
            raise Refusal(403, errors.FORBIDDEN, f"the host name {names.slug(said.agent_id)} is taken")
        chosen = self._fleet.registry.registration
        most = chosen.max_agents if chosen else 0
        if new and len(self.ledger.all) >= most:
            raise Refusal(409, errors.FULL, f"{most} agents are registered, which is the most that agents.yaml allows")
        if said.url and self.reach and not self.reach.host(said.url):
            problem = {"field": "url", "message": "its host is not among those that agents.yaml allows"}
            raise Refusal(400, errors.INVALID_PARAMS, "Invalid params", {"problems": [problem]})

    def _tell(self, agent: str) -> None:
        """What the board knows of its addresses stays, unless it begins or ends to be probed."""
        probed = bool(self.url(agent))
        if self._probed.get(agent) is not probed:
            self._probed[agent] = probed
            self._board.sight(agent, NOT_LOOKED_UP if probed else None)
        self._board.vouch(agent, self.ledger.verdict(agent))

    def _end(self, agent: str, reason: Reason) -> None:
        self._to_forget.add(agent)
        self._probed.pop(agent, None)
        self.ledger.remove(agent)
        self._board.dismiss(agent, reason)
        _log.info("registration ended", agent=agent, reason=reason.message)


def _barred(fleet: ResolvedFleet, agent: str, token: str) -> str:
    """Why `agent` cannot be registered with the token of this name; empty when it can."""
    chosen = fleet.registry.registration
    if chosen is None:
        return "agents.yaml lets nobody register"
    if token not in chosen.tokens:
        return f"agents.yaml no longer has the token `{token}`"
    if not token_files.admits(token_files.bindings(chosen), token, agent):
        return f"agents.yaml does not let the token `{token}` speak for it"
    return registration_rules.taken(fleet, agent)


async def _kept(work: Awaitable[None]) -> None:
    try:
        await work
    except CannotStore as error:
        _log.error("registrations cannot be stored", reason=str(error))
        raise Refusal(503, errors.NOT_KEPT, "the registration cannot be stored") from None


def _ended(why: str) -> Reason:
    return Reason("RegistrationEnded", f"registration ended: {why}")


def _unregistered(agent: str) -> Refusal:
    return Refusal(404, errors.UNREGISTERED, f"{agent} is not registered: call server.register first")
