"""The plan: prices and news side by side, figures from the prices, and the report of it all."""

import asyncio
import json
from typing import Any

from fast_agent import FastAgent
from fast_agent.core.exceptions import FastAgentError

from agents.coded import Call, Coded

fast = FastAgent("data-pool")


class Orchestrator(Coded):
    async def answer(self, text: str, call: Call) -> dict[str, Any]:
        symbol = text.strip().upper()

        async def execute(agent: str, function: str, **given: Any) -> Any:
            return await call(f"{agent}__{agent}", message=json.dumps({"function": function, "input": given}))

        async def figures() -> dict[str, Any]:
            prices = await execute("market_data", "fetch_ohlcv", symbol=symbol)
            found = await execute("feature_extractor", "extract_features", ohlcv=prices["result"])
            return {"prices": prices, "figures": found}

        async def news() -> dict[str, Any]:
            try:
                return await execute("news_fetcher", "fetch_recent_articles", symbol=symbol)
            except FastAgentError as error:  # the edge is soft in agents.yaml, and so it is here
                return {"result": [], "by": f"nobody: {error}"}

        known, told = await asyncio.gather(figures(), news())
        return {"symbol": symbol, **known, "news": told}


@fast.custom(Orchestrator, name="orchestrator", servers=["market_data", "feature_extractor", "news_fetcher"])
async def orchestrator() -> None: ...
