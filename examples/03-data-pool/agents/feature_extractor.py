"""Figures, from prices. It uses no source, and the networks of the fleet leave it no way to one."""

from typing import Any

from fast_agent import FastAgent

from agents.coded import DataAgent

fast = FastAgent("data-pool")


class FeatureExtractor(DataAgent):
    functions = ("extract_features",)

    async def extract_features(self, symbol: str, interval: str, ohlcv: list[list[float]]) -> dict[str, Any]:
        """Return trend (a part of the first price) and range of candles as a list of two."""
        opened, closed = ohlcv[0][0], ohlcv[-1][3]
        highs, lows = [candle[1] for candle in ohlcv], [candle[2] for candle in ohlcv]
        features = [round(closed / opened - 1, 3), max(highs) - min(lows)]
        return {"symbol": symbol, "interval": interval, "features": features}


@fast.custom(FeatureExtractor, name="feature_extractor")
async def feature_extractor() -> None: ...
