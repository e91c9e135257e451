"""The connector of devices, before a real broker and one that behaves badly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiomqtt
import pytest
from connectors import serving
from connectors.smart_home.devices import Device, announced
from connectors.smart_home.server import tools
from mcp import Client

from tests import ports

from . import servers
from .servers import PASSWORD, called

LAMP = {"name": "Kitchen lamp", "~": "z2m/lamp", "stat_t": "~", "cmd_t": "~/set", "schema": "json"}
HEATER = {
    "name": "Heater",
    "command_topic": "heater/set",
    "state_topic": "heater",
    "payload_on": "1",
    "payload_off": "0",
}
WARMTH = {
    "name": "Warmth",
    "state_topic": "warm",
    "value_template": "{{ value_json.temperature }}",
    "unit_of_measurement": "°C",
}


@asynccontextmanager
async def home(port: int, *, user: str = "anna@", timeout: float = 60, patience: float = 60) -> AsyncIterator[Client]:
    """Yield a client of the connector for the broker at `port`."""
    environ = {"MQTT_URL": f"mqtt://{user}127.0.0.1:{port}", "MQTT_PASSWORD": PASSWORD if user else ""}
    async with Client(serving.server("smart_home", tools(environ, timeout, patience))) as client:
        yield client


@asynccontextmanager
async def house(*announcements: tuple[str, Any], **states: bytes) -> AsyncIterator[tuple[int, aiomqtt.Client]]:
    """Yield the port of a broker to which a house has announced devices with their states, and the house's client."""
    kept = {topic.replace("__", "/"): payload for topic, payload in states.items()}
    for topic, written in announcements:
        kept[f"homeassistant/{topic}/config"] = written if isinstance(written, bytes) else json.dumps(written).encode()
    async with (
        servers.mqtt() as broker,
        aiomqtt.Client("127.0.0.1", broker.port, username="house", timeout=60) as client,
    ):
        for topic, payload in kept.items():
            await client.publish(topic, payload, qos=1, retain=True)
        await broker.keeps(set(kept))
        yield broker.port, client


@asynccontextmanager
async def obeying(client: aiomqtt.Client, command: str, state: str) -> AsyncIterator[list[bytes]]:
    """Answer each command with it as the new state, and yield what was commanded."""
    commands: list[bytes] = []
    await client.subscribe(command, qos=1)

    async def obey() -> None:
        async for message in client.messages:
            commands.append(bytes(message.payload))
            await client.publish(state, message.payload, qos=1, retain=True)

    task = asyncio.create_task(obey())
    try:
        yield commands
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_devices_that_announce_themselves_are_listed_and_rubbish_is_left_out() -> None:
    states = {"z2m__lamp": b'{"state": "OFF"}', "warm": b'{"temperature": 21.5}', "heater": b"1"}
    odd = (
        ("light/a/b", b"\xff{"),
        ("switch/c", {"name": "No topic"}),
        ("switch/d", {"command_topic": "#"}),
        ("fan/e", {}),
    )
    devices = (("light/z2m/lamp", LAMP), ("switch/heater", HEATER), ("sensor/warm", WARMTH))
    async with house(*devices, *odd, **states) as (port, _), home(port) as client:
        failed, listed = await called(client, "list_devices")
    assert not failed
    assert listed["devices"] == [
        {"name": "Heater", "kind": "switch", "state": "on", "switched": True},
        {"name": "Kitchen lamp", "kind": "light", "state": "off", "switched": True},
        {"name": "Warmth", "kind": "sensor", "state": "21.5", "unit": "°C"},
    ]
    assert [reason.partition(" ")[0] for reason in listed["left_out"]] == ["light/a/b", "switch/c", "switch/d"]


async def test_a_device_is_switched_and_says_so_itself() -> None:
    async with (
        house(("light/z2m/lamp", LAMP), z2m__lamp=b'{"state": "OFF"}') as (port, lamp),
        obeying(lamp, "z2m/lamp/set", "z2m/lamp") as commands,
        home(port) as client,
    ):
        failed, row = await called(client, "switch_device", name="kitchen LAMP", state="on")
    assert (failed, row["state"], row["confirmed"]) == (False, "on", True)
    assert commands == [b'{"state": "ON"}']


async def test_a_device_that_says_nothing_is_not_called_switched() -> None:
    async with house(("switch/heater", HEATER), heater=b"0") as (port, _), home(port, patience=0.5) as client:
        _, row = await called(client, "switch_device", name="Heater", state="on")
        _, same = await called(client, "switch_device", name="Heater", state="off")
    assert (row["state"], row["confirmed"]) == ("off", False)
    assert row["notice"] == "it has not said within 0.5 s that it is on"
    assert (same["state"], same["confirmed"]) == ("off", True)


async def test_a_device_that_is_not_there_or_no_switch_is_named() -> None:
    async with house(("sensor/warm", WARMTH)) as (port, _), home(port) as client:
        _, words = await called(client, "switch_device", name="Attic", state="on")
        assert "there is no device 'Attic'" in words
        _, words = await called(client, "switch_device", name="warmth", state="on")
        assert "is a sensor and cannot be switched" in words


async def test_a_broker_that_refuses_is_named() -> None:
    async with servers.mqtt() as broker, home(broker.port, user="") as client:
        failed, words = await called(client, "list_devices")
    assert failed
    assert "refuses who has no user: check the user and MQTT_PASSWORD" in words


async def test_a_broker_that_is_away_silent_or_speaks_rubbish_is_named() -> None:
    away = ports.free_port()
    async with servers.talking(servers.silent) as silent, servers.talking(servers.rubbish) as rubbish:
        for port, words in ((away, "cannot be used"), (silent, "has not answered for 0.5 s"), (rubbish, "127.0.0.1")):
            async with home(port, timeout=60 if port == away else 0.5) as client:
                failed, said = await called(client, "list_devices")
            assert failed
            assert f"127.0.0.1:{port} " in said
            assert words in said


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (b"[]", "is no JSON object"),
        (b'{"name": 7, "command_topic": "a"}', "name is no short text"),
        (b'{"command_topic": "a/+"}', "command_topic has a wildcard"),
        (b'{"command_topic": "a", "value_template": "{{ states(1) }}"}', "of templates only"),
        (b"[" * 100_000, "cannot be used"),
    ],
)
def test_an_announcement_that_cannot_be_used_says_why(written: bytes, words: str) -> None:
    reason = announced("homeassistant/switch/x/config", written, "homeassistant")
    assert isinstance(reason, str)
    assert words in reason


def test_words_of_a_device_are_its_own() -> None:
    device = announced("homeassistant/switch/x/config", json.dumps(HEATER).encode(), "homeassistant")
    assert isinstance(device, Device)
    assert [device.state(payload) for payload in (b"1", b"0", b"warming", b"\xff")] == ["on", "off", "warming", "�"]
