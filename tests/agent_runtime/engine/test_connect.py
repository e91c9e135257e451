"""How long a turn waits for servers that hang, on a clock that is moved on instead of waiting."""

from __future__ import annotations

import asyncio
import errno
import selectors
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from fast_agent.core.exceptions import FastAgentError
from fast_agent.mcp.mcp_aggregator import MCPAttachOptions
from mcp.shared.exceptions import MCPError

from pallas_agent_runtime.engine import patches
from pallas_agent_runtime.engine.connect import Connections, Programs
from pallas_agent_runtime.health.program_reason import ProgramReasons
from pallas_contract.fleet.fastagent import Command
from pallas_contract.problems import Where


class Skipping(asyncio.SelectorEventLoop):
    """A loop that does not wait for its next timer: its clock goes there at once."""

    def __init__(self) -> None:
        self.now = 0.0
        loop = self

        class Selector(selectors.SelectSelector):
            def select(self, timeout: float | None = None) -> Any:
                loop.now += timeout or 0.0
                return super().select(0)

        super().__init__(Selector())

    def time(self) -> float:
        return self.now


class App:
    """As fast-agent: an agent's servers are connected under a lock, and one that is not there in time is given up.

    `seconds` are what each server takes.
    """

    def __init__(self, seconds: dict[str, float], agents: tuple[str, ...] = ("one",)) -> None:
        self._seconds = seconds
        self._locks = {agent: asyncio.Lock() for agent in agents}
        self.attached: dict[str, list[str]] = {agent: [] for agent in agents}
        self.calls: Counter[str] = Counter()
        self.errors: dict[str, Exception] = {"broken": OSError("broken")}
        self.connection: Any = None
        """What is made for each server, where a test wants it."""

    def registered_agents(self) -> Any:
        without = SimpleNamespace(config=SimpleNamespace(servers=[]))
        using = SimpleNamespace(config=SimpleNamespace(servers=list(self._seconds)))
        return {"none": without, **dict.fromkeys(self._locks, using)}

    async def list_attached_mcp_servers(self, agent: str) -> list[str]:
        return list(self.attached[agent])

    async def attach_mcp_server(self, agent: str, server: str, *, options: MCPAttachOptions | None = None) -> None:
        self.calls[server] += 1
        limit = (options or MCPAttachOptions()).startup_timeout_seconds
        async with self._locks[agent]:
            await asyncio.sleep(min(self._seconds[server], limit))
            if self._seconds[server] > limit:
                raise FastAgentError(f"MCP Server: '{server}': Startup timed out after {limit:.1f}s")
            if server in self.errors:
                raise self.errors[server]
            if self.connection:
                patches._noted.get().append(self.connection)
            self.attached[agent].append(server)

    async def detach_mcp_server(self, agent: str, server: str) -> None:
        self.attached[agent].remove(server)


HANGS = 3600.0


def made(app: Any, programs: Programs, forwarded: frozenset[str] = frozenset(), choose: Any = sorted) -> Connections:
    return Connections(app, forwarded, choose, programs=programs)


async def attach(app: Any, forwarded: frozenset[str], choose: Any) -> None:
    await made(app, Programs(frozenset(), lambda name, reason: None), forwarded, choose).attach()


@pytest.mark.parametrize(
    ("seconds", "waited", "attached"),
    [
        ({"a": HANGS, "b": HANGS, "c": HANGS}, 5.0, []),
        ({"a": HANGS, "b": HANGS, "c": HANGS, "fine": 0.5}, 4.25, ["fine"]),
        ({"broken": 0.0, "slow": 4.5}, 4.5, ["slow"]),
        ({"fine": 0.5, "mine": 0.5, "y": HANGS, "z": 1.5}, 4.5, ["fine", "mine", "z"]),
        ({"a": 2.0, "b": 0.1, "c": 0.1, "d": 0.1}, 3.55, ["b", "c", "d", "a"]),
        ({"a": 2.5, "b": HANGS, "c": 0.1, "d": 0.1}, 5.0, ["c", "d"]),
        ({"a": 2.0, "b": HANGS, "c": 0.1, "d": 0.1}, 4.7, ["c", "d", "a"]),
    ],
)
def test_all_servers_have_one_deadline_and_each_its_share(
    seconds: dict[str, float], waited: float, attached: list[str]
) -> None:
    with asyncio.Runner(loop_factory=Skipping) as runner:
        app: Any = App(seconds)
        runner.run(attach(app, frozenset(), sorted))
        assert runner.get_loop().time() == pytest.approx(waited)
        assert app.attached["one"] == attached


