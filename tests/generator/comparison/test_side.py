"""A side is read from a file, a folder, a revision of git; what cannot be is named with what to write instead."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from pallas_contract.problems import Refused
from pallas_gen.comparison import side

TEXT = "name: x\nagents: {a: {card: a.md, port: 8101}}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A fleet file in a folder of a repository, edited since it was committed."""
    path = tmp_path / "desk" / "agents.yaml"
    path.parent.mkdir()
    path.write_text(TEXT)
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], [*identity, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True)
    path.write_text(TEXT.replace("name: x", "name: y"))
    return path


def test_a_file_a_folder_and_a_revision(file: Path) -> None:
    assert side.fleet(str(file), file).name == side.fleet(str(file.parent), file).name == "y"
    assert side.fleet("git:main", file).name == side.fleet("git:HEAD", file).name == "x"


@pytest.mark.parametrize(
    ("revision", "message"),
    [("", "is no revision"), ("--output=x", "is no revision"), ("nonsense", "cannot be"), ("HEAD~1", "cannot be")],
)
def test_a_revision_that_there_is_not_is_refused(revision: str, message: str, file: Path) -> None:
    with pytest.raises(Refused, match=rf"{message}.*PAL715"):
        side.fleet(f"git:{revision}", file)


def test_a_file_that_the_revision_has_not_is_refused(file: Path) -> None:
    with pytest.raises(Refused, match=r"git:main: cannot be read: path .* \[PAL715\]\n    name a commit"):
        side.fleet("git:main", file.parent / "other.yaml")


def test_without_git_it_says_so(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(file.parent))
    with pytest.raises(Refused, match="git is not here"):
        side.fleet("git:main", file)


def test_nobody_at_a_url_is_told(file: Path) -> None:
    assert side.is_registry("http://127.0.0.1:1")
    assert not side.is_registry(str(file))
    with pytest.raises(side.NoRegistry, match=r"no registry answers at http://127.0.0.1:1: connection refused"):
        side.document("http://127.0.0.1:1")


@pytest.mark.parametrize(
    "url", ["http://ann:canary@127.0.0.1:1", "https://canary@r.example", "http://[::1", "http://a:x"]
)
def test_a_url_with_a_password_or_none_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(Refused, match=r"is no http\(s\) URL without a user .*PAL706") as refused:
        side.document(url)
    assert "canary" not in str(refused.value)


def test_the_document_of_services_says_whose_a_registry_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async def request(method: str, url: str, *, limit: int) -> SimpleNamespace:
        return SimpleNamespace(status=200, body=json.dumps({"asked": f"{method} {url}"}))

    monkeypatch.setattr(side.http_client, "request", request)
    assert side.services("http://r.example/") == {"asked": "GET http://r.example/services"}
    assert side.document("http://r.example") == {"asked": "GET http://r.example/.well-known/mcp/server.json"}
