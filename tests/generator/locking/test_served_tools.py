"""Agents of a running fleet, asked for their tools."""

from __future__ import annotations

from pallas_contract.documents.reason import Reason
from pallas_contract.documents.tool_contract import ToolContract
from pallas_contract.probe.probe import Result, Target
from pallas_gen.clients.entries import Entries, Entry
from pallas_gen.locking import served_tools
from pallas_gen.locking.served_tools import Served

TOOLS = {"ask": ToolContract("1")}


async def test_agents_of_the_file_tell_their_tools_or_why_not() -> None:
    asked: list[Target] = []

    async def probe(target: Target, *, timeout: float) -> Result:
        asked.append(target)
        if "down" in target.url:
            return Result("error", Reason("ConnectionRefused", "connection refused"))
        late = len([other for other in asked if other.url == target.url]) > 2
        return Result("ok", tools=TOOLS if "well" in target.url and late else None)

    entries = Entries(
        (
            Entry("well", "http://well/mcp", "", token=True),
            Entry("down", "http://down/mcp", "", token=False),
            Entry("mute", "http://mute/mcp", "", token=False),
            Entry("guest", "http://guest/mcp", "", token=True, registered=True),
            Entry("stranger", "http://stranger/mcp", "", token=True),
        ),
        ("inner", "other"),
    )
    served = await served_tools.ask(entries, {"well", "down", "mute", "guest", "inner", "gone"}, "secret", ask=probe)
    absent = "the registry has no such agent"
    failures = {"down": "connection refused", "mute": "it has not told its tools", "guest": absent, "gone": absent}
    assert served == Served({"well": TOOLS}, failures, ("inner",))
    urls = [target.url for target in asked]
    assert [urls.count(f"http://{name}/mcp") for name in ("well", "down", "mute", "guest", "stranger")] == [
        3,
        1,
        5,
        0,
        0,
    ]
    assert {target.url for target in asked if target.headers} == {"http://well/mcp"}, (
        "the token is for who asks for one"
    )
    assert all(target.tools and target.deep for target in asked)