def test_programs_come_before_servers_that_took_longer_than_their_share() -> None:
    async def test() -> None:
        turns = Turns({"a": 1.5, "b": 0.1, "c": 0.1, "d": 0.1, "program": 0.5}, {"program"})
        assert await turns.seconds(turns.connections.attach()) == pytest.approx(1.55 + 0.5 + 1.5)
        assert turns.app.attached["one"] == ["b", "c", "d", "program", "a"]
        slow = Turns({"a": 1.5, "b": 0.1, "c": 0.1, "d": 0.1, "program": 7.0}, {"program"})
        assert await slow.seconds(slow.connections.attach()) == pytest.approx(5.0)
        assert (slow.app.attached["one"], slow.app.calls["a"]) == (["b", "c", "d"], 1)
        await slow.connections.close()
        late = Turns({"a": 1.5, "b": 0.1, "c": 0.1, "d": 0.1, "program": 0.5, "slow": 7.0}, {"program", "slow"})
        late.programs.late((late.connections, "one"), "slow", "not started yet")
        assert await late.seconds(late.connections.attach()) == pytest.approx(1.55 + 0.5)
        assert late.app.calls["a"] == 1  # the slow one has fast-agent's lock now, and no turn waits for it
        await late.connections.close()

    run(test())


def test_agents_do_not_wait_for_each_other_and_connect_only_what_they_miss() -> None:
    with asyncio.Runner(loop_factory=Skipping) as runner:
        app: Any = App({"a": HANGS, "fine": 0.5, "forwarded": HANGS, "poor": HANGS}, ("one", "two"))
        app.attached["two"].append("fine")
        runner.run(attach(app, frozenset({"forwarded"}), lambda names: sorted(set(names) - {"poor"})))
        assert app.attached == {"one": ["fine"], "two": ["fine"]}
        assert runner.get_loop().time() == pytest.approx(5.0)


def test_each_attempt_is_told_with_what_no_probe_would_see() -> None:
    """An answer with an error, as a connection that breaks, is seen by a probe too."""

    async def test() -> None:
        app: Any = App(dict.fromkeys(["fine", "refusing", "hanging", "garbled"], 0.0) | {"hanging": HANGS})
        app.errors = {"refusing": MCPError(-32603, "boom"), "garbled": ValueError("s3cret")}
        told: dict[str, str | None] = {}
        programs = Programs(frozenset(), told.__setitem__)
        await Connections(app, frozenset(), sorted, programs=programs, attached=told.__setitem__).attach()
        assert told == {
            "fine": None,
            "refusing": "",
            "hanging": "",
            "garbled": "its answers cannot be read: ValueError",
        }

    run(test())


def test_a_turn_that_is_ended_while_it_tries_again_has_told_who_was_late() -> None:
    async def test() -> None:
        app: Any = App({"a": HANGS, "b": 0.1, "c": 0.1, "d": 0.1})
        told: dict[str, str | None] = {}
        programs = Programs(frozenset(), told.__setitem__)
        connections = Connections(app, frozenset(), sorted, programs=programs, attached=told.__setitem__)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3.0):
                await connections.attach()
        assert told == {"a": "", "b": None, "c": None, "d": None}
        assert app.calls["a"] == 2

    run(test())


class Turns:
    """An instance with programs, on the clock that is moved on; `reported` is what health was told of each."""

    def __init__(self, seconds: dict[str, float], programs: set[str]) -> None:
        self.reported: dict[str, str] = {}
        self.app: Any = App(seconds)
        self.programs = Programs(frozenset(programs), self.reported.__setitem__)
        self.connections = made(self.app, self.programs)

    async def seconds(self, turn: Any) -> float:
        """How long something takes."""
        loop = asyncio.get_running_loop()
        before = loop.time()
        await turn
        return loop.time() - before


def run(test: Any) -> None:
    with asyncio.Runner(loop_factory=Skipping) as runner:
        runner.run(test)


