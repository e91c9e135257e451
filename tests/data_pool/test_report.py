"""The report of examples/03-data-pool: the same results are the same bytes, and what is missing is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hosts import plain, report

from tests.installed import ROOT

CANDLES = [[40.0, 43.0, 39.0, 42.0, 1.0], [42.0, 42.5, 38.0, 38.5, 1.0]]
PLOT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 200" font-family="sans-serif">
<line x1="130.0" y1="20.0" x2="130.0" y2="148.0" stroke="#2e7d32"/>
<rect x="75.0" y="52.0" width="110.0" height="64.0" fill="#2e7d32"/>
<line x1="350.0" y1="36.0" x2="350.0" y2="180.0" stroke="#c62828"/>
<rect x="295.0" y="52.0" width="110.0" height="112.0" fill="#c62828"/>
</svg>
"""


def outcomes(**failed: str) -> dict[str, Any]:
    """Return what the gateway says of the tasks of `plain`, those that are named with that error."""
    results = {
        "prices": {"ohlcv": CANDLES},
        "figures": {"features": [-0.0375, 5.0]},
        "headlines": {"articles": ["ACME builds"]},
    }
    good = {name: {"status": "success", "result": result} for name, result in results.items()}
    return good | {name: {"status": "error", "error": {"message": message}} for name, message in failed.items()}


def test_the_plot_is_these_bytes() -> None:
    assert report.plot(CANDLES) == PLOT


def test_the_picture_in_the_readme_is_the_plot_of_the_stand_ins_candles() -> None:
    candles = [[40.0 + day, 43.0 + day, 39.0 + day, 42.0 + day, 1000.0] for day in range(5)]
    assert (ROOT / "docs" / "pictures" / "data-pool.svg").read_text() == report.plot(candles)


def test_a_plot_of_nothing_or_of_one_price_is_an_empty_frame_or_a_line() -> None:
    assert report.plot([]).count("\n") == 2
    assert 'height="1.0"' in report.plot([[5.0, 5.0, 5.0, 5.0, 0.0]])


def test_the_report_has_figures_headlines_and_the_plot_beside_it(tmp_path: Path) -> None:
    path = report.write(tmp_path / "reports", "ACME", plain.plan("ACME"), outcomes())
    assert path.read_text() == ("# ACME\n\n![Candles of ACME](ACME.svg)\n\nTrend -3.8%, range 5.00.\n\n- ACME builds\n")
    assert (tmp_path / "reports" / "ACME.svg").read_text() == PLOT


def test_what_failed_is_said_in_the_words_of_the_gateway(tmp_path: Path) -> None:
    path = report.write(tmp_path, "ACME", plain.plan("ACME"), outcomes(headlines="Timeout: no answer in 1 s"))
    last = path.read_text().splitlines()[-1]
    assert last == "- Without news_fetcher.fetch_recent_articles: Timeout: no answer in 1 s"
