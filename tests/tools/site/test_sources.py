"""tools/site/sources.py: the pages in one folder, with links that lead somewhere there."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tools.site import sources
from tools.site.contents import BELOW, MADE, SECTIONS

ROOT = Path(__file__).parents[3]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with each page that the contents name, empty."""
    for page in ["schema/agents.schema.json", *(page for section in SECTIONS.values() for page in section)]:
        if page not in MADE:
            (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / page).write_text("")
    (tmp_path / sources.HOME).write_text("# Home\n")
    shutil.copy(ROOT / "schema" / "agents.schema.json", tmp_path / "schema")
    return tmp_path


@pytest.mark.parametrize(
    ("link", "becomes"),
    [
        ("[a](access.md)", "[a](/docs/access.md)"),
        ("[a](access.md#b)", "[a](/docs/access.md#b)"),
        ("[a](../README.md)", "[a](/README.md)"),
        ("[a](README.md)", "[a](/index.md)"),
        ("[a](../examples/01-hello)", "[a](/examples/01-hello/README.md)"),
        ("[a](../schema)", "a"),
        ("[a](../tests/page.md)", "a"),
        ("[a](../code.py)", "[a](../code.py)"),
        ("[a](https://x.example/README.md)", "[a](https://x.example/README.md)"),
        ("[a](#b)", "[a](#b)"),
    ],
)
def test_a_link(repository: Path, link: str, becomes: str) -> None:
    (repository / "docs" / "agent.md").write_text(f"See {link}.\n")
    assert sources.texts(repository)["docs/agent.md"] == f"See {becomes}.\n"


def test_files_that_pages_show_come_along(repository: Path, tmp_path: Path) -> None:
    for name in ("code.py", "picture.svg", "loose.py"):
        (repository / name).write_text(name)
    (repository / "docs" / "agent.md").write_text("[a](../code.py) ![b](../picture.svg) [c](access.md)\n")
    sources.collect(repository, tmp_path / "site")
    assert (tmp_path / "site" / "code.py").read_text() == "code.py"
    assert (tmp_path / "site" / "picture.svg").is_file()
    assert not (tmp_path / "site" / "loose.py").exists()


def test_pages_below_another_are_listed_there(repository: Path) -> None:
    ((page, _),) = BELOW.items()
    (repository / page).with_name("0001-one.md").write_text("# One\n")
    assert "\n0001-one\n" in sources.texts(repository)[page]


def test_the_first_page_has_the_contents(repository: Path) -> None:
    home = sources.texts(repository)["index.md"]
    assert re.findall(r":caption: (.*)", home) == list(SECTIONS)


class Assets(HTMLParser):
    """What a browser loads by itself when it opens a page."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if tag in {"script", "img", "iframe", "source", "video", "audio", "embed"}:
            self.urls.append(values.get("src") or "")
        elif tag == "link":
            self.urls.append(values.get("href") or "")


@pytest.mark.site
@pytest.mark.slow
def test_the_site_has_no_dead_link_and_nothing_from_elsewhere(tmp_path: Path) -> None:
    """Sphinx ends with an error on each warning: dead links, pages that nobody lists, blocks that cannot be read."""
    site = tmp_path / "site"
    done = subprocess.run(
        [ROOT / "tools" / "docs", site], check=False, cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    pages = list(site.rglob("*.html"))
    assert len(pages) > 60
    for page in pages:
        assets = Assets()
        assets.feed(page.read_text())
        assert [url for url in assets.urls if re.match(r"(https?:)?//", url)] == []
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert re.findall(r"url\(['\"]?(?:https?:)?//[^)]*|@import[^;]*", styles) == []
    assert "agents.yaml" in (site / "searchindex.js").read_text()
