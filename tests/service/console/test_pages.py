"""The files of the console: whole, from here alone, and nothing of them runs but its own scripts."""

from __future__ import annotations

import re

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.testclient import TestClient

from pallas_service.console import pages, reload

FILES = ("", "/console.css", "/console.js", "/calls.js", "/watch.js")
AGENT = pages.Agent("night-owl", "Night Owl", "Sees in the dark", "/agents/night-owl/mcp")


async def agents(request: Request) -> list[pages.Agent]:
    return [AGENT] if request.headers.get("x-caller") else []


@pytest.fixture
def web() -> TestClient:
    return TestClient(Starlette(routes=[*pages.routes(), pages.listed("desk", agents)]))


@pytest.mark.parametrize("name", FILES)
def test_a_file_loads_nothing_from_elsewhere_and_has_no_script_of_its_own(web: TestClient, name: str) -> None:
    answer = web.get(f"{pages.PATH}{name}")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert re.findall(r"(?:https?:)?//[a-z][^\s\"')]*", re.sub(r"^\s*//.*$", "", answer.text, flags=re.MULTILINE)) == []
    text = answer.text.replace(reload.ELEMENT, "", 1)  # the one that the policy names by its hash
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|innerHTML|insertAdjacentHTML|document\.write", text)


def test_everything_that_the_page_names_is_there(web: TestClient) -> None:
    named = re.findall(r'(?:src|href)="(/[^"]*)"', web.get(pages.PATH).text)
    imported = re.findall(r'from "\./([^"]*)"', web.get("/console/console.js").text)
    paths = [*named, *(f"/console/{name}" for name in imported)]
    assert len(paths) == 4
    assert {web.get(path).status_code for path in paths} == {200}


def test_the_page_is_small(web: TestClient) -> None:
    assert sum(len(web.get(f"{pages.PATH}{name}").content) for name in FILES) < 40_000


def test_agents_are_those_of_who_asks(web: TestClient) -> None:
    assert web.get(pages.AGENTS_PATH).json() == {"fleet": "desk", "agents": [], "calls": ""}
    answer = web.get(pages.AGENTS_PATH, headers={"x-caller": "ui"})
    assert answer.json()["agents"] == [
        {"name": "night-owl", "title": "Night Owl", "description": "Sees in the dark", "mcp": "/agents/night-owl/mcp"}
    ]
    assert answer.headers["cache-control"] == "no-store"