def test_a_slow_program_costs_no_turn_its_time_and_is_kept_once_it_is_there() -> None:
    async def test() -> None:
        turns = Turns({"slow": 7.0, "quick": 0.5, "http": 1.0}, {"slow", "quick"})
        assert await turns.seconds(turns.connections.start_programs()) == pytest.approx(5.0)
        assert turns.reported == {"quick": "", "slow": "not started yet"}
        assert await turns.seconds(turns.connections.attach()) == 0.0  # fast-agent's lock is taken: no http yet
        assert turns.app.attached["one"] == ["quick"]
        await asyncio.sleep(3.0)
        assert turns.reported == {"quick": "", "slow": ""}
        assert await turns.seconds(turns.connections.attach()) == pytest.approx(1.0)
        assert turns.app.attached["one"] == ["quick", "slow", "http"]
        another = made(App({"slow": 7.0, "quick": 0.5}), turns.programs)
        assert await turns.seconds(another.attach()) == pytest.approx(0.5)
        await another.close()

    run(test())


def test_the_limits_of_a_start_are_the_kits_and_not_fast_agents_default() -> None:
    """`npx` and `uvx` download first; fast-agent gives up after 10 s by itself."""

    async def test() -> None:
        turns = Turns({"download": 115.0}, {"download"})
        await turns.connections.start_programs()
        await asyncio.sleep(115.0)
        assert (turns.reported, turns.app.calls["download"]) == ({"download": ""}, 1)
        app: Any = App({"far": 25.0})
        await made(app, Programs(frozenset(), turns.reported.__setitem__, timeout=30.0)).attach()
        assert app.attached["one"] == ["far"]
        await turns.connections.close()

    run(test())


def test_a_program_that_fails_is_started_again_without_any_turn() -> None:
    async def test() -> None:
        turns = Turns({"broken": 1.0}, {"broken"})
        assert await turns.seconds(turns.connections.start_programs()) == pytest.approx(1.0)
        assert turns.reported == {"broken": "not started: OSError"}
        assert await turns.seconds(turns.connections.attach()) == 0.0
        await asyncio.sleep(31.0)
        assert turns.app.calls["broken"] == 2
        await turns.connections.close()

    run(test())


def failed(
    errors: dict[str, Exception], words: dict[str, Any], reasons: ProgramReasons
) -> tuple[dict[str, str], list[Any]]:
    """Return what is reported of programs whose start fails with `errors`, and what is logged, in two rounds."""

    async def test() -> tuple[dict[str, str], list[Any]]:
        app = App(dict.fromkeys(errors, 0.0))
        app.errors = errors
        reported: dict[str, str] = {}
        programs = Programs(frozenset(errors), reported.__setitem__, reasons=reasons)
        programs.last_words |= words
        connections = made(app, programs)
        with structlog.testing.capture_logs() as lines:
            await connections.start_programs()
            await asyncio.sleep(31.0)
        await connections.close()
        return reported, lines

    with asyncio.Runner(loop_factory=Skipping) as runner:
        return runner.run(test())


def caused(cause: Exception) -> FastAgentError:
    error = FastAgentError("MCP Server: it", "uvx x --token hunter2")
    error.__cause__ = cause
    return error


def command(program: str, *arguments: str, folder: str | None = None, file: str = "fastagent.config.yaml") -> Command:
    return Command(program, Where(file), arguments, folder=folder)


def spoken(*lines: str, ending: str) -> Any:
    return SimpleNamespace(lines=lambda: list(lines), ending=ending)


def test_a_program_that_the_system_does_not_start_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    errors = {
        "absent": caused(FileNotFoundError(2, "No such file or directory", "/home/me/uvx")),
        "unknown": caused(FileNotFoundError(2, "No such file or directory", "/home/me/npx")),
        "folder": caused(FileNotFoundError(2, "No such file or directory", "sh")),
        "closed": caused(PermissionError(13, "Permission denied")),
        "interpreter": caused(FileNotFoundError(2, "No such file or directory")),
        "lost": caused(BrokenPipeError(32, "Broken pipe")),
    }
    commands = {
        "absent": command("uvx", "x", "--token", "hunter2"),
        "folder": command("sh", folder="nowhere"),
        "closed": command("./run.sh"),
        "interpreter": command(str(tmp_path / "there")),
        "lost": command("x"),
    }
    reported, _ = failed(errors, {}, ProgramReasons(commands))
    assert reported == {
        "absent": "not started: there is no program `uvx` here",
        "unknown": "not started: there is no program `npx` here",
        "folder": "not started: its `cwd` nowhere is no folder here",
        "closed": "not started: `./run.sh` may not be executed: `chmod +x` it",
        "interpreter": f"not started: `{tmp_path / 'there'}` cannot be executed: No such file or directory",
        "lost": "not started: `x` ended before it answered",
    }


