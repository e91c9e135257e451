"""`/`: the overview as HTML, rendered at most once per second, change and selection, with assets of its own only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from pallas_contract import __version__
from pallas_contract.documents.health import State, timestamp
from pallas_registry.prebuilt.documents import Document
from pallas_registry.state.root_cause import Root
from pallas_registry.state.status import WORST_FIRST
from pallas_registry.state.uptime import Seconds, Window
from pallas_registry.status_page import graph_layout, timeline
from pallas_registry.status_page.overview import Overview, Row
from pallas_registry.status_page.selection import STEPS, ZOOMS, Selection, parse, select
from pallas_registry.timing import Brief
from pallas_service.console import reload

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.runtime import Context

MOST_TROUBLES = 15
MOST_SUFFERING = 5
"""Root causes on the page, and the agents that are named as suffering from each."""
MOST_ROOTS = 3
"""Root causes of an agent that its row names."""
MOST_REASON = 160
MOST_WORDS = 300
"""Characters of a reason in a row, and in the list of what is wrong; the agent's own part has all of it."""
MOST_TOOLS = 100
"""Tools, callers and undeclared addresses that are named one by one."""
FEW = 24
"""Agents of a fleet whose troubles are all open at the first look; those of a bigger one would fill the screen."""
MOST_SERVICES = 50
MOST_RENDERED = 64
"""Selections that are rendered ready at once."""
HEADERS = {
    # names and reasons come from agents: should one ever get through unescaped, no script of it runs
    "content-security-policy": f"default-src 'none'; script-src 'self' {reload.SOURCE}; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
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
CHOICES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "state": (("", "any state"), ("trouble", "not ok"), *((state, state) for state in WORST_FIRST)),
    "group": (("", "no groups"), ("state", "by state"), ("level", "by level"), ("cause", "by root cause")),
    "sort": (
        ("worst", "worst first"),
        ("name", "by name"),
        ("uptime", "least uptime first"),
        ("latency", "slowest first"),
    ),
}
"""Values and words of the selects above the agents."""
Buckets = tuple[list[Seconds], list[Seconds]]
"""Of the minutes of the last hour and the quarters of the last day (state.uptime)."""
NO_SELECTION = Selection()


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
    """The page of what `gather` returns; the fleet is looked at once a second, whoever asks and for whatever part."""

    def __init__(
        self,
        gather: Callable[[], Overview],
        buckets: Callable[[str], Buckets],
        *,
        version: Callable[[], object],
        clock: Callable[[], float],
    ) -> None:
        """`version` differs after each change that must be seen at once; `clock` is monotonic seconds."""
        self._view = Brief(gather, version=version, clock=clock)
        self._buckets = buckets
        self._rendered: dict[Selection, bytes] = {}
        self._of: Overview | None = None

    def html(self, query: bytes = b"") -> bytes:
        """Return the page for a query string; many readers of the same in one second cost one rendering."""
        view = self._view()
        if view is not self._of or len(self._rendered) >= MOST_RENDERED:
            self._of = view
            self._rendered = {}
        selection = parse(query)
        if selection not in self._rendered:
            self._rendered[selection] = render(view, selection, self._buckets).encode()
        return self._rendered[selection]


def render(
    view: Overview, selection: Selection = NO_SELECTION, buckets: Callable[[str], Buckets] = lambda _: ([], [])
) -> str:
    """Return the page; `buckets` gives the uptime of an agent as of now. Pure but for that."""
    selected = select(view.rows, selection)
    focused = next((row for row in view.rows if row.agent == selection.focus), None)
    template = _environment().get_template("status.html.j2")
    return template.render(
        view=view,
        selection=selection,
        selected=selected,
        choices={**CHOICES, "steps": STEPS, "zoom": ZOOMS},
        focused=focused,
        timelines=_timelines(focused, buckets) if focused else (),
        callers=[caller for caller, called in view.edges if focused and called == focused.agent],
        headline=_headline(view),
        worst=_worst(view),
        troubles=_worst_troubles(view)[:MOST_TROUBLES],
        suffering=MOST_SUFFERING,
        services=sorted(view.services, key=lambda row: WORST_FIRST.index(row.state))[:MOST_SERVICES],
        drawing=graph_layout.draw(view.nodes, view.edges, focus=selection.focus, steps=selection.steps),
        layout=graph_layout,
        bars=timeline.HEIGHT,
        few=FEW,
        most_reason=MOST_REASON,
        most_words=MOST_WORDS,
        most_roots=MOST_ROOTS,
        most_tools=MOST_TOOLS,
        symbols=SYMBOLS,
        service_names={row.name for row in view.services},
        shown={row.agent for group in selected.table for row in group.rows},
        kit=__version__,
        reload=reload.ELEMENT,
    )


def _worst_troubles(view: Overview) -> list[tuple[Root, tuple[str, ...]]]:
    """Return the root causes with those that suffer from them: the worst state first, then what hits most."""
    return sorted(
        view.troubles.items(),
        key=lambda trouble: (WORST_FIRST.index(view.states[trouble[0].agent]), -len(trouble[1])),
    )


def _timelines(row: Row, buckets: Callable[[str], Buckets]) -> tuple[tuple[str, Window, timeline.Timeline], ...]:
    """Return the last hour and the last day of an agent: words for it, share and bars."""
    minutes, quarters = buckets(row.agent)
    return (
        ("Last hour", row.uptime.hour, timeline.draw(minutes)),
        ("Last day", row.uptime.day, timeline.draw(quarters)),
    )


@cache
def _environment() -> Environment:
    # two megabytes, for registries that people look at
    from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context  # noqa: PLC0415

    environment = Environment(
        # StrictUndefined, so that a field that was renamed fails a test and shows no empty cell
        loader=PackageLoader("pallas_registry.status_page", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "iso": timestamp,
        "clock": lambda moment: moment.strftime("%H:%M:%S UTC"),
        "age": pass_context(_age),
        "span": pass_context(_since),
        "duration": _span,
        "percent": timeline.percent,
        "milliseconds": lambda seconds: f"{seconds * 1000:.0f} ms",
    }
    return environment


def _worst(view: Overview) -> State:
    """Return the worst state of the agents; where all of them are well, that of the services in trouble."""
    states = {state for state, count in view.counts.items() if count} - {"ok"} or {row.state for row in view.down}
    return next((state for state in WORST_FIRST if state in states), "ok")


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


def _age(context: Context, moment: datetime) -> str:
    seconds = _seconds(context, moment)
    return "just now" if seconds < 2 else f"{_span(seconds)} ago"


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
