"""The program as it is started: exit codes, messages, and a fleet of real sockets."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import httpx
import pytest

from pallas_contract import extras
from pallas_registry.__main__ import command, main
from pallas_registry.catalogue.catalogue import PATH
from tests.ports import free_port
from tests.problem_lines import without_codes
from tests.registry.processes import DEADLINE, registry, until


async def ended(folder: Path, **env: str) -> tuple[int | None, str, str]:
    async with registry(folder, **env) as process, asyncio.timeout(DEADLINE):
        out, err = await process.communicate()
        return process.returncode, out.decode(), err.decode()


async def test_what_the_user_wrote_is_answered_with_all_problems_and_2(folder: Path) -> None:
    (folder / "agents.yaml").write_text("name: demo\nagents: {harper: {module: a, prt: 1, zzz: 1}}\n")
    code, out, err = await ended(folder)
    assert (code, out) == (2, "")
    assert "agents.yaml:2:30 agents.harper.prt: unknown key [PAL101]\n    did you mean `port`?" in err
    assert "agents.yaml:2:38 agents.harper.zzz: unknown key [PAL101]\n" in err
    assert "Traceback" not in err


@pytest.fixture
def run(monkeypatch, capsys, folder: Path) -> Callable[..., tuple[int, str]]:
    """`run(VARIABLE=...)`: exit code and stderr of the program, in this process."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def run(**env: str) -> tuple[int, str]:
        return main(env), without_codes(capsys.readouterr().err)

    return run


@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("--version", 0), ("--serve", 2)])
def test_arguments_start_no_server(
    argument: str, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["pallas-registry", argument])
    with pytest.raises(SystemExit) as ended:
        command()
    assert ended.value.code == code
    assert "pallas-registry" in "".join(capsys.readouterr())


def test_an_extra_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["pallas-registry"])
    monkeypatch.setattr(extras, "missing", lambda *asked: [f"{name}-package" for name in asked])
    assert command() == 2
    advice = "pip install 'pallas-kit[registry]'"
    assert (
        capsys.readouterr().err
        == f"pallas-registry: needs the extra `registry` (not installed: registry-package): {advice}\n"
    )


def test_no_file(run) -> None:
    code, err = run(PALLAS_AGENTS_CONFIG="nowhere/agents.yaml")
    assert (code, err.splitlines()[0]) == (2, "agents.yaml: no such file")


def test_a_bad_variable(run) -> None:
    assert run(PALLAS_BIND="everywhere") == (2, "PALLAS_BIND: must be `address:port`, not 'everywhere'\n")


def test_an_address_that_is_not_ours(run) -> None:
    code, err = run(PALLAS_BIND="192.0.2.1:8200")
    assert code == 1
    assert err == "pallas-registry: cannot listen on 192.0.2.1:8200: cannot assign requested address\n"


