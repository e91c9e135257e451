"""The orchestrator and its pool, started and asked: `pip install 'pallas-kit[local,testing]'`, then `pytest`."""

import json

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


def test_an_agent_that_hangs_is_named_where_it_is_needed(fleet):
    fleet.faults.pause("news_fetcher")
    assert fleet.registry.saw("news_fetcher", "ok", "error", within=PATIENCE)
    fleet.wait_for({"orchestrator": "degraded", "market_data": "ok"}, within=PATIENCE)
    assert "news_fetcher" in fleet.registry.state("orchestrator").message
    fleet.faults.resume("news_fetcher")
    fleet.wait_for(dict.fromkeys(fleet.agents, "ok"), within=PATIENCE)