def test_a_program_that_ended_is_told_with_its_command_line_and_last_words_without_secrets() -> None:
    errors = dict.fromkeys(["notes", "kept", "silent"], caused(ConnectionError("Connection closed")))
    words = {
        "notes": spoken("Traceback", "no file; Unreachable: s3cr3t-of-mine", ending="exit code 2"),
        "kept": spoken("x", ending="SIGKILL"),
        "silent": spoken(ending="SIGTERM"),
    }
    commands = {
        "notes": command("python", "notes.py", "--token", "hunter2hunter2"),
        "kept": command("python", "s3cr3t-argument", file="fastagent.secrets.yaml"),
        "silent": command("sleep", "9"),
    }
    reported, lines = failed(errors, words, ProgramReasons(commands, frozenset({"s3cr3t-of-mine"})))
    assert reported == {
        "notes": "not started: `python notes.py --token ***` ended before it answered (exit code 2): "
        "no file, Unreachable: ***",
        "kept": "not started: `python` ended before it answered (SIGKILL): x",
        "silent": "not started: `sleep 9` did not answer, and was ended",
    }
    logged = {line["server"]: line for line in lines}
    assert len(lines) == len(logged)  # the second round said the same
    assert logged["notes"] == {
        "event": "server_not_started",
        "log_level": "warning",
        "server": "notes",
        "command": "python notes.py --token ***",
        "ending": "exit code 2",
        "stderr": "Traceback\nno file; Unreachable: ***",
    }
    assert logged["kept"]["command"] == "python"


def test_an_agent_that_asks_for_a_token_tells_nobody_what_its_servers_wrote() -> None:
    words = {"notes": spoken("no file", ending="exit code 2")}
    reasons = ProgramReasons({"notes": command("python", "notes.py")}, secretive=True)
    reported, lines = failed({"notes": caused(ConnectionError())}, words, reasons)
    assert reported == {"notes": "not started: it ended before it answered (exit code 2)"}
    assert lines[0]["stderr"] == "no file"


