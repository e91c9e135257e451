"""tools/supply_chain/checkout.py and changelog.py: what is refused, and what the notes are."""

from __future__ import annotations

import subprocess
from datetime import date
from pathlib import Path

import pytest

from pallas_contract import __version__
from tools.supply_chain import __main__ as command
from tools.supply_chain import checkout
from tools.supply_chain.documents import changelog

TEXT = """\
# Changelog

## [Unreleased]
- new

## [1.0] - 2030-01-31
### Added
- a thing

## [0.9] - 2029-01-01
- old
"""
CHART = 'apiVersion: v2\nversion: 1.0\nappVersion: "1.0"\n'


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "CHANGELOG.md").write_text(TEXT)
    chart = tmp_path / "deploy/helm/pallas/Chart.yaml"
    chart.parent.mkdir(parents=True)
    chart.write_text(CHART)
    for name in ("requirements/a.lock", "Dockerfile.agent", "examples/x/b.lock", "tools/shrink.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    who = ("-c", "user.name=a", "-c", "user.email=a@example")
    for arguments in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "x", "--date", "@1700000000 +0000"]):
        env = {"GIT_COMMITTER_DATE": "@1700000000 +0000", "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        subprocess.run(["git", *arguments], check=True, cwd=tmp_path, env=env)
    return tmp_path


def test_a_clean_checkout_of_a_version_with_notes_is_one_to_release(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert checkout.problems(repository, "1.0") == []
    assert checkout.epoch(repository) == 1_700_000_000
    assert len(checkout.commit(repository)) == 40
    assert checkout.locks(repository) == ["Dockerfile.agent", "requirements/a.lock", "tools/shrink.py"]


def test_all_that_is_wrong_is_said_at_once(repository: Path) -> None:
    (repository / "CHANGELOG.md").write_text(TEXT.replace("[1.0]", "[1.1]"))
    (repository / "new").touch()
    assert checkout.problems(repository, "2.0") == [
        "the checkout is not clean (CHANGELOG.md and 1 more): commit it or take it back, then release",
        "CHANGELOG.md has no section `## [2.0]`: `make release ARGS=--prepare` gives what stands under [Unreleased] "
        "its version and day; commit it",
        "deploy/helm/pallas/Chart.yaml has version 1.0, and the kit is 2.0: make them equal",
        "deploy/helm/pallas/Chart.yaml has appVersion 1.0, and the kit is 2.0: make them equal",
    ]


@pytest.mark.parametrize("epoch", ["soon", "-1", "1.5", str(2**32), "9" * 5000])
def test_another_time_than_seconds_is_refused(repository: Path, monkeypatch: pytest.MonkeyPatch, epoch: str) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    range_text = "it takes whole seconds since 1970, 4294967295 at most"
    assert checkout.problems(repository, "1.0") == [f"$SOURCE_DATE_EPOCH is {epoch!r}: {range_text}"]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "4294967295")
    assert checkout.problems(repository, "1.0") == []


def test_code_of_another_checkout_is_refused(tmp_path: Path) -> None:
    packages = {"here": tmp_path / "kit" / "here", "there": tmp_path / "other" / "there"}
    (line,) = checkout.foreign(tmp_path / "kit", packages)
    assert line.startswith(f"there is that of {tmp_path}/other/there, not of this checkout ({tmp_path}/kit): ")


def test_the_notes_are_the_section_of_the_version() -> None:
    assert changelog.notes(TEXT, "1.0") == "# pallas-kit 1.0\n\n### Added\n- a thing\n"
    assert changelog.notes(TEXT, "0.9") == "# pallas-kit 0.9\n\n- old\n"


@pytest.mark.parametrize("version", ["1", "1.00", "Unreleased.", ".*"])
def test_another_version_has_none(version: str) -> None:
    with pytest.raises(ValueError, match="has no section"):
        changelog.notes(TEXT, version)


def test_an_empty_section_is_none() -> None:
    with pytest.raises(ValueError, match=r"says nothing under `## \[0.9\]`"):
        changelog.notes(TEXT.replace("- old", ""), "0.9")


def test_what_is_unreleased_becomes_the_section_of_a_version() -> None:
    text = changelog.dated(TEXT, "1.1", date(2030, 2, 28))
    assert "## [Unreleased]\n\n## [1.1] - 2030-02-28\n- new\n\n## [1.0] - 2030-01-31\n" in text
    assert changelog.notes(text, "1.1") == "# pallas-kit 1.1\n\n- new\n"


@pytest.mark.parametrize(
    ("text", "version", "reason"),
    [
        (TEXT, "1.0", r"has a section `## \[1.0\]`: give the kit its next version first"),
        (TEXT.replace("- new\n", ""), "1.1", r"says nothing under `## \[Unreleased\]`"),
        (TEXT.replace("Unreleased", "1.1"), "1.2", r"says nothing under `## \[Unreleased\]`"),
    ],
)
def test_nothing_is_dated_twice_and_nothing_as_something(text: str, version: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        changelog.dated(text, version, date(2030, 2, 28))


def test_the_command_writes_the_section_or_says_why_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "CHANGELOG.md"
    file.write_text(TEXT)
    assert command.prepare(file, date(2030, 2, 28)) == 0
    assert f"## [{__version__}] - 2030-02-28\n- new\n" in file.read_text()
    assert f"tag the commit v{__version__}\n" in capsys.readouterr().out
    text = file.read_text()
    assert command.prepare(file, date(2030, 2, 28)) == 2
    assert "next version first\n" in capsys.readouterr().err
    assert file.read_text() == text


def test_the_builder_is_the_workflow_where_there_is_one() -> None:
    github = {"GITHUB_SERVER_URL": "https://git.example", "GITHUB_WORKFLOW_REF": "a/b/.github/workflows/release.yml@v1"}
    assert checkout.builder(github) == "https://git.example/a/b/.github/workflows/release.yml@v1"
    assert checkout.builder({}) == "urn:pallas-kit:builder:local"