async def test_a_port_in_use_is_one_line_and_1(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = await ended(folder, PALLAS_BIND=f"127.0.0.1:{port}")
    assert (code, out) == (1, "")
    assert err == f"pallas-registry: cannot listen on 127.0.0.1:{port}: address already in use\n"


HEADS = {
    "one header that does not end": (b"GET %b HTTP/1.1\r\nX: ", b"a"),
    "many headers": (b"GET %b HTTP/1.1\r\n", b"X-Name: value\r\n"),
    "a URL": (b"GET %b?", b"a"),
    "trailers": (b"POST %b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-Name: value\r\n"),
}


async def refused(port: int, start: bytes, more: bytes) -> bytes:
    """All that a client reads which sends `start` and then `more` as long as it may."""
    loop, sent = asyncio.get_running_loop(), 0
    with socket.socket() as caller:
        caller.setblocking(False)
        await loop.sock_connect(caller, ("127.0.0.1", port))
        await loop.sock_sendall(caller, start)
        with suppress(ConnectionError):
            while sent < 32 << 20:
                await loop.sock_sendall(caller, more * (65_536 // len(more)))
                sent += 65_536
        assert sent < 32 << 20  # a few MiB in the buffers of the sockets
        heard = b""
        with suppress(ConnectionError):
            while part := await loop.sock_recv(caller, 65_536):
                heard += part
        return heard


async def test_heads_without_end_are_refused_and_others_answered(folder: Path) -> None:
    port = free_port()
    async with (
        registry(folder, PALLAS_BIND=f"127.0.0.1:{port}"),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        await until(lambda: client.get(PATH), lambda answer: answer.status_code == 200)
        for name, (start, more) in HEADS.items():
            async with asyncio.timeout(DEADLINE):
                heard = await refused(port, start % PATH.encode(), more)
            assert b"HTTP/1.1 431 " in heard, name  # a request whose trailers have no end may have been answered
        assert (await client.get(PATH)).status_code == 200


async def test_a_fleet_of_processes_from_start_to_sigterm(folder: Path, agent) -> None:
    harper, research = await agent("harper"), await agent("tech-research")
    file = folder / "agents.yaml"
    file.write_text(file.read_text().replace("8200", str(free_port())) + "registry: {probe_interval: 0.5}\n")
    addresses = {"harper": f"127.0.0.1:{harper.port}", "tech_research": f"127.0.0.1:{research.port}"}
    port = int(file.read_text().partition("registry_port: ")[2].split()[0])
    async with (
        registry(folder, PALLAS_ADDRESSES=json.dumps(addresses)) as process,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):

        async def states() -> dict[str, dict[str, str]]:
            servers = (await client.get(PATH)).json()["servers"]
            return {each["server"]["name"].split("/")[1]: each["_meta"]["io.pallas-kit/health"] for each in servers}

        await until(lambda: client.get("/readyz"), lambda reply: reply.status_code == 200)
        # ready it is after 5 s too, whatever it knows by then
        well = {"harper": {"status": "ok"}, "tech-research": {"status": "ok"}}
        await until(states, lambda found: found == well)

        tag = (await client.get(PATH)).headers["etag"]
        assert (await client.get(PATH, headers={"if-none-match": tag})).status_code == 304

        harper.health = {"status": "degraded", "message": "tech_research: neo4j unreachable"}
        await until(states, lambda found: found["harper"]["status"] == "degraded")
        assert (await client.get(PATH, headers={"if-none-match": tag})).status_code == 200

        await research.stop()
        found = await until(states, lambda found: found["tech-research"]["status"] == "error")
        assert found["tech-research"]["message"] in ("connection refused", "connection reset")  # it may be being probed
        await research.start()
        await until(states, lambda found: found["tech-research"]["status"] == "ok")

        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(DEADLINE):
            out, err = await process.communicate()
        assert (process.returncode, err.decode()) == (0, "")
    lines = [json.loads(line) for line in out.decode().splitlines()]
    assert lines[0]["event"] == "registry listening"
    changes = [(each["old"], each["new"]) for each in lines if each.get("agent") == "tech_research"]
    assert changes == [("unknown", "ok"), ("ok", "error"), ("error", "ok")]


async def test_one_that_is_started_by_hand_finds_agents_at_the_ports_of_the_file(folder: Path, agent) -> None:
    """As `pallas --agent NAME` beside it listens there; it looked for containers, and said `name not found` of all."""
    harper, port = await agent("harper"), free_port()
    (folder / "agents.yaml").write_text(
        f"name: demo\nregistry_port: {port}\nagents: {{harper: {{module: agents.harper, port: {harper.port}}}}}\n"
    )
    async with registry(folder), httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        await until(
            lambda: client.get(PATH), lambda answer: answer.status_code == 200 and b'"status":"ok"' in answer.content
        )


async def test_event_streams_leave_connections_for_others(folder: Path) -> None:
    """Of 64 descriptors 16 are for connections, and streams of one address would stay on all of them."""
    port = free_port()
    before = ("prlimit", "--nofile=64")
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(
            registry(folder, before=before, PALLAS_BIND=f"127.0.0.1:{port}", PALLAS_ADDRESSES="{}")
        )
        client = await stack.enter_async_context(
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE)
        )
        await until(lambda: client.get("/livez"), lambda reply: reply.status_code == 200)
        statuses = [(await stack.enter_async_context(client.stream("GET", "/events"))).status_code for _ in range(20)]
        assert {*statuses} == {200, 503}
        assert (await client.get("/uptime")).status_code == 200


async def test_stopping_ends_the_event_streams(folder: Path) -> None:
    port = free_port()
    async with registry(folder, PALLAS_BIND=f"127.0.0.1:{port}", PALLAS_ADDRESSES="{}") as process:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE) as client:
            await until(lambda: client.get("/livez"), lambda reply: reply.status_code == 200)
            async with client.stream("GET", "/events") as stream:
                process.send_signal(signal.SIGTERM)
                assert b"retry: 2000" in (await stream.aread()).splitlines()
        async with asyncio.timeout(DEADLINE):
            out, err = await process.communicate()
    assert (process.returncode, err.decode()) == (0, "")
    lines = [json.loads(line) for line in out.decode().splitlines()]
    assert {(line["fleet"], line["service"]) for line in lines} == {("demo", "registry")}
    # nothing is said here of warnings: an agent that is away is one, where the registry took long to look for it
    assert not [line for line in lines if line["level"] == "error"], "a stream was cut off at the end of the grace"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_stopping_does_not_wait_for_a_frozen_agent(folder: Path, number: signal.Signals) -> None:
    """The agent accepts and stays silent, so a probe is under way when the signal comes."""
    port, asked = free_port(), asyncio.Event()

    async def frozen(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        with suppress(ConnectionError):
            await _reader.read(-1)
        writer.close()

    server = await asyncio.start_server(frozen, "127.0.0.1", 0)
    addresses = json.dumps({"harper": f"127.0.0.1:{server.sockets[0].getsockname()[1]}"})
    async with server, registry(folder, PALLAS_BIND=f"127.0.0.1:{port}", PALLAS_ADDRESSES=addresses) as process:
        async with asyncio.timeout(DEADLINE):
            await asked.wait()
            process.send_signal(number)
            _, err = await process.communicate()
    assert (process.returncode, err.decode()) == (0, "")


async def test_no_thread_holds_up_its_end(folder: Path) -> None:
    """As one does that looks up a name, for as long as nobody answers."""
    start = "import threading, time\nthreading.Thread(target=time.sleep, args=[1000]).start()\n"
    (folder / "sitecustomize.py").write_text(start)
    port = free_port()
    variables = {"PALLAS_BIND": f"127.0.0.1:{port}", "PALLAS_ADDRESSES": "{}", "PYTHONPATH": str(folder)}
    async with registry(folder, **variables) as process:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE) as client:
            await until(lambda: client.get("/livez"), lambda reply: reply.status_code == 200)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(DEADLINE):
            out, err = await process.communicate()
    assert (process.returncode, err.decode()) == (0, "")
    assert json.loads(out.decode().splitlines()[-1])["event"] == "left_behind"
