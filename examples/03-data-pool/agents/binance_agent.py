"""Prices, from the exchange, within 5 seconds and 128 MB whatever the exchange sends."""

import json
import os
from typing import Literal

from fast_agent import FastAgent

from agents import ohlcv
from agents.coded import DataAgent
from agents.limits import limited

fast = FastAgent("data-pool")


class BinanceAgent(DataAgent):
    functions = ("fetch_ohlcv",)

    async def fetch_ohlcv(
        self, symbol: str, interval: Literal["1d", "1h", "1s"] = "1d"
    ) -> dict[str, list[list[float]]]:
        """Return candles of the last five days, oldest first: open, high, low, close, volume. 1s is more than fits."""
        exchange = json.loads(os.environ["PALLAS_PEERS"])["exchange"]
        return await limited(ohlcv.__name__, exchange, symbol, interval, seconds=5, megabytes=128)


@fast.custom(BinanceAgent, name="binance_agent")
async def binance_agent() -> None: ...