def test_an_agent_that_asks_for_a_token_tells_nobody_what_its_programs_are(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    program = str(tmp_path / "there")
    errors: dict[str, Exception] = {
        "absent": caused(FileNotFoundError(2, "No such file or directory")),
        "unknown": caused(FileNotFoundError(2, "No such file or directory", "/home/me/npx")),
        "closed": caused(PermissionError(13, "Permission denied")),
        "interpreter": caused(OSError(errno.ENOEXEC, "Exec format error")),
    }
    commands = {"absent": command("/home/me/srv"), "closed": command(program), "interpreter": command(program)}
    reported, lines = failed(errors, {}, ProgramReasons(commands, secretive=True))
    assert reported == {
        "absent": "not started: its program is not here",
        "unknown": "not started: its program is not here",
        "closed": "not started: its program may not be executed: `chmod +x` it",
        "interpreter": "not started: its program cannot be executed: Exec format error",
    }
    assert {line["server"]: line["command"] for line in lines}["absent"] == "/home/me/srv"


def test_the_folder_of_a_server_in_the_file_of_secrets_is_told_to_nobody() -> None:
    errors: dict[str, Exception] = {"folder": caused(FileNotFoundError(2, "No such file or directory", "sh"))}
    commands = {"folder": command("sh", folder="nowhere", file="fastagent.secrets.yaml")}
    reported, _ = failed(errors, {}, ProgramReasons(commands))
    assert reported == {"folder": "not started: its `cwd` is no folder here"}


class Mortal:
    """The last words of a program that ends at a time of the loop."""

    def __init__(self, end: float) -> None:
        self._end = end

    def exit_code(self) -> int | None:
        return 7 if asyncio.get_running_loop().time() >= self._end else None

    @property
    def ending(self) -> str:
        return "exit code 7"

    def lines(self) -> list[str]:
        return ["fatal: the disk is gone", "hint: buy another"]


def test_a_program_that_ends_after_it_answered_is_told_and_started_again() -> None:
    async def test() -> None:
        turns = Turns({"notes": 1.0}, {"notes"})
        turns.programs.last_words["notes"] = Mortal(100.0)  # type: ignore[assignment]
        await turns.connections.start_programs()
        await asyncio.sleep(90.0)
        assert turns.reported == {"notes": ""}
        with structlog.testing.capture_logs() as lines:
            await asyncio.sleep(15.0)
        # the one that is started at once ends at once: the third waits as after a start that failed
        assert [(line["event"], line["ending"]) for line in lines] == [("server_ended", "exit code 7")] * 2
        assert turns.reported == {"notes": "`notes` ended (exit code 7): fatal: the disk is gone"}
        assert (turns.app.calls["notes"], turns.app.attached["one"]) == (2, [])
        turns.programs.last_words["notes"] = Mortal(1000.0)  # type: ignore[assignment]
        assert await turns.seconds(turns.connections.attach()) == pytest.approx(1.0)
        assert (turns.reported, turns.app.attached["one"]) == ({"notes": ""}, ["notes"])
        await asyncio.sleep(60.0)
        assert turns.app.calls["notes"] == 3
        await turns.connections.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(test())


def test_a_program_is_asked_whether_it_answers_only_while_no_turn_may_call_it() -> None:
    """One with a call under way may do nothing beside it."""

    async def test() -> None:
        turns = Turns({"notes": 1.0}, {"notes"})
        turns.programs.last_words["notes"] = Mortal(HANGS)  # type: ignore[assignment]
        asked, free = [], asyncio.Event()

        async def ping() -> None:
            asked.append(asyncio.get_running_loop().time())
            await free.wait()

        turns.app.connection = SimpleNamespace(protocol_version="2025-11-25", ping=ping)
        await turns.connections.start_programs()
        await turns.connections.attach()
        await asyncio.sleep(100.0)
        assert (asked, turns.reported) == ([], {"notes": ""})
        turns.connections.rest()
        await asyncio.sleep(25.0)
        assert (len(asked), turns.reported) == (1, {"notes": ""})
        await asyncio.sleep(30.0)
        assert turns.reported == {"notes": "`notes` runs and has not answered for 30 s"}
        free.set()
        await asyncio.sleep(0.0)
        await asyncio.sleep(31.0)
        assert (len(asked), turns.reported) == (2, {"notes": ""})
        await turns.connections.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(test())


def test_a_program_that_hangs_is_given_up_for_the_others_and_closing_ends_it() -> None:
    async def test() -> None:
        turns = Turns({"hangs": HANGS, "well": 0.5}, {"hangs", "well"})
        assert await turns.seconds(turns.connections.start_programs()) == pytest.approx(5.0)
        assert turns.reported == {"hangs": "not started yet", "well": "not started yet"}
        await asyncio.sleep(120.0)
        assert turns.reported == {"hangs": "not started: `hangs` did not answer within 120 s", "well": ""}
        assert turns.app.attached["one"] == ["well"]
        await turns.connections.close()
        assert turns.reported == {
            "hangs": "not started: `hangs` did not answer within 120 s",
            "well": "",
        }  # it is as broken as it was
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(test())


def test_a_program_is_missing_while_any_instance_is_without_it() -> None:
    reported: dict[str, str] = {}
    programs = Programs(frozenset({"p"}), reported.__setitem__)
    one, two = ((made(App({}), programs), "a") for _ in range(2))
    programs.late(one, "p", "first")
    programs.late(two, "p", "second")
    programs.started(one, "p", 7.0)
    assert reported == {"p": "second"}
    assert not programs.quick("p")
    programs.started(two, "p", 1.0)
    assert reported == {"p": ""}
    assert programs.quick("p")


def test_the_end_of_an_instance_mends_no_program_and_breaks_none() -> None:
    reported: dict[str, str] = {}
    programs = Programs(frozenset({"p"}), reported.__setitem__)
    one, two = (made(App({}), programs) for _ in range(2))
    programs.late((one, "a"), "p", "broken")
    programs.forget(one)
    assert reported == {"p": "broken"}
    programs.started((two, "a"), "p", 1.0)
    programs.late((one, "a"), "p", "late")
    programs.forget(one)
    assert reported == {"p": ""}
    programs.forget(two)
    assert reported == {"p": ""}
