"""The effects of registering, heartbeats, silence and leaving: on the leases, the store and the agent_states."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Protocol

import structlog

from pallas_contract import names
from pallas_contract.documents.reason import Reason
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.validate.entry import registration_rules
from pallas_registry.discovery.sighting import Sighting
from pallas_registry.registration import errors, token_files
from pallas_registry.registration.errors import Refusal
from pallas_registry.registration.leases import Forgiven, Leases, Registration, expiry, none_forgiven
from pallas_registry.registration.messages import Heartbeat, Register
from pallas_registry.registration.store import RegistrationStore
from pallas_registry.state.status import Condition
from pallas_service.http.reach import Reach
from pallas_service.sqlite_file import CannotStore

TICK = 1.0
"""Seconds between two looks at who has been silent."""
NOT_LOOKED_UP = Sighting(problem=Reason("NotProbedYet", "not looked up yet"), unsure=True)

_log = structlog.get_logger()


class RegistrationObserver(Protocol):
    """The part of state.agents.AgentStates that hears of registered agents."""

    def set_sighting(self, agent: str, sighting: Sighting | None) -> None: ...

    def set_reported(self, agent: str, condition: Condition) -> None: ...

    def remove(self, agent: str, reason: Reason) -> None: ...


class Registrar:
    """The registrations, in the store and in the leases.

    `members` hears when it is others who are registered, before the agent_states is told of the newcomer.
    """

    def __init__(
        self,
        store: RegistrationStore,
        agent_states: RegistrationObserver,
        members: Callable[[], None],
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        forgiven: Forgiven = none_forgiven,
    ) -> None:
        self._store = store
        self._agent_states = agent_states
        self._members = members
        self._now = now
        self.leases = Leases(clock=clock, now=now, forgiven=forgiven)
        self._turn = asyncio.Lock()
        self._to_forget: set[str] = set()
        self._probed: dict[str, bool] = {}
        self._fleet: ResolvedFleet | None = None
        self.reach = Reach(())
        for registration in store.load():
            self.leases.recall(registration)

    @property
    def urls(self) -> Mapping[str, str]:
        """The URL of each agent that is probed."""
        return {registration.agent: url for registration in self.leases.all if (url := self.url(registration.agent))}

    def url(self, agent: str) -> str:
        """Return the URL at which `agent` is probed; empty when it is not registered, or not probed."""
        registration = self.leases.get(agent)
        url = registration.params.url if registration else None
        return url if url and self.reach.host(url) else ""

    def use(self, fleet: ResolvedFleet) -> None:
        """Take over what the file says: it has the first right to a name, and ends what it no longer lets register.

        `members` is not called: the file changed them too.
        """
        self._fleet = fleet
        settings = fleet.registry.registration
        self.reach = Reach(settings.reach if settings else ())
        for registration in self.leases.all:
            if reason := _barred(fleet, registration.agent, registration.token):
                self._end(registration.agent, _ended(reason))

    def announce(self) -> None:
        """Tell the model of everybody who is registered, and of whom it is to see the addresses."""
        for registration in self.leases.all:
            self._announce(registration.agent)

    async def register(self, token: str, params: Register) -> Registration:
        """Take an agent in, or take over what it now says of itself; kept before this returns.

        Raises:
            Refusal: the name is another's, there are too many, its URL is out of bounds, or it cannot be kept.
        """
        async with self._turn:
            before = self._owned(token, params.agent_id)
            self._check(token, params, new=before is None)
            registration = Registration(params.agent_id, token, before.since if before else self._now(), params)
            await _stored(self._store.save(registration))
            self._to_forget.discard(params.agent_id)
            try:
                self._check(token, params, new=False)  # agents.yaml may have been read again meanwhile
            except Refusal:
                # it is in the file already: the next tick takes it out again
                self._to_forget.add(params.agent_id)
                raise
            self.leases.put(registration)
        self._members()
        # at another URL what the agent_states knows of its addresses is worth nothing
        if before and before.params.url != params.url:
            self._probed.pop(params.agent_id, None)
        self._announce(params.agent_id)
        if before is None:
            _log.info("agent registered", agent=registration.agent, token=token)
        return registration

    async def deregister(self, token: str, agent: str) -> None:
        """Let an agent go.

        Raises:
            Refusal: it is not registered, is another token's, or the file cannot be written to.
        """
        async with self._turn:
            if self._owned(token, agent) is None:
                raise _unregistered(agent)
            await _stored(self._store.forget([agent]))
            if self.leases.get(agent):
                self._end(agent, Reason("Deregistered", "deregistered"))
                self._members()

    def beat(self, token: str, heartbeat: Heartbeat) -> Registration:
        """Note a sign of life.

        Raises:
            Refusal: the agent is not registered, or is another token's.
        """
        registration = self._owned(token, heartbeat.agent_id)
        if registration is None:
            raise _unregistered(heartbeat.agent_id)
        self.leases.beat(heartbeat)
        self._agent_states.set_reported(heartbeat.agent_id, self.leases.condition(heartbeat.agent_id))
        return registration

    async def tick(self) -> None:
        """Draw the conclusions from silence. What cannot be forgotten in the file now is tried again."""
        expired = self.leases.expired()
        for registration in expired:
            self._end(
                registration.agent, _ended(f"no heartbeat for {expiry(registration.params.heartbeat_interval):g} s")
            )
        if expired:
            self._members()
        for registration in self.leases.all:
            self._agent_states.set_reported(registration.agent, self.leases.condition(registration.agent))
        async with self._turn:
            if gone := sorted(self._to_forget):
                try:
                    await self._store.forget(gone)
                    self._to_forget.difference_update(gone)
                except CannotStore as error:
                    _log.error("registrations cannot be stored", reason=str(error))

    def _owned(self, token: str, agent: str) -> Registration | None:
        registration = self.leases.get(agent)
        if registration is not None and registration.token != token and not self._bound(token, agent):
            raise Refusal(403, errors.FORBIDDEN, f"{agent} is registered with another token")
        return registration

    def _bound(self, token: str, agent: str) -> bool:
        """Return True when agents.yaml binds the token to the name: then it has a right to it, whoever has it now."""
        settings = self._fleet.registry.registration if self._fleet else None
        credential = settings.tokens.get(token) if settings else None
        return credential is not None and names.slug(agent) in map(names.slug, credential.agents)

    def _check(self, token: str, params: Register, *, new: bool) -> None:
        assert self._fleet is not None  # noqa: S101 - `use` comes first
        if reason := _barred(self._fleet, params.agent_id, token):
            raise Refusal(403, errors.FORBIDDEN, reason)
        others = {
            names.slug(registration.agent) for registration in self.leases.all if registration.agent != params.agent_id
        }
        if names.slug(params.agent_id) in others:
            raise Refusal(403, errors.FORBIDDEN, f"the host name {names.slug(params.agent_id)} is taken")
        settings = self._fleet.registry.registration
        most = settings.max_agents if settings else 0
        if new and len(self.leases.all) >= most:
            raise Refusal(409, errors.FULL, f"{most} agents are registered, which is the most that agents.yaml allows")
        if params.url and self.reach and not self.reach.host(params.url):
            problem = {"field": "url", "message": "its host is not among those that agents.yaml allows"}
            raise Refusal(400, errors.INVALID_PARAMS, "Invalid params", {"problems": [problem]})

    def _announce(self, agent: str) -> None:
        """Tell the model; what it knows of the addresses stays, unless the agent begins or ends to be probed."""
        probed = bool(self.url(agent))
        if self._probed.get(agent) is not probed:
            self._probed[agent] = probed
            self._agent_states.set_sighting(agent, NOT_LOOKED_UP if probed else None)
        self._agent_states.set_reported(agent, self.leases.condition(agent))

    def _end(self, agent: str, reason: Reason) -> None:
        self._to_forget.add(agent)
        self._probed.pop(agent, None)
        self.leases.remove(agent)
        self._agent_states.remove(agent, reason)
        _log.info("registration ended", agent=agent, reason=reason.message)


def _barred(fleet: ResolvedFleet, agent: str, token: str) -> str:
    """Return why `agent` cannot be registered with the token of this name; empty when it can."""
    settings = fleet.registry.registration
    if settings is None:
        return "agents.yaml lets nobody register"
    if token not in settings.tokens:
        return f"agents.yaml no longer has the token `{token}`"
    if not token_files.admits(token_files.bindings(settings), token, agent):
        return f"agents.yaml does not let the token `{token}` speak for it"
    return registration_rules.taken(fleet, agent)


async def _stored(work: Awaitable[None]) -> None:
    try:
        await work
    except CannotStore as error:
        _log.error("registrations cannot be stored", reason=str(error))
        raise Refusal(503, errors.NOT_STORED, "the registration cannot be stored") from None


def _ended(cause: str) -> Reason:
    return Reason("RegistrationEnded", f"registration ended: {cause}")


def _unregistered(agent: str) -> Refusal:
    return Refusal(404, errors.UNREGISTERED, f"{agent} is not registered: call server.register first")
