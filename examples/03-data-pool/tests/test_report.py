"""The orchestrator and its pool, started and asked: `pip install 'pallas-kit[local,testing]'`, then `pytest`."""

import json

import httpx

PATIENCE = 240
"""Seconds for what takes a few on a machine that has nothing else to do."""


def test_a_report_is_made_of_prices_figures_and_news(fleet):
    answer = fleet.agent("orchestrator").ask("acme")
    report = json.loads(answer.text)
    assert report["symbol"] == "ACME"
    assert report["figures"]["result"] == {"trend": 0.15, "range": 8.0}
    assert report["news"]["result"] == ["ACME opens a second data centre", "Analysts agree about ACME"]
    assert answer.delegated("orchestrator -> market_data -> exchange/candles")
    assert answer.delegated("orchestrator -> news_fetcher -> newswire/headlines")
    assert answer.progressed("market_data/*: completed", "feature_extractor/*: started")
    assert answer.progressed("news_fetcher/*: started", "market_data/*: completed")  # they wait for nobody


def call_gateway(fleet, tool, **arguments):
    """Return the JSON-RPC answer of the gateway to one call: no session, and nothing that a client must have."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    reply = httpx.post(f"{fleet.url('gateway')}/mcp", json=message, timeout=PATIENCE, trust_env=False)
    return reply.raise_for_status().json()


def result_of(answer):
    assert "result" in answer, f"the gateway answers with an error: {answer}"
    return answer["result"]


def test_the_gateway_leads_to_the_orchestrator_alone(fleet):
    answer = result_of(call_gateway(fleet, "ask_agent", agent_uri="orchestrator", tenant_id="desk", prompt="acme"))
    assert answer["structuredContent"]["status"] == "success"
    assert answer["structuredContent"]["response"]["figures"]["result"] == {"trend": 0.15, "range": 8.0}
    assert answer["structuredContent"]["model"] == "passthrough"
    hidden = call_gateway(fleet, "ask_agent", agent_uri="market_data", tenant_id="desk", prompt="acme")
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
    fleet.wait_for({"orchestrator": "degraded", "market_data": "ok"}, within=PATIENCE)
    assert "news_fetcher" in fleet.registry.state("orchestrator").message
    fleet.faults.resume("news_fetcher")
    fleet.wait_for(dict.fromkeys(fleet.agents, "ok"), within=PATIENCE)
