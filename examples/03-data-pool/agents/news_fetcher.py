"""Headlines, from the newswire."""

from fast_agent import FastAgent

from agents.coded import DataAgent

fast = FastAgent("data-pool")


class NewsFetcher(DataAgent):
    functions = ("fetch_recent_articles",)

    async def fetch_recent_articles(self, symbol: str) -> dict[str, list[str]]:
        """Return headlines about a symbol, newest first."""
        return {"articles": await self.call("newswire__headlines", symbol=symbol)}


@fast.custom(NewsFetcher, name="news_fetcher", servers=["newswire"])
async def news_fetcher() -> None: ...
