"""What the site is built from, in one folder: the pages of the repository as they are, and those made from the code.

Files that a page links to and that are no pages (code, tests, files of the examples) go along, so that each link of the
site leads to what the page speaks of, with the repository at hand or without.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from tools.site import fleet_file, help_pages
from tools.site.contents import BELOW, FLEET_FILE, MADE, SECTIONS

HOME = "docs/README.md"
"""The page that the site opens with."""
_LINK = re.compile(r"(?<!!)\[(?P<text>[^]]*)\]\((?!https?:|mailto:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
_PICTURE = re.compile(r"!\[[^]]*\]\((?P<path>[^)\s]+)\)")


def collect(root: Path, folder: Path) -> None:
    """Put the sources of the site into an empty folder."""
    for path, text in sorted(texts(root).items()):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    for path in sorted(linked(root)):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / path, target)


def pages(root: Path) -> list[str]:
    """Return the paths of all pages that are in the repository, in the order of the contents."""
    found: list[str] = []
    for page in (page for section in SECTIONS.values() for page in section if page not in MADE):
        found.append(page)
        if page in BELOW:
            found += sorted(str(path.relative_to(root)) for path in root.glob(BELOW[page]))
    return found


def texts(root: Path) -> Mapping[str, str]:
    """Return path -> Markdown of each page of the site."""
    schema = json.loads((root / "schema" / "agents.schema.json").read_text("utf-8"))
    known = {*pages(root), HOME}
    texts = {page: _read(root, page, known) for page in known - {HOME}}
    for page, pattern in BELOW.items():
        texts[page] += _contents("", (path.name for path in sorted(root.glob(pattern))))
    return {**texts, "index.md": _home(root, known), FLEET_FILE: fleet_file.page(schema), **help_pages.pages()}


def linked(root: Path) -> set[str]:
    """Return the paths of the pictures and files that pages name and that are no pages; of a folder none."""
    paths = set()
    for page in [*pages(root), HOME]:
        text = (root / page).read_text("utf-8")
        for match in [*_LINK.finditer(text), *_PICTURE.finditer(text)]:
            path = _path(root, page, match["path"])
            if (root / path).is_file() and not path.endswith(".md"):
                paths.add(path)
    return paths


def _read(root: Path, page: str, known: Collection[str]) -> str:
    """Return a page, its links led to those of the site; what is none and cannot be copied along is its text alone."""

    def led(match: re.Match[str]) -> str:
        path = _path(root, page, match["path"])
        if (root / path).is_dir():
            path = f"{path}/README.md"
        elif not path.endswith(".md"):
            return match[0]
        if path not in known:
            return match["text"]
        target = "/index.md" if path == HOME else f"/{path}"
        return f"[{match['text']}]({target}{match['anchor'] or ''})"

    return _LINK.sub(led, (root / page).read_text("utf-8"))


def _path(root: Path, page: str, link: str) -> str:
    """Return where a link of a page leads, from the top of the repository."""
    return str((root / page).parent.joinpath(link).resolve().relative_to(root.resolve()))


def _home(root: Path, known: Collection[str]) -> str:
    """Return the first page: the one of docs/, at the top of the site, with the contents below."""
    text = _read(root, HOME, known)
    return text + "".join(_contents(caption, section) for caption, section in SECTIONS.items())


def _contents(caption: str, entries: Iterable[str]) -> str:
    lines = "\n".join(entry.removesuffix(".md") for entry in entries)
    option = f":caption: {caption}\n" if caption else ""
    return f"\n```{{toctree}}\n:hidden:\n{option}\n{lines}\n```\n"
