"""How long a turn waits for servers that hang, on a clock that is moved on instead of waiting."""

from __future__ import annotations

import asyncio
import selectors
from types import SimpleNamespace
from typing import Any

import pytest

from pallas_agent_runtime.engine.connect import attach


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
    """As fast-agent: an agent's servers are connected under a lock. `seconds` are what each server takes."""

    def __init__(self, seconds: dict[str, float], agents: tuple[str, ...] = ("one",)) -> None:
        self._seconds = seconds
        self._locks = {agent: asyncio.Lock() for agent in agents}
        self.attached: dict[str, list[str]] = {agent: [] for agent in agents}

    def registered_agents(self) -> Any:
        without = SimpleNamespace(config=SimpleNamespace(servers=[]))
        using = SimpleNamespace(config=SimpleNamespace(servers=list(self._seconds)))
        return {"none": without, **dict.fromkeys(self._locks, using)}

    async def list_attached_mcp_servers(self, agent: str) -> list[str]:
        return list(self.attached[agent])

    async def attach_mcp_server(self, agent: str, server: str) -> None:
        async with self._locks[agent]:
            await asyncio.sleep(self._seconds[server])
            if server == "broken":
                raise OSError(server)
            self.attached[agent].append(server)


HANGS = 3600.0


@pytest.mark.parametrize(
    ("seconds", "waited", "attached"),
    [
        ({"a": HANGS, "b": HANGS, "c": HANGS}, 5.0, []),
        ({"a": HANGS, "b": HANGS, "c": HANGS, "fine": 0.5}, 4.25, ["fine"]),
        ({"broken": 0.0, "slow": 4.5}, 4.5, ["slow"]),
        ({"fine": 0.5, "mine": 0.5, "y": HANGS, "z": 1.5}, 4.5, ["fine", "mine", "z"]),
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


def test_agents_do_not_wait_for_each_other_and_connect_only_what_they_miss() -> None:
    with asyncio.Runner(loop_factory=Skipping) as runner:
        app: Any = App({"a": HANGS, "fine": 0.5, "forwarded": HANGS, "poor": HANGS}, ("one", "two"))
        app.attached["two"].append("fine")
        runner.run(attach(app, frozenset({"forwarded"}), lambda names: sorted(set(names) - {"poor"})))
        assert app.attached == {"one": ["fine"], "two": ["fine"]}
        assert runner.get_loop().time() == pytest.approx(5.0)
