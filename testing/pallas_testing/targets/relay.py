"""A TCP relay between two members of a fleet, which is slow, or breaks connections off.

It runs inside a container of the fleet, handed to its Python as text: it needs nothing but the standard library. Its
arguments are a `Course` as JSON, and the host and port that it passes connections on to. Another course comes by a Unix
socket with an abstract name, which only processes of the same container's network reach.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
import sys
from contextlib import suppress
from typing import TypedDict

_CHUNK = 65536
_PIECES = 128
"""Pieces of a connection that wait, each way, 8 MiB at most; who sends more waits, too."""


class Course(TypedDict):
    """What becomes of a connection: `latency` and `jitter` are seconds, each way, for each piece of it.

    `cut_after` are bytes of the answers after which it is reset, None for never.
    """

    latency: float
    jitter: float
    cut_after: int | None


Address = tuple[str, int]
CONTROL = "\0pallas-testing-relay"


class Relay:
    """Connections on their course to an address."""

    def __init__(self, course: Course, to: Address) -> None:
        self._course = course
        self._to = to
        self._open: set[asyncio.StreamWriter] = set()

    def change(self, course: Course) -> None:
        """Take another course, and reset the connections that are on the one of before."""
        self._course = course
        for writer in self._open:
            _reset(writer)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on one connection, to its end."""
        try:
            there, back = await asyncio.open_connection(*self._to)
        except OSError:  # as whoever asks would find it
            _reset(writer)
            return
        course = self._course  # only now: one that has come meanwhile has reset no connection that was not open yet
        ends = {writer, back}
        self._open |= ends
        answers = _pass(there, writer, course, course["cut_after"])
        await asyncio.gather(_pass(reader, back, course, None), answers, return_exceptions=True)
        self._open -= ends
        for end in ends:
            end.close()

    async def controlled(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take the course that comes as a line of JSON, and send the line back."""
        line = await reader.readline()
        self.change(json.loads(line))
        writer.write(line)
        writer.close()


async def _pass(source: asyncio.StreamReader, sink: asyncio.StreamWriter, course: Course, limit: int | None) -> None:
    """Pass on what comes, in its order, each piece after its own delay, and the end after all of them."""
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_PIECES)

    async def read() -> None:
        due = 0.0
        data = b"-"
        while data:
            try:
                data = await source.read(_CHUNK)
            except OSError:  # reset: the end for both sides
                data = b""
            delay = course["latency"] + random.uniform(-1, 1) * course["jitter"]  # noqa: S311 - a network's whim
            due = max(due, loop.time() + max(delay, 0.0))
            await pieces.put((due, data))

    reading = asyncio.create_task(read())
    try:
        while True:
            due, data = await pieces.get()
            await asyncio.sleep(due - loop.time())
            if limit is not None:
                data, limit = data[:limit], limit - len(data)
            sink.write(data)
            await sink.drain()
            if limit is not None and limit < 0:
                _reset(sink)
                return
            if not data:
                sink.write_eof()
                return
    finally:
        reading.cancel()


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection as a crash or a firewall does (socket(7), SO_LINGER), and not as one that has said all."""
    with suppress(OSError):  # its socket is closed already, as that of one is whose end still waits for its delay
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def main(course: Course, host: str, port: int) -> None:
    """Relay until the end of the process."""
    relay = Relay(course, (host, port))
    async with (
        await asyncio.start_unix_server(relay.controlled, CONTROL),
        await asyncio.start_server(relay.connected, "0.0.0.0", port) as server,
    ):
        print("ready", flush=True)  # noqa: T201 - for the test that started it
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
