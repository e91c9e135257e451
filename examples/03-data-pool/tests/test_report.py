"""The orchestrator and its pool, started and asked: `pip install 'pallas-kit[local,testing]'`, then `pytest`."""

import json
import subprocess
import sys

import httpx

PATIENCE = 240
"""Seconds for what takes a few on a machine that has nothing else to do."""


def test_a_report_is_made_of_prices_figures_and_news(fleet):
    answer = fleet.agent("orchestrator").ask("acme")
    report = json.loads(answer.text)
    assert report["symbol"] == "ACME"
    assert report["figures"]["result"]["features"] == [0.15, 8.0]
    assert report["news"]["result"] == {"articles": ["ACME opens a second data centre", "Analysts agree about ACME"]}
    assert answer.delegated("orchestrator -> binance_agent -> local/fetch_ohlcv")
    assert answer.delegated("orchestrator -> news_fetcher -> newswire/headlines")
    assert answer.progressed("binance_agent/*: completed", "feature_extractor/*: started")
    assert answer.progressed("news_fetcher/*: started", "binance_agent/*: completed")  # they wait for nobody


def execute(fleet, **params):
    """Return the answer to an `agent.execute` in the envelope of seed 003."""
    message = {"method": "agent.execute", "params": {**params, "meta": {"task_id": "task_001"}}}
    reply = httpx.post(f"{fleet.url('gateway')}/mcp", json=message, timeout=PATIENCE, trust_env=False)
    return reply.raise_for_status().json()


def test_functions_of_agents_are_called_by_name(fleet):
    called = {"agent_id": "news_fetcher", "function": "fetch_recent_articles"}
    answer = execute(fleet, **called, input={"symbol": "AAPL"})
    assert answer["result"] == {"articles": ["AAPL opens a second data centre", "Analysts agree about AAPL"]}
    assert answer["meta"]["status"] == "success"
    assert execute(fleet, **called, input={})["error"]["code"] == -32602
    assert execute(fleet, **called | {"function": "fetch"}, input={})["error"]["code"] == -32601


def report_by(host, symbol, fleet):
    """Return what one of the orchestrators in `hosts` prints, and the report and the plot that it writes."""
    folder = fleet.folder / "reports" / host
    command = [sys.executable, "-m", f"hosts.{host}", symbol, "--gateway", fleet.url("gateway"), "--to", str(folder)]
    done = subprocess.run(command, cwd=fleet.folder, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr, (folder / f"{symbol}.md").read_bytes(), (folder / f"{symbol}.svg").read_bytes()


def test_the_plan_of_code_and_that_of_the_model_come_to_the_same_report(fleet):
    _, text, plot = report_by("plain", "ACME", fleet)
    assert "Trend +15.0%, range 8.00." in text.decode()
    assert "- Analysts agree about ACME" in text.decode()
    assert plot.count(b"<rect") == 5
    assert report_by("planned", "ACME", fleet) == ("", text, plot)


def test_a_plan_that_cannot_be_run_is_refused_whole_and_made_anew(fleet):
    printed, text, _ = report_by("planned", "LOOP", fleet)
    assert "tasks: wait for each other: prices -> news -> prices" in printed
    assert "- Analysts agree about LOOP" in text.decode()


def call_gateway(fleet, tool, **arguments):
    """Return the JSON-RPC answer of the gateway to one call: no session, and nothing that a client must have."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    reply = httpx.post(f"{fleet.url('gateway')}/mcp", json=message, timeout=PATIENCE, trust_env=False)
    return reply.raise_for_status().json()


def result_of(answer):
    assert "result" in answer, f"the gateway answers with an error: {answer}"
    return answer["result"]


def test_the_gateway_leads_to_the_agents_that_it_names_alone(fleet):
    answer = result_of(call_gateway(fleet, "ask_agent", agent_uri="orchestrator", tenant_id="desk", prompt="acme"))
    assert answer["structuredContent"]["status"] == "success"
    assert answer["structuredContent"]["response"]["figures"]["result"]["features"] == [0.15, 8.0]
    assert answer["structuredContent"]["model"] == "passthrough"
    hidden = call_gateway(fleet, "ask_agent", agent_uri="exchange", tenant_id="desk", prompt="acme")
    assert hidden["error"]["data"] == {"reason": "unknown_agent"}


def test_the_gateway_searches_what_the_newswire_has(fleet):
    answer = result_of(call_gateway(fleet, "search_knowledge_base", query="ACME", tenant_id="desk", limit=1))
    assert answer["structuredContent"]["count"] == 1
    assert answer["structuredContent"]["results"][0]["content"] == "ACME opens a second data centre"
    stranger = call_gateway(fleet, "search_knowledge_base", query="ACME", tenant_id="nobody")
    assert stranger["error"]["data"] == {"reason": "unknown_tenant"}


def test_an_agent_that_hangs_is_named_where_it_is_needed(fleet):
    fleet.faults.pause("news_fetcher")
    assert fleet.registry.saw("news_fetcher", "ok", "error", within=PATIENCE)
    fleet.wait_for({"orchestrator": "degraded", "binance_agent": "ok"}, within=PATIENCE)
    assert "news_fetcher" in fleet.registry.state("orchestrator").message
    fleet.faults.resume("news_fetcher")
    fleet.wait_for(dict.fromkeys(fleet.agents, "ok"), within=PATIENCE)
