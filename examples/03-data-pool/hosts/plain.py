"""An orchestrator whose plan is code: `python -m hosts.plain ACME`."""

from __future__ import annotations

import argparse
import re
import secrets
import sys
from pathlib import Path
from typing import Any

from hosts import gateway, report


def plan(symbol: str) -> list[dict[str, Any]]:
    """Return the tasks of a report: figures wait for prices, and news for nobody.

    Five further attempts take 6 s besides their own time: an agent that died is started anew meanwhile.
    """
    about = {"symbol": symbol, "interval": "1d"}
    prices = {"$from": "prices", "path": "/ohlcv"}
    return [
        task("prices", "binance_agent", "fetch_ohlcv", about, retries=5),
        task("figures", "feature_extractor", "extract_features", about | {"ohlcv": prices}, retries=5),
        task("headlines", "news_fetcher", "fetch_recent_articles", {"symbol": symbol}, on_error="skip", timeout=60),
    ]


def task(task_id: str, agent: str, function: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return one task as the gateway takes it."""
    return {"task_id": task_id, "agent_id": agent, "function": function, "input": arguments, **more}


def options(description: str | None) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("symbol", type=str.upper, help="what the report is about, such as ACME")
    parser.add_argument("--gateway", default="http://localhost:24390", help="its address (default: %(default)s)")
    parser.add_argument("--id", default=secrets.token_hex(4), help="of the plan: the same one again is not run twice")
    parser.add_argument("--to", type=Path, default=Path("reports"), help="folder of reports (default: %(default)s)")
    given = parser.parse_args()
    if not re.fullmatch(r"[A-Z0-9.]{1,12}", given.symbol) or not given.symbol.strip("."):
        parser.error("a symbol has up to 12 letters, digits and dots")
    if not re.fullmatch(r"[A-Za-z0-9-]{1,20}", given.id):
        parser.error("an id has up to 20 letters, digits and hyphens")
    return given


def main() -> int:
    """Have the gateway run the plan, and write the report."""
    asked = options(__doc__)
    tasks = plan(asked.symbol)
    try:
        result = gateway.execute(asked.gateway, f"{asked.symbol}-{asked.id}", tasks=tasks)
    except gateway.Failed as failure:
        print(f"no report: {failure}", file=sys.stderr)
        return 1
    print(report.write(asked.to, asked.symbol, tasks, result["tasks"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
