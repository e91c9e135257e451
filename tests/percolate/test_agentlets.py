"""Agents that users make in examples/04-percolate: versions, what is refused, and answers that fit or are none."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from percolate.agentlets import answers, comparison, keeping
from percolate.agentlets.runners import Agent, Task
from percolate.mcp.server import TOOLS, server
from percolate.mcp.tools import Tools, use, used
from percolate.mcp.tools.agent import ANSWER, ask_agent, create_agent, list_agents
from percolate.memory.store import Store
from percolate.problems import NotThere, Problem

from tests.ports import free_port

pytestmark = pytest.mark.sqlite

ALICE: dict[str, Any] = {
    "tenant_id": "acme",
    "user_id": "alice@acme.example",
    "agent_name": "reader",
    "description": "You read invoices.",
    "output_schema": ANSWER,
}
URI = "agentlet://user/alice@acme.example/reader"
GOOD = json.dumps({"answer": "A", "confidence": 1, "tags": []})


class Scripted:
    """A runner that gives these answers, one after the other."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.tasks: list[Task] = []

    async def run(self, task: Task) -> str:
        self.tasks.append(task)
        return self.answers.pop(0)


@pytest.fixture(autouse=True)
def runner(store: Store) -> Scripted:
    scripted = Scripted(GOOD)
    use(Tools(store, runner=scripted))
    return scripted


async def test_an_agent_is_made_listed_and_asked_by_its_tenant_alone(runner: Scripted) -> None:
    made = await create_agent(**ALICE, tools=["search_knowledge_base"])
    assert (made["status"], made["agent_uri"], made["message"]) == ("success", URI, "Agent created successfully")
    (listed,) = (await list_agents("acme"))["agents"]
    assert (listed["uri"], listed["description"], listed["required"]) == (URI, "You read invoices.", ANSWER["required"])
    assert (await ask_agent(agent_uri=URI, tenant_id="acme", prompt="Read."))["response"] == json.loads(GOOD)
    (task,) = runner.tasks
    assert task.instruction.startswith("You read invoices.\n")
    assert (task.prompt, task.tools, task.tenant_id) == ("Read.", ("search_knowledge_base",), "acme")
    assert await list_agents("other") == {"agents": []}
    with pytest.raises(NotThere, match=f"Agent not found: {URI}"):
        await ask_agent(agent_uri=URI, tenant_id="other", prompt="Read.")


async def test_the_same_name_is_the_next_version_and_the_last_one_answers(runner: Scripted) -> None:
    await create_agent(**ALICE)
    assert (await create_agent(**ALICE | {"description": "You read letters."}))["version"] == 2
    (listed,) = (await list_agents("acme"))["agents"]
    assert (listed["version"], listed["description"]) == ("2.0.0", "You read letters.")
    await ask_agent(agent_uri=URI, tenant_id="acme", prompt="Read.")
    assert runner.tasks[0].instruction.startswith("You read letters.\n")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"agent_name": "Invoice Reader"}, "agent_name: write a-z, 0-9 and hyphens"),
        ({"user_id": "../bob"}, "user_id: write letters"),
        ({"output_schema": {"type": "objct"}}, "output_schema: is no JSON Schema"),
        ({"output_schema": {"type": "array"}}, "output_schema: needs `type: object`"),
        ({"output_schema": ANSWER | {"x": "y" * (16 << 10)}}, "output_schema: has more than 16 KiB"),
        ({"output_schema": {"type": "object", "$ref": "http://169.254.169.254/"}}, "`$ref` may lead to `#/...` only"),
        ({"output_schema": {"type": "object", "allOf": [{"$ref": "other.json"}]}}, "`$ref` may lead to `#/...` only"),
        ({"description": "a\0b"}, "description: has a character of zero"),
        ({"tools": ["lookup_entity", "run_shell"]}, "tools: there is no `run_shell`, only search_knowledge_base"),
    ],
)
async def test_what_cannot_be_enforced_is_refused_and_not_written(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(Problem) as caught:
        await create_agent(**ALICE | wrong)
    assert reason in str(caught.value)
    assert await list_agents("acme") == {"agents": []}


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("I think so.", "it is no JSON"),
        ('{"answer": "A", "tags": []}', "'confidence' is a required property"),
        ('{"answer": "A", "confidence": 2, "tags": []}', "confidence: 2 is greater than the maximum of 1"),
    ],
)
async def test_an_answer_that_does_not_fit_is_asked_for_once_more(runner: Scripted, first: str, reason: str) -> None:
    await create_agent(**ALICE)
    runner.answers = [first, GOOD]
    assert (await ask_agent(agent_uri=URI, tenant_id="acme", prompt="Read."))["response"] == json.loads(GOOD)
    assert f"Your last answer was not accepted: {reason}." in runner.tasks[1].prompt
    runner.answers = [GOOD.replace("1", "7"), first, GOOD]
    with pytest.raises(Problem) as caught:
        await ask_agent(agent_uri=URI, tenant_id="acme", prompt="Read.")
    assert str(caught.value) == f"{URI} gave no answer that fits its output_schema, twice: {reason}"
    assert runner.answers == [GOOD]


