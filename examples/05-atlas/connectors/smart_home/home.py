"""The devices on a broker. Each question is a connection of its own: a broker that was away is just asked again."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiomqtt

from connectors import trust
from connectors.accounts import Account
from connectors.problems import Problem
from connectors.smart_home.devices import Device, announced

PORTS = {"mqtts": 8883, "mqtt": 1883}
MOST = 500
"""Devices that are looked at."""
_QUIET = 0.2
"""Seconds without a message after which what the broker keeps has come."""


class Home:
    """The devices of one broker, found by what they announce under `prefix`.

    `timeout` are the seconds that the broker may take for an answer, `patience` those for a device to do as it is told.
    """

    def __init__(self, account: Account, prefix: str, *, timeout: float, patience: float) -> None:
        self._account = account
        self._prefix = prefix
        self._timeout = timeout
        self._patience = patience

    async def listed(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Return all devices with their last known states, by name, and why some were left out."""
        async with self._connected() as client:
            devices, left_out = await self._devices(client)
            states = await self._kept(client, sorted({device.state_topic for device in devices if device.state_topic}))
        return [_row(device, states) for device in sorted(devices, key=lambda device: device.name)], left_out

    async def switch(self, name: str, *, on: bool) -> dict[str, Any]:
        """Switch a device, and return whether it has said so.

        Raises:
            Problem: there is no such device, or more than one, or it cannot be switched.
        """
        wanted = "on" if on else "off"
        async with self._connected() as client:
            device = _named(name, (await self._devices(client))[0])
            if not device.state_topic:
                await client.publish(device.command_topic, device.commands[not on], qos=1)
                return {"device": device.name, "sent": wanted, "confirmed": False, "notice": "it never says how it is"}
            kept = await self._kept(client, [device.state_topic])
            before = device.state(kept[device.state_topic]) if device.state_topic in kept else "unknown"
            await client.publish(device.command_topic, device.commands[not on], qos=1)
            said = await self._said(client, device, wanted)
        confirmed = wanted in (said, said or before)
        row: dict[str, Any] = {"device": device.name, "sent": wanted, "state": said or before, "confirmed": confirmed}
        return (
            row if confirmed else row | {"notice": f"it has not said within {self._patience:g} s that it is {wanted}"}
        )

    async def _said(self, client: aiomqtt.Client, device: Device, wanted: str) -> str:
        """Return the last state that the device tells until it is `wanted`, or the time is over."""
        said = ""
        try:
            async with asyncio.timeout(self._patience):
                async for message in client.messages:
                    if message.topic.value == device.state_topic and not message.retain:
                        said = device.state(bytes(message.payload or b""))
                        if said == wanted:
                            break
        except TimeoutError:
            pass
        return said

    async def _devices(self, client: aiomqtt.Client) -> tuple[list[Device], list[str]]:
        kept = await self._kept(client, [f"{self._prefix}/+/+/config", f"{self._prefix}/+/+/+/config"])
        found = [announced(topic, payload, self._prefix) for topic, payload in sorted(kept.items())]
        devices = [device for device in found if isinstance(device, Device)]
        return devices[:MOST], [reason for reason in found if isinstance(reason, str)]

    async def _kept(self, client: aiomqtt.Client, topics: list[str]) -> dict[str, bytes]:
        """Return the messages that the broker keeps for some topics.

        It does not say which is the last: they have come when a message of our own has, and then none for a moment.
        """
        marker = f"pallas/{uuid.uuid4()}"
        await client.subscribe([(topic, 0) for topic in (*topics, marker)])
        await client.publish(marker, b"", qos=1)
        kept: dict[str, bytes] = {}
        marked = False
        messages = aiter(client.messages)
        while len(kept) < 4 * MOST:
            try:
                message = await asyncio.wait_for(anext(messages), _QUIET if marked else self._timeout)
            except TimeoutError:
                if marked:
                    break
                raise
            marked = marked or message.topic.value == marker
            if message.retain:
                kept[message.topic.value] = bytes(message.payload or b"")
        await client.unsubscribe(marker)
        return kept

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[aiomqtt.Client]:
        account = self._account
        client = aiomqtt.Client(
            account.host,
            account.port,
            username=account.user or None,
            password=account.password or None,
            timeout=self._timeout,
            tls_context=trust.context() if account.scheme == "mqtts" else None,
            max_queued_incoming_messages=0,
        )
        try:
            async with client:
                yield client
        except aiomqtt.MqttCodeError as error:
            refused = getattr(error.rc, "value", error.rc) in (4, 5, 134, 135)
            who = f"refuses {account.user or 'who has no user'}: check the user and MQTT_PASSWORD"
            raise Problem(f"{account.at} {who if refused else f'ended it: {error}'}") from None
        except (TimeoutError, aiomqtt.MqttError, OSError) as error:
            late = isinstance(error, TimeoutError) or "timed out" in str(error).lower()
            why = f"has not answered for {self._timeout:g} s" if late else f"cannot be used: {error}"
            raise Problem(f"{account.at} {trust.distrust(error) or why}") from None


def _named(name: str, devices: list[Device]) -> Device:
    named = [device for device in devices if device.name.casefold() == name.casefold()]
    if not named:
        raise Problem(f"there is no device {name!r}: list_devices has all")
    if len(named) > 1:
        raise Problem(f"{len(named)} devices are called {name!r}: give them names of their own")
    if not named[0].command_topic:
        raise Problem(f"{named[0].name} is a {named[0].kind} and cannot be switched")
    return named[0]


def _row(device: Device, states: dict[str, bytes]) -> dict[str, Any]:
    payload = states.get(device.state_topic)
    row = {"name": device.name, "kind": device.kind, "state": "unknown" if payload is None else device.state(payload)}
    return row | ({"unit": device.unit} if device.unit else {}) | ({"switched": True} if device.command_topic else {})
