"""A shell is offered where agents.yaml says so, and nowhere else: asked of fast-agent's own agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fast_agent import FastAgent
from structlog.testing import capture_logs

from pallas_agent_runtime import serve
from pallas_agent_runtime.config import fastagent_yaml
from pallas_agent_runtime.conversations.store import Conversations, MemoryStore
from pallas_agent_runtime.engine import Engine, Forwarding, Loaded, Programs, tool_policy, weigh

SKILL = "---\nname: letters\ndescription: Writes letters\n---\nWrite in ink.\n"


@pytest.fixture(autouse=True)
def skills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a skill, and a home for fast-agent."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAST_AGENT_HOME", "")
    folder = tmp_path / "skills"
    (folder / "letters").mkdir(parents=True)
    (folder / "letters" / "SKILL.md").write_text(SKILL)
    with serve.home(fastagent_yaml.build(None, None, prefix="passthrough", peers={}, environ={}).data):
        yield folder


async def tools(*, shell: bool, withheld: bool, skills: Path | None = None, default: bool = False) -> set[str]:
    """Return the names of the tools that an agent on `passthrough` has."""
    app = FastAgent("x", parse_cli_args=False, quiet=True)

    chosen: Any = {} if default else {"skills": [skills] if skills else None}

    @app.agent(name="scout", model="passthrough", shell=shell, **chosen)
    async def scout() -> None: ...

    if withheld:
        await tool_policy.withhold_shell(app)
    async with app.harness() as harness:
        session = await harness.session("s", agent_name="scout")
        agent = session.agent_app.registered_agents()["scout"]
        return {tool.name for tool in (await agent.list_tools()).tools}


@pytest.mark.parametrize("named", [True, False])
async def test_skills_are_read_where_they_are_named_and_not_searched_for(tmp_path: Path, *, named: bool) -> None:
    folder = tmp_path / ".claude" / "skills" / "letters"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    names = [str(folder.parent)] if named else []
    built = fastagent_yaml.build(None, None, prefix="passthrough", peers={}, environ={}, skills=names)
    with serve.home(built.data):
        assert await tools(shell=False, withheld=True, default=True) == ({"read_skill"} if named else set())


@pytest.mark.parametrize("shell", [True, False])
async def test_the_engine_goes_by_the_fleet_file(*, shell: bool) -> None:
    app = FastAgent("x", parse_cli_args=False, quiet=True)

    @app.agent(name="scout", model="passthrough")
    async def scout() -> None: ...

    settings: Any = SimpleNamespace(agent=SimpleNamespace(shell=shell, functions={}))
    engine = Engine(
        Loaded(app, "scout"),
        settings,
        Conversations(MemoryStore(weigh), weigh),
        choose=list,
        programs=Programs(frozenset(), lambda *_: None),
        forwarding=Forwarding({}, lambda *_: False, lambda _: False),
    )
    async with engine.running():
        assert app.app.context.no_shell is not shell


async def test_without_a_word_of_the_fleet_there_is_none_and_it_is_told() -> None:
    with capture_logs() as lines:
        assert await tools(shell=True, withheld=True) == set()
    assert [line["definition"] for line in lines if line["event"] == "shell_withheld"] == ["scout"]


async def test_skills_come_with_one_tool_that_reads_them(skills: Path) -> None:
    with capture_logs() as lines:
        assert await tools(shell=False, withheld=True, skills=skills) == {"read_skill"}
    assert not [line for line in lines if line["event"] == "shell_withheld"]


async def test_with_it_fast_agent_gives_one_to_who_asks_or_has_skills(skills: Path) -> None:
    """The other half: it is the switch that withholds it, and not that nobody would have one."""
    both = await tools(shell=False, withheld=False, skills=skills)
    assert {"write_text_file", "read_text_file"} < both
    assert await tools(shell=True, withheld=False) == both
