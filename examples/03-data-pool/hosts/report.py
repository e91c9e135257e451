"""What the tasks of a plan came to -> a report in Markdown and its plot. The same results are the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WIDTH, HEIGHT, MARGIN = 480, 200, 20


def write(folder: Path, symbol: str, tasks: list[dict[str, Any]], outcomes: dict[str, Any]) -> Path:
    """Write SYMBOL.md and SYMBOL.svg, and return the path of the first.

    `tasks` are those of the plan, `outcomes` what the gateway says of each, by its id.
    """
    results = {
        task["function"]: outcomes[task["task_id"]]["result"]
        for task in tasks
        if outcomes[task["task_id"]]["status"] == "success"
    }
    candles = results.get("fetch_ohlcv", {}).get("ohlcv", [])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{symbol}.svg").write_text(plot(candles), encoding="utf-8")
    path = folder / f"{symbol}.md"
    path.write_text(text(symbol, tasks, outcomes, results), encoding="utf-8")
    return path


def text(symbol: str, tasks: list[dict[str, Any]], outcomes: dict[str, Any], results: dict[str, Any]) -> str:
    """Return the report in Markdown; `results` are those of each function that gave one."""
    lines = [f"# {symbol}", "", f"![Candles of {symbol}]({symbol}.svg)", ""]
    if "extract_features" in results:
        trend, spread = results["extract_features"]["features"]
        lines += [f"Trend {trend:+.1%}, range {spread:.2f}.", ""]
    for headline in results.get("fetch_recent_articles", {}).get("articles", []):
        lines.append(f"- {headline}")
    for task in tasks:
        outcome = outcomes[task["task_id"]]
        if outcome["status"] != "success":
            reason = outcome.get("error", {}).get("message", "what it waits for has failed")
            lines.append(f"- Without {task['agent_id']}.{task['function']}: {reason}")
    return "\n".join([*lines, ""])


def plot(candles: list[list[float]]) -> str:
    """Return candles (open, high, low, close, ...) as an SVG: green where the price has risen, else red."""
    highest = max((candle[1] for candle in candles), default=1)
    lowest = min((candle[2] for candle in candles), default=0)
    scale = (HEIGHT - 2 * MARGIN) / ((highest - lowest) or 1)
    step = (WIDTH - 2 * MARGIN) / max(len(candles), 1)

    def y(price: float) -> float:
        return MARGIN + (highest - price) * scale

    shapes = []
    for index, (opened, high, low, closed, *_) in enumerate(candles):
        x = MARGIN + (index + 0.5) * step
        color = "#2e7d32" if closed >= opened else "#c62828"
        top, height = y(max(opened, closed)), max(abs(closed - opened) * scale, 1)
        shapes += [
            f'<line x1="{x:.1f}" y1="{y(high):.1f}" x2="{x:.1f}" y2="{y(low):.1f}" stroke="{color}"/>',
            f'<rect x="{x - step / 4:.1f}" y="{top:.1f}" width="{step / 2:.1f}" height="{height:.1f}" fill="{color}"/>',
        ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">'
    return "\n".join([head, *shapes, "</svg>", ""])
