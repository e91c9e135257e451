"""What may be the name of an agent, and what is made from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_contract import names


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("a" * names.MAX_NAME, True),
        ("a" * (names.MAX_NAME + 1), False),
        ("a", True),
        ("tech_research-2", True),
        ("", False),
        ("2a", False),
        ("a_", False),
        ("Harper", False),
        ("a.b", False),
    ],
)
def test_a_name_becomes_a_dns_label(name: str, good: bool) -> None:
    assert names.is_name(name) is good


def test_what_is_made_from_a_name() -> None:
    assert names.slug("tech_research") == "tech-research"
    assert names.title("tech_re-search") == "Tech Re Search"
    assert names.call_token("tech-re_search") == "PALLAS_CALL_TECH_RE_SEARCH_TOKEN"
    assert names.token_file("ui") == "access.ui"
    assert names.registration_secret("partners") == "registration-partners"


def test_the_fleet_file_is_as_named_a_folder_stands_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "desk" / "deploy").mkdir(parents=True)
    assert names.fleet_file(None, {}) == Path("agents.yaml")
    assert names.fleet_file(None, {"PALLAS_AGENTS_CONFIG": "b.yaml"}) == Path("b.yaml")
    assert names.fleet_file("desk", {"PALLAS_AGENTS_CONFIG": "b.yaml"}) == Path("desk/agents.yaml")
    assert names.fleet_file("../none/../x.yaml", {}) == Path("../x.yaml")


def test_a_way_up_and_down_is_shortened_where_no_link_makes_it_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "desk" / "deploy").mkdir(parents=True)
    (tmp_path / "link").symlink_to("desk/deploy")
    assert names.fleet_file("desk/deploy/..", {}) == Path("desk/agents.yaml")
    assert names.fleet_file(tmp_path / "desk" / ".." / "desk", {}) == tmp_path / "desk" / "agents.yaml"
    assert names.fleet_file("link/..", {}) == Path("link/../agents.yaml")


def test_a_link_is_the_file_that_it_leads_to_but_in_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "desk").mkdir()
    (tmp_path / "deploy").mkdir()
    (tmp_path / "desk" / "fleet.yaml").touch()
    link = tmp_path / "deploy" / "agents.yaml"
    link.symlink_to("../desk/fleet.yaml")
    monkeypatch.chdir(tmp_path / "deploy")
    for named in ("agents.yaml", ".", None):
        assert names.fleet_file(named, {}) == Path("../desk/fleet.yaml")
    assert names.fleet_file(link, {}) == tmp_path / "desk" / "fleet.yaml"
    assert names.fleet_file(link, {"PALLAS_PLACEMENT": "container"}) == link
