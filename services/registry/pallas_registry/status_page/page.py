"""`/`: the overview as HTML, rendered at most once per second and change, with assets of its own only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context

from pallas_contract import __version__
from pallas_contract.documents.health import State, timestamp
from pallas_registry.prebuilt.documents import Document
from pallas_registry.status_page import graph_layout
from pallas_registry.status_page.overview import Overview

FRESH = 1.0
"""Seconds a rendered page is served to everybody."""
MOST_TROUBLES = 100
MOST_SUFFERING = 20
"""Root causes on the page, and the agents that are named as suffering from each."""
HEADERS = {
    # names and reasons come from agents: should one ever get through unescaped, no script of it runs
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
SYMBOLS: dict[State, str] = {
    "ok": "●",
    "degraded": "▲",
    "error": "■",
    "unauthenticated": "◆",
    "starting": "◔",
    "unknown": "○",
}
_COLOURS: dict[State, str] = {
    "ok": "#1a9c56",
    "degraded": "#d68a00",
    "error": "#d4303d",
    "unauthenticated": "#d68a00",
    "starting": "#3b7dd8",
    "unknown": "#7a8494",
}
_WORST_FIRST: tuple[State, ...] = ("error", "degraded", "unauthenticated", "starting", "unknown")


def assets() -> dict[str, Document]:
    """Return the document of everything that the page loads, by path."""
    folder = files("pallas_registry.status_page") / "assets"
    documents = {
        "/static/page.css": Document((folder / "page.css").read_bytes(), "text/css; charset=utf-8"),
        "/static/page.js": Document((folder / "page.js").read_bytes(), "text/javascript; charset=utf-8"),
    }
    for state, colour in _COLOURS.items():
        dot = f'<circle cx="8" cy="8" r="7" fill="{colour}"/>'
        # icons of our own: the content security policy lets the page load from nowhere else
        icon = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">{dot}</svg>'
        documents[f"/static/{state}.svg"] = Document(icon.encode(), "image/svg+xml")
    return documents


class StatusPage:
    """The page of what `gather` returns; many readers in one second cost one rendering."""

    def __init__(
        self, gather: Callable[[], Overview], *, version: Callable[[], object], clock: Callable[[], float]
    ) -> None:
        """`version` differs after each change that must be seen at once; `clock` is monotonic seconds."""
        self._gather = gather
        self._version = version
        self._clock = clock
        self._rendered: tuple[object, float, bytes] | None = None

    def html(self) -> bytes:
        version = self._version()
        now = self._clock()
        if self._rendered is None or self._rendered[0] != version or now - self._rendered[1] >= FRESH:
            self._rendered = (version, now, render(self._gather()).encode())
        return self._rendered[2]


def render(view: Overview) -> str:
    """Return the page. Pure."""
    template = _environment().get_template("status.html.j2")
    return template.render(
        view=view,
        headline=_headline(view),
        worst=_worst(view),
        troubles=list(view.troubles.items())[:MOST_TROUBLES],
        suffering=MOST_SUFFERING,
        drawing=graph_layout.draw(view.nodes, view.edges),
        width=graph_layout.WIDTH,
        height=graph_layout.HEIGHT,
        symbols=SYMBOLS,
        service_names={row.name for row in view.services},
        kit=__version__,
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        # StrictUndefined, so that a field that was renamed fails a test and shows no empty cell
        loader=PackageLoader("pallas_registry.status_page", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "iso": timestamp,
        "clock": lambda moment: moment.strftime("%H:%M:%S UTC"),
        "age": _age,
        "span": _since,
        "duration": _span,
        "milliseconds": lambda seconds: f"{seconds * 1000:.0f} ms",
    }
    return environment


def _worst(view: Overview) -> State:
    """Return the worst state of the agents; where all of them are well, that of the services in trouble."""
    states = {state for state, count in view.counts.items() if count} - {"ok"} or {row.state for row in view.down}
    return next((state for state in _WORST_FIRST if state in states), "ok")


def _headline(view: Overview) -> str:
    """Return one sentence for people who look only once."""
    total = sum(view.counts.values())
    worst = _worst(view)
    if worst == "ok":
        return "All well" if total != 1 else "Well"
    words = {
        "error": "down",
        "degraded": "degraded",
        "unauthenticated": "in need of credentials",
        "starting": "starting",
        "unknown": "not known yet",
    }
    if count := view.counts[worst]:
        return f"{count} of {total} {words[worst]}"
    count = sum(row.state == worst for row in view.down)
    return f"{count} of {len(view.services)} services {words[worst]}"


@pass_context
def _age(context: Context, moment: datetime) -> str:
    seconds = _seconds(context, moment)
    return "just now" if seconds < 2 else f"{_span(seconds)} ago"


@pass_context
def _since(context: Context, moment: datetime) -> str:
    return _span(_seconds(context, moment))


def _seconds(context: Context, moment: datetime) -> float:
    view: Overview = context["view"]
    # the clock may have been set back since
    return max(0.0, (view.now - moment).total_seconds())


def _span(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"