async def test_a_schema_that_leads_into_a_circle_is_an_error_and_not_the_end() -> None:
    endless = {"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
    await create_agent(**ALICE | {"output_schema": endless})
    use(Tools(used().store, runner=Scripted(GOOD, GOOD)))
    with pytest.raises(Problem, match="it cannot be compared with the schema"):
        await ask_agent(agent_uri=URI, tenant_id="acme", prompt="Read.")


def doubling(levels: int) -> dict[str, Any]:
    """Return a schema whose work doubles with each level."""
    references = {f"a{n}": {"allOf": 2 * [{"$ref": f"#/$defs/a{n + 1}"}]} for n in range(levels)}
    return {"type": "object", "$ref": "#/$defs/a0", "$defs": references | {f"a{levels}": True}}


@pytest.mark.parametrize(
    ("schema", "answers"),
    [
        (doubling(40), (GOOD, GOOD)),
        ({"type": "object", "additionalProperties": {"pattern": "^(a+)+$"}}, ("no JSON", '{"x": "%sb"}' % (60 * "a"))),
    ],
    ids=["references", "pattern"],
)
@pytest.mark.parametrize("store", ["sqlite"], indirect=True)  # no database has a part in it
async def test_a_schema_that_is_months_of_work_holds_nobody_up(
    schema: dict[str, Any], answers: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "comparison.py"
    program.write_text(Path(comparison.__file__).read_text().replace("MOST_SECONDS = 5", "MOST_SECONDS = 1"))
    monkeypatch.setattr(comparison, "__file__", str(program))
    await create_agent(**ALICE | {"output_schema": schema})
    use(Tools(used().store, runner=Scripted(*answers)))
    asked = asyncio.create_task(ask_agent(agent_uri=URI, tenant_id="acme", prompt="Read."))
    await asyncio.sleep(0)
    assert (await list_agents("other")) == {"agents": []}
    assert not asked.done()
    with pytest.raises(Problem, match="it cannot be compared with the schema in 5 s of processor time"):
        await asked


async def test_a_property_may_have_the_name_of_a_keyword(runner: Scripted) -> None:
    properties = {name: {"type": "string", "default": {"$ref": "x"}} for name in ("pattern", "$ref", "const")}
    await create_agent(**ALICE | {"output_schema": {"type": "object", "properties": properties}})


async def test_the_last_versions_are_kept_and_the_list_stays_small_enough_for_the_gateway() -> None:
    for _ in range(keeping.VERSIONS + 2):
        made = await create_agent(**ALICE)
    assert made["version"] == keeping.VERSIONS + 2
    assert used().store.rows("acme", "SELECT min(version), count(*) FROM agentlets") == [(3, keeping.VERSIONS)]
    long = ALICE | {"description": "x" * 20_000}
    for number in range(102):
        await create_agent(**long | {"agent_name": f"a{number}"})
    with pytest.raises(Problem, match="the agents of the tenant have more than 2 MiB"):
        await create_agent(**long | {"agent_name": "one-more", "output_schema": ANSWER | {"x": "y" * 15_000}})
    assert len(json.dumps(await list_agents("acme"))) < 2 << 20


async def test_an_answer_that_comes_too_late_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        async def run(self, task: Task) -> str:
            return await asyncio.Future()

    monkeypatch.setattr(answers, "SECONDS", 0.01)
    await create_agent(**ALICE)
    use(Tools(used().store, runner=Silent()))
    with pytest.raises(Problem, match=f"{URI} gave no answer in 0.01 s"):
        await ask_agent(agent_uri=URI, tenant_id="acme", prompt="Read.")


async def test_a_runner_that_is_down_is_named() -> None:
    runner = Agent(f"http://127.0.0.1:{free_port()}/mcp")
    with pytest.raises(Problem, match="the runner gives no answer: ConnectError"):
        await runner.run(Task("", "", (), "acme"))


async def test_the_server_has_the_tools_that_the_gateway_asks_for() -> None:
    async with Client(server(TOOLS)) as client:
        await client.call_tool("create_agent", ALICE)
        reply = await client.call_tool("ask_agent", {"agent_uri": URI, "tenant_id": "acme", "prompt": "Read."})
        assert json.loads(reply.content[0].text) == json.loads(GOOD)
        listed = await client.call_tool("list_agents", {"tenant_id": "acme"})
        assert [agent["uri"] for agent in json.loads(listed.content[0].text)["agents"]] == [URI]
        refused = await client.call_tool("create_agent", ALICE | {"agent_name": "Not This"})
        assert refused.is_error
