"""Changes of agents as resources, told to those who listen: `subscriptions/listen` (MCP 2026-07-28).

What a tenant has made is told to that tenant alone. Nobody is told of what happened while they did not listen.
"""

from __future__ import annotations

import mcp_types as t
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

from pallas_gateway.data_plane.shares import Streams, TooMany
from pallas_gateway.own.admission import Admission, Context
from pallas_gateway.own.entrance import SIZE
from pallas_gateway.own.failures import Failed, invalid
from pallas_service.access.caller import caller
from pallas_service.http.bodies import SMALL

MOST_URIS = 100
"""Resources of one stream."""
MOST_EVENTS = 100
"""Changes that wait for a client that does not read, before its stream is ended."""


class _Tenant:
    """The streams of one tenant."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        # how many there may be is said by shares, which count those to agents too
        self.listen = ListenHandler(self.bus, max_subscriptions=1 << 30, max_buffered_events=MOST_EVENTS)


class Subscriptions:
    """Who listens to changes, by tenant; `streams` are the shares of all that is only listened to."""

    def __init__(self, admission: Admission, streams: Streams) -> None:
        self._admission = admission
        self._streams = streams
        self._tenants: dict[str, _Tenant] = {}
        self._closed = False

    async def listen(self, ctx: Context, params: t.SubscriptionsListenRequestParams) -> t.SubscriptionsListenResult:
        """Tell the client of changes until it hangs up, or the gateway ends.

        Raises:
            MCPError: its caller is in no tenant or has too many streams, it names too many resources, or the gateway
                ends.
        """
        if self._closed:  # the stream would be cut off with its connection
            raise Failed("busy", "the gateway ends: listen to the next one", 1)
        if ctx.request is not None and ctx.request.scope.get(SIZE, 0) > SMALL:
            # a larger one takes the room that all large bodies have, and would for as long as the stream lasts
            raise Failed("too_large", f"request body too large: it may have {SMALL} bytes")
        if len(params.notifications.resource_subscriptions or ()) > MOST_URIS:
            raise invalid("notifications.resourceSubscriptions", f"may have {MOST_URIS} resources")
        verified = caller(ctx.request)
        tenant = self._admission.tenant(verified)
        if verified and not tenant:
            raise Failed("unknown_tenant", "Tenant not found")
        try:
            with self._streams.listening(self._admission.owner(verified)):
                return await self._of(tenant).listen(ctx, params)
        except TooMany as error:
            raise Failed("concurrency", str(error), 1) from None

    async def changed(self, tenant: str, *uris: str) -> None:
        """Tell the listeners of `tenant` that these resources are not what they were."""
        for uri in uris:
            await self._of(tenant).bus.publish(ResourceUpdated(uri))

    def close(self) -> None:
        """End all streams in the way that tells clients that nothing broke, and begin no others."""
        self._closed = True
        for tenant in self._tenants.values():
            tenant.listen.close()

    def _of(self, tenant: str) -> _Tenant:
        return self._tenants.setdefault(tenant, _Tenant())  # of declared tenants, so there are few
