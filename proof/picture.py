"""docs/pictures/proof.svg: for each fault how long the registry took to tell of it, beside the bound."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from html import escape

from proof.results import Measure, Step

_LEFT, _WIDTH, _LINE, _TOP = 330, 420, 26, 48
_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">
<rect width="{width}" height="{height}" fill="#ffffff"/>
<text x="16" y="26" font-size="15" fill="#1f2328">Seconds until a fault is told: median, worst, bound</text>
"""


def render(steps: Sequence[Step]) -> str:
    """Return the picture; it has no bars where nothing was measured."""
    bars = [measure for step in steps for measure in step.measures if _is_bar(measure)]
    longest = max((max(*measure.values, measure.bound or 0) for measure in bars), default=1)
    height = _TOP + _LINE * max(1, len(bars)) + 16
    lines = [_HEAD.format(width=_LEFT + _WIDTH + 110, height=height)]
    lines += [_bar(measure, _TOP + _LINE * index, _WIDTH / longest) for index, measure in enumerate(bars)]
    return "".join([*lines, "</svg>\n"])


def _is_bar(measure: Measure) -> bool:
    return bool(measure.bound and measure.values and measure.unit == "s") and "again" not in measure.what


def _bar(measure: Measure, top: int, scale: float) -> str:
    assert measure.bound is not None
    worst, median = max(measure.values), statistics.median(measure.values)
    limit = _LEFT + measure.bound * scale
    colour = "#2da44e" if measure.held else "#cf222e"
    label = escape(f"{measure.row}  {measure.target}: {measure.what}".replace("`", ""))
    return (
        f'<text x="16" y="{top + 14}" fill="#1f2328">{label}</text>\n'
        f'<rect x="{_LEFT}" y="{top + 3}" width="{worst * scale:.1f}" height="14" fill="{colour}" opacity="0.35"/>\n'
        f'<rect x="{_LEFT}" y="{top + 3}" width="{median * scale:.1f}" height="14" fill="{colour}"/>\n'
        f'<line x1="{limit:.1f}" y1="{top}" x2="{limit:.1f}" y2="{top + 20}" stroke="#1f2328" stroke-width="2"/>\n'
        f'<text x="{limit + 6:.1f}" y="{top + 14}" fill="#59636e">{worst:.1f} s of {measure.bound:g} s</text>\n'
    )
