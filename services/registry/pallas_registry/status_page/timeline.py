"""Uptime as a row of bars: a bar a bucket, as high as the part of it that each kind of time had. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from pallas_registry.state.uptime import KINDS, Seconds, Window

BAR = 4
HEIGHT = 28
_LEAST = 5
"""Height of the shortest trouble: a second of it must be seen."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """SVG paths by kind of time, those of trouble on top, with the width of all of them."""

    width: int
    paths: tuple[tuple[str, str], ...]


def draw(buckets: Sequence[Seconds]) -> Timeline:
    """Return the bars of `buckets`, the oldest left; time of which nothing is known has no bar."""
    heights = [_heights(bucket) for bucket in buckets]
    paths = ((kind, _path([height[number] for height in heights])) for number, kind in enumerate(KINDS))
    return Timeline(len(buckets) * BAR, tuple((kind, path) for kind, path in paths if path))


def _heights(bucket: Seconds) -> tuple[int, int, int]:
    """Return how high each kind reaches: what is well is behind all of it, what is down in front."""
    known = sum(bucket)
    if not known:
        return (0, 0, 0)
    _, reduced, down = (seconds / known for seconds in bucket)
    return (HEIGHT, _high(reduced + down) if reduced else 0, _high(down) if down else 0)


def _high(share: float) -> int:
    return max(_LEAST, round(share * HEIGHT))


def _path(heights: Sequence[int]) -> str:
    """Return one path for all bars of a kind; equal neighbours are one rectangle."""
    parts = []
    x = 0
    for height, bars in groupby(heights):
        width = len(list(bars)) * BAR
        if height:
            parts.append(f"M{x},{HEIGHT - height}h{width}v{height}h-{width}z")
        x += width
    return "".join(parts)


def percent(window: Window) -> str:
    """Return the share as people read it, empty where nothing is known; 100 % is without any trouble at all."""
    share = window.share
    if share is None:
        return ""
    return "100 %" if share == 1 else f"{int(share * 1000) / 10:.1f} %"
