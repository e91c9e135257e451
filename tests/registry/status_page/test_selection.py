"""Search, filter, order, groups and pages: by the query alone, so that they work without JavaScript."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pallas_contract.documents.reason import OK, Reason
from pallas_registry.state.root_cause import Root
from pallas_registry.state.uptime import NOTHING, AgentUptime, Window
from pallas_registry.status_page.overview import Row
from pallas_registry.status_page.selection import MOST_TEXT, ROWS, Selection, parse, select

PLAIN = Row(
    agent="harper",
    slug="harper",
    title="Harper",
    description="",
    url=None,
    state="ok",
    reason=OK,
    roots=(),
    since=datetime(2026, 3, 12, tzinfo=UTC),
    probed=None,
    eras=(),
    depends_on=(),
    replicas=(),
    uptime=NOTHING,
    latency=None,
    tools=None,
    level=1,
)
DOWN = Reason("ConnectionRefused", "connection refused")


def row(agent: str, **fields) -> Row:
    return replace(PLAIN, agent=agent, title=agent.title(), **fields)


ROWS_OF_FLEET = (
    row("alpha", state="error", reason=DOWN, roots=(Root("alpha", DOWN),), level=2, latency=0.2),
    row("beta", state="degraded", reason=Reason("Unreachable", "Unreachable: alpha"), roots=(Root("alpha", DOWN),)),
    row("gamma", level=2, tools=("draw_picture",), latency=0.5, uptime=AgentUptime(NOTHING.hour, Window(90, 100))),
    row("delta", description="Straße", uptime=AgentUptime(NOTHING.hour, Window(100, 100))),
)


def chosen(**choices) -> list[str]:
    return [row.agent for group in select(ROWS_OF_FLEET, Selection(**choices)).table for row in group.rows]


@pytest.mark.parametrize(
    ("choices", "agents"),
    [
        ({}, ["alpha", "beta", "gamma", "delta"]),
        ({"q": "GAM"}, ["gamma"]),
        ({"q": "strasse"}, ["delta"]),
        ({"q": "refused"}, ["alpha"]),
        ({"q": "picture"}, ["gamma"]),
        ({"q": "nobody"}, []),
        ({"state": "trouble"}, ["alpha", "beta"]),
        ({"state": "degraded"}, ["beta"]),
        ({"state": "trouble", "q": "gamma"}, []),
        ({"sort": "name"}, ["alpha", "beta", "delta", "gamma"]),
        ({"sort": "uptime"}, ["gamma", "delta", "alpha", "beta"]),
        ({"sort": "latency"}, ["gamma", "alpha", "beta", "delta"]),
        ({"group": "level"}, ["beta", "delta", "alpha", "gamma"]),
    ],
)
def test_who_is_chosen_and_in_which_order(choices: dict, agents: list[str]) -> None:
    assert chosen(**choices) == agents


def test_groups_have_titles_and_the_worst_comes_first() -> None:
    causes = select(ROWS_OF_FLEET, Selection(group="cause")).tiles
    assert [(group.title, len(group.rows)) for group in causes] == [("alpha: connection refused", 2), ("No trouble", 2)]
    states = select(ROWS_OF_FLEET, Selection(group="state")).tiles
    assert [group.title for group in states] == ["error", "degraded", "ok"]


def test_pages_have_everybody_once() -> None:
    rows = [row(f"agent_{number}", level=number % 3) for number in range(2 * ROWS + 3)]
    pages = [select(rows, Selection(page=page, group="level")) for page in (1, 2, 3)]
    agents = [row.agent for selected in pages for group in selected.table for row in group.rows]
    assert sorted(agents) == sorted(row.agent for row in rows)
    assert (pages[0].pages, pages[0].total) == (3, len(rows))
    assert select(rows, Selection(page=99)).page == 3, "the last one, where there is none such"


def test_a_query_is_read_as_it_is_written() -> None:
    selection = Selection("a b&c", state="error", group="level", page=2, focus="harper", steps=2, zoom=50)
    assert parse(selection.link().removeprefix("?").encode()) == selection
    assert Selection().link() == "./"


def test_another_choice_of_agents_begins_on_the_first_page() -> None:
    assert Selection(page=4).link(state="error") == "?state=error"
    assert Selection(page=4).link(focus="harper") == "?page=4&focus=harper"


@pytest.mark.parametrize(
    "query",
    [
        b"state=ERROR&group=1&sort=&page=0&steps=9&zoom=99",
        b"page=-1&zoom=1e2&steps=%D9%A3",
        b"page=" + b"9" * 5000,
        b"q=%00%0a&focus=%e2%80%ae",
        b"&".join(b"q=1" for _ in range(30)),
        b"%%%&&&===;\xff\xfe",
    ],
)
def test_what_makes_no_sense_is_as_good_as_none(query: bytes) -> None:
    assert parse(query) == Selection()


def test_a_search_is_bounded() -> None:
    assert len(parse(b"q=" + b"x" * 9000).q) == MOST_TEXT
