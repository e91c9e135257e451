"""Prices, from the exchange."""

from fast_agent import FastAgent

from agents.coded import Call, DataAgent

fast = FastAgent("data-pool")


class MarketData(DataAgent):
    functions = ("fetch_ohlcv",)

    async def fetch_ohlcv(self, call: Call, symbol: str) -> list[list[float]]:
        return await call("exchange__candles", symbol=symbol, days=5)


@fast.custom(MarketData, name="market_data", servers=["exchange"])
async def market_data() -> None: ...
