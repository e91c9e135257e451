"""Headlines, from the newswire."""

from fast_agent import FastAgent

from agents.coded import Call, DataAgent

fast = FastAgent("data-pool")


class NewsFetcher(DataAgent):
    functions = ("fetch_recent_articles",)

    async def fetch_recent_articles(self, call: Call, symbol: str) -> list[str]:
        return await call("newswire__headlines", symbol=symbol)


@fast.custom(NewsFetcher, name="news_fetcher", servers=["newswire"])
async def news_fetcher() -> None: ...
