"""Figures, from prices. It uses no source, and the networks of the fleet leave it no way to one."""

from fast_agent import FastAgent

from agents.coded import Call, DataAgent

fast = FastAgent("data-pool")


class FeatureExtractor(DataAgent):
    functions = ("extract_features",)

    async def extract_features(self, _: Call, ohlcv: list[list[float]]) -> dict[str, float]:
        opened, closed = ohlcv[0][0], ohlcv[-1][3]
        highs, lows = [day[1] for day in ohlcv], [day[2] for day in ohlcv]
        return {"trend": round(closed / opened - 1, 3), "range": max(highs) - min(lows)}


@fast.custom(FeatureExtractor, name="feature_extractor")
async def feature_extractor() -> None: ...
