"""The web application of a project: what is served of its folder, to whom, and how strictly."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pallas_gateway.application import files as application


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An application beside a secret, with a link to it and what is no part of it."""
    (tmp_path / "token.txt").write_text("secret")
    folder = tmp_path / "dashboard"
    (folder / "icons").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html>")
    (folder / "icons" / "a.svg").write_text("<svg/>")
    (folder / "dashboard.webmanifest").write_text("{}")
    (folder / "notes.py").write_text("1")
    (folder / ".hidden.js").write_text("1")
    (folder / "link.txt").symlink_to(tmp_path / "token.txt")
    return folder


def client(folder: Path, *secrets: Path) -> TestClient:
    app = Starlette(routes=application.routes(folder, secrets))
    app.router.redirect_slashes = False
    return TestClient(app, follow_redirects=False)


def test_the_files_of_the_folder_are_served_and_nothing_beside_it(folder: Path) -> None:
    web = client(folder)
    types = {
        "": "text/html; charset=utf-8",
        "icons/a.svg": "image/svg+xml",
        "dashboard.webmanifest": "application/manifest+json",
    }
    assert {path: web.get(f"/app/{path}").headers["content-type"] for path in types} == types
    for path in ("index.html", "notes.py", ".hidden.js", "link.txt", "../token.txt", "%2e%2e/token.txt", "icons/", "x"):
        assert web.get(f"/app/{path}").status_code == 404, path
    to_folder = web.get("/app")
    assert (to_folder.status_code, to_folder.headers["location"]) == (307, "app/")


def test_it_may_load_nothing_from_elsewhere_and_is_asked_for_anew(folder: Path) -> None:
    web = client(folder)
    page = web.get("/app/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert page.headers["cache-control"] == "no-cache"
    assert web.get("/app/", headers={"if-none-match": page.headers["etag"]}).status_code == 304


def test_what_is_too_much_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "film.webp").write_bytes(b"0" * 100)
    monkeypatch.setattr(application, "MOST_BYTES", 60)
    web = client(folder)
    assert web.get("/app/film.webp").status_code == 404
    assert web.get("/app/").status_code == 200


def test_a_secret_is_served_to_nobody_wherever_it_lies(folder: Path, tmp_path: Path) -> None:
    (folder / "secrets").mkdir()
    secret = folder / "secrets" / "gateway.txt"
    secret.write_text("secret")
    (folder / "copy.txt").symlink_to(secret)
    web = client(folder, tmp_path / "token.txt", folder / "icons" / ".." / "secrets" / "gateway.txt")
    assert web.get("/app/").status_code == 200
    assert [web.get(f"/app/{path}").status_code for path in ("secrets/gateway.txt", "copy.txt")] == [404, 404]


@pytest.mark.parametrize("name", ["a{b}{b}.js", "{x:path}.js", "a{b}.js"])
def test_no_name_of_a_file_is_a_pattern(folder: Path, name: str) -> None:
    (folder / name).write_text("1")
    web = client(folder)
    assert [web.get(f"/app/{path}").status_code for path in ("", "ab.js", "a/b.js")] == [200, 404, 404]
