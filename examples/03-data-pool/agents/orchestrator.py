"""The plan: prices and news side by side, figures from the prices, and the report of it all."""

import asyncio
import json
from typing import Any

from fast_agent import FastAgent
from fast_agent.core.exceptions import FastAgentError

from agents.coded import Coded

fast = FastAgent("data-pool")


class Orchestrator(Coded):
    async def answer(self, text: str) -> dict[str, Any]:
        symbol = text.strip().upper()
        about = {"symbol": symbol, "interval": "1d"}

        async def execute(agent: str, function: str, **arguments: Any) -> Any:
            return await self.call(f"{agent}__{agent}", message=json.dumps({"function": function, "input": arguments}))

        async def figures() -> dict[str, Any]:
            prices = await execute("binance_agent", "fetch_ohlcv", **about)
            features = await execute("feature_extractor", "extract_features", **about, **prices["result"])
            return {"prices": prices, "figures": features}

        async def news() -> dict[str, Any]:
            try:
                return await execute("news_fetcher", "fetch_recent_articles", symbol=symbol)
            except FastAgentError as error:  # the edge is soft in agents.yaml, and so it is here
                return {"result": {"articles": []}, "by": f"nobody: {error}"}

        known, headlines = await asyncio.gather(figures(), news())
        return {"symbol": symbol, **known, "news": headlines}


@fast.custom(Orchestrator, name="orchestrator", servers=["binance_agent", "feature_extractor", "news_fetcher"])
async def orchestrator() -> None: ...
