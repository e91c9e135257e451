"""The servers for agents.full.yaml of examples/05-atlas: mail, a calendar and a lamp, by TLS of an own authority."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiomqtt
import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal

from tests.connectors import servers
from tests.connectors.certificates import Authority, authority
from tests.connectors.servers import PASSWORD, USER, Post

from .projects import edited

LAMP = {"name": "Kitchen lamp", "~": "z2m/lamp", "stat_t": "~", "cmd_t": "~/set", "schema": "json"}
DINNER = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:x
BEGIN:VEVENT
UID:dinner
DTSTAMP:20261101T000000Z
SUMMARY:Dinner with Ben
DTSTART:20261127T180000Z
DTEND:20261127T200000Z
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n")
_AUTHORITY = "house-ca.pem"
_LOGIN = USER.replace("@", "%40")


@dataclass
class Household:
    """Servers at `host`, with certificates of `authority`, and what has come of them."""

    host: str
    authority: Authority
    ports: dict[str, int] = field(default_factory=dict)
    """Of `imap`, `smtp`, `caldav` and `mqtt`."""
    post: Post = field(default_factory=Post)
    commands: list[bytes] = field(default_factory=list)
    """What the lamp was told."""
    _portal: BlockingPortal | None = None
    _imap: AsyncExitStack = field(default_factory=AsyncExitStack)

    def project(self, example: Path, folder: Path) -> Path:
        """Copy the example below `folder`, with the addresses, passwords and authority of the house.

        Returns the path of the copy's agents.full.yaml.
        """
        config = edited(example, folder, more="registry: {probe_interval: 1}\n", file="agents.full.yaml")
        text, ports, where = config.read_text(), self.ports, f"{_LOGIN}@{self.host}"
        for before, after in (
            ("imaps://anna%40example.com@imap.example.com", f"imaps://{where}:{ports['imap']}"),
            ("smtps://anna%40example.com@smtp.example.com", f"smtps://{where}:{ports['smtp']}"),
            ("https://dav.example.com/anna/home/", f"https://{self.host}:{ports['caldav']}/{USER}/home/"),
            ("mqtts://atlas@broker.example.com", f"mqtts://atlas@{self.host}:{ports['mqtt']}"),
        ):
            assert text.count(before) == 1
            text = text.replace(before, after)
        open_to_the_world = "    egress: true\n    env: {"
        assert text.count(open_to_the_world) == 3
        trusted = f"    egress: true\n    files: [{_AUTHORITY}]\n    env: {{SSL_CERT_FILE: {_AUTHORITY}, "
        config.write_text(text.replace(open_to_the_world, trusted))
        shutil.copyfile(self.authority.file, config.with_name(_AUTHORITY))
        for name in ("mail", "calendar", "mqtt"):
            (config.parent / "secrets" / f"{name}.txt").write_text(f"{PASSWORD}\n")
        return config

    @contextmanager
    def without_mail(self) -> Iterator[None]:
        """Have nobody listen for IMAP within."""
        assert self._portal is not None
        self._portal.call(self._imap.aclose)
        try:
            yield
        finally:
            self._portal.call(self._open_mail)

    async def _open_mail(self) -> None:
        certificate, port = self.authority.signed(self.host), self.ports.get("imap", 0)
        server = servers.imap(self.host, port, tls=certificate)
        self.ports["imap"] = await self._imap.enter_async_context(server)

    @asynccontextmanager
    async def _up(self, folder: Path) -> AsyncIterator[None]:
        certificate = self.authority.signed(self.host)
        async with AsyncExitStack() as stack:
            await self._open_mail()
            stack.push_async_callback(self._imap.aclose)
            smtp = servers.smtp(self.post, self.host, tls=certificate)
            self.ports["smtp"] = await stack.enter_async_context(smtp)
            self.ports["caldav"] = stack.enter_context(servers.caldav(folder, self.host, tls=certificate))
            broker = await stack.enter_async_context(servers.mqtt(self.host, tls=certificate))
            self.ports["mqtt"] = broker.port
            await self._keep_a_date()
            await stack.enter_async_context(self._lamp(broker))
            yield

    async def _keep_a_date(self) -> None:
        url = f"https://{self.host}:{self.ports['caldav']}/{USER}/home/"
        async with httpx.AsyncClient(auth=(USER, PASSWORD), verify=False, trust_env=False, timeout=60) as web:
            (await web.request("MKCALENDAR", url)).raise_for_status()
            (await web.put(f"{url}dinner.ics", content=DINNER)).raise_for_status()

    @asynccontextmanager
    async def _lamp(self, broker: servers.Mqtt) -> AsyncIterator[None]:
        """Announce a lamp that is off, and have it do as it is told."""
        tls = aiomqtt.TLSParameters(ca_certs=str(self.authority.file))
        client = aiomqtt.Client(self.host, broker.port, username="lamp", timeout=60, tls_params=tls)
        async with client:
            kept = {"homeassistant/light/z2m/lamp/config": json.dumps(LAMP), "z2m/lamp": '{"state": "OFF"}'}
            for topic, payload in kept.items():
                await client.publish(topic, payload, qos=1, retain=True)
            await broker.keeps(set(kept))
            await client.subscribe("z2m/lamp/set", qos=1)

            async def obey() -> None:
                async for message in client.messages:
                    self.commands.append(bytes(message.payload))
                    await client.publish("z2m/lamp", message.payload, qos=1, retain=True)

            task = asyncio.create_task(obey())
            try:
                yield
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


@contextmanager
def household(folder: Path, host: str) -> Iterator[Household]:
    """Yield the servers of a house, up, on an address of this machine; `folder` is empty, and theirs."""
    made = Household(host, authority(folder, "house"))
    with start_blocking_portal() as portal:
        made._portal = portal
        (calendars := folder / "calendars").mkdir()
        with portal.wrap_async_context_manager(made._up(calendars)):
            yield made
