"""A slow and a dying agent in the middle of a plan, and limits that hold; as processes: `pytest tests/faults`."""

import sqlite3
import threading
import uuid
from contextlib import closing

import httpx
import pytest

PATIENCE = 240
"""Seconds for what takes a few on a machine that has nothing else to do."""
ABOUT = {"symbol": "ACME", "interval": "1d"}
PRICES = {"task_id": "prices", "agent_id": "binance_agent", "function": "fetch_ohlcv", "input": ABOUT, "retries": 2}
FIGURES = {
    "task_id": "figures",
    "agent_id": "feature_extractor",
    "function": "extract_features",
    "input": {**ABOUT, "ohlcv": {"$from": "prices", "path": "/ohlcv"}},
}
NEWS = {
    "task_id": "news",
    "agent_id": "news_fetcher",
    "function": "fetch_recent_articles",
    "input": {"symbol": "ACME"},
    "on_error": "skip",
}


def execute(fleet, task_id="", **params):
    """Return the answer to an `agent.execute` in the envelope of seed 003: each plan has an id of its own."""
    meta = {"task_id": task_id or uuid.uuid4().hex}
    message = {"method": "agent.execute", "params": {**params, "meta": meta}}
    reply = httpx.post(f"{fleet.url('gateway')}/mcp", json=message, timeout=PATIENCE, trust_env=False)
    return reply.raise_for_status().json()


def test_what_is_slow_is_skipped_with_all_that_waits_for_it(fleet):
    fleet.faults.pause("newswire")  # which the news_fetcher then waits for
    digest = {**FIGURES, "task_id": "digest", "depends_on": ["news"]}
    answer = execute(fleet, tasks=[PRICES, FIGURES, {**NEWS, "timeout": 1}, digest])
    assert answer["meta"]["status"] == "partial"
    tasks = answer["result"]["tasks"]
    statuses = {"prices": "success", "figures": "success", "news": "error", "digest": "skipped"}
    assert {name: task["status"] for name, task in tasks.items()} == statuses
    assert tasks["news"]["error"]["code"] == -32001
    assert tasks["figures"]["result"]["features"] == [0.15, 8.0]


def in_flight(fleet, agent):
    """Return how many calls an agent is answering now, as its metrics say."""
    lines = httpx.get(f"{fleet.url(agent).removesuffix('/mcp')}/metrics", trust_env=False, timeout=60).text.splitlines()
    (line,) = [line for line in lines if line.startswith("pallas_calls_in_flight ")]
    return float(line.split()[1])


def test_an_agent_that_dies_in_the_middle_is_asked_again(fleet):
    fleet.faults.pause("exchange")  # so that the binance_agent has not answered when it is killed
    answers = []
    plan = [{**PRICES, "retries": 5}, FIGURES]
    asking = threading.Thread(target=lambda: answers.append(execute(fleet, tasks=plan)))
    asking.start()
    fleet.wait_for(lambda: in_flight(fleet, "binance_agent") > 0, within=PATIENCE)
    fleet.faults.kill("binance_agent")
    fleet.faults.resume("exchange")
    asking.join(PATIENCE)
    ((answer,),) = (answers,)
    assert answer["result"]["tasks"]["figures"]["result"]["features"] == [0.15, 8.0]


def answered(fleet, agent, function):
    """Return how often an agent has answered a function since it began, as its metrics say."""
    text = httpx.get(f"{fleet.url(agent).removesuffix('/mcp')}/metrics", trust_env=False, timeout=60).text
    counts = [line for line in text.splitlines() if line.startswith("mcp_server_operation_duration_seconds_count{")]
    return sum(float(line.split()[-1]) for line in counts if f'gen_ai_tool_name="{function}"' in line)


def kept(fleet):
    """Return the tasks of plans under way that the gateway has on disk."""
    file = fleet.folder / ".pallas" / "gateway" / "gateway.db"
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as state:
        return {task for (task,) in state.execute("SELECT task FROM steps")}


def test_a_plan_goes_on_after_the_gateway_was_killed_in_its_middle(fleet):
    work = {"binance_agent": "fetch_ohlcv", "feature_extractor": "extract_features"}
    before = {agent: answered(fleet, agent, function) for agent, function in work.items()}
    answers = []

    def ask():
        try:
            answers.append(execute(fleet, "plan-7", tasks=[PRICES, FIGURES, NEWS]))
        except httpx.TransportError:  # the gateway is gone, or not there again
            return False
        return True

    fleet.faults.pause("newswire")  # which the news_fetcher then waits for
    asking = threading.Thread(target=ask)
    asking.start()
    fleet.wait_for(lambda: kept(fleet) == {"prices", "figures"}, within=PATIENCE)
    fleet.faults.kill("gateway")
    asking.join(PATIENCE)
    assert answers == []
    fleet.faults.resume("newswire")
    fleet.wait_for(ask, within=PATIENCE)
    tasks = answers[0]["result"]["tasks"]
    assert {name: task["status"] for name, task in tasks.items()} == dict.fromkeys(
        ("prices", "figures", "news"), "success"
    )
    assert tasks["figures"]["result"]["features"] == [0.15, 8.0]
    after = {agent: answered(fleet, agent, function) for agent, function in work.items()}
    assert after == {agent: count + 1 for agent, count in before.items()}


@pytest.mark.parametrize("interval", ["1d", "1s"])
def test_fetch_ohlcv_has_5_seconds_and_128_mb_and_no_more(fleet, interval):
    limits = {"Agent function error: Error: no answer within 5 s"}
    if interval == "1d":
        fleet.faults.pause("exchange")
    else:  # which are too many; on a machine that is busy the time may be over before the memory is
        limits.add("Agent function error: Error: it needs more than 128 MB")
    answer = execute(
        fleet, **{key: PRICES[key] for key in ("agent_id", "function")}, input={**ABOUT, "interval": interval}
    )
    assert answer["error"]["code"] == -32000
    assert answer["error"]["message"] in limits
