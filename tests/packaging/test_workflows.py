"""The public workflows: what they may do, whom they trust, and that their commands are there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from pallas_cli.project import starter
from tests.installed import run

WORKFLOWS = sorted((Path(__file__).parents[2] / ".github" / "workflows").glob("*.yml"))
each = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def jobs(path: Path) -> dict[str, dict[str, Any]]:
    return yaml.safe_load(path.read_text())["jobs"]


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(path).values() for step in job["steps"]]


def test_both_are_there() -> None:
    assert [path.stem for path in WORKFLOWS] == ["ci", "release"]


@each
def test_actions_are_pinned_to_a_commit_and_say_of_which_version(path: Path) -> None:
    lines = re.findall(r"uses: .*", path.read_text())
    assert lines
    assert [
        line for line in lines if not re.fullmatch(r"uses: actions/[a-z-]+@[0-9a-f]{40} # v\d+[.]\d+[.]\d+", line)
    ] == []


@each
def test_nothing_may_write_but_the_job_that_publishes(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] in ({}, {"contents": "read"})
    writing = {name for name, job in jobs(path).items() if "write" in job.get("permissions", {}).values()}
    assert writing == ({"publish"} if path.stem == "release" else set())
    for name in writing:
        uses = [step.get("uses", "") for step in jobs(path)[name]["steps"]]
        assert not any("checkout" in action for action in uses), "what may write runs no code of a commit"
        assert jobs(path)[name]["permissions"] == {"contents": "write", "id-token": "write", "attestations": "write"}


def test_only_a_pushed_tag_publishes_and_all_files_are_attested(root: Path) -> None:
    """`gh workflow run --ref v1` has a tag too, and its files are for nobody."""
    publish = jobs(root / ".github/workflows/release.yml")["publish"]
    assert publish["if"] == "github.event_name == 'push' && github.ref_type == 'tag'"
    subjects = [step["with"] for step in publish["steps"] if step.get("uses", "").startswith("actions/attest@")]
    assert subjects == [{"subject-checksums": "dist/SHA256SUMS"}, {"subject-path": "dist/SHA256SUMS"}]


@each
def test_every_job_ends(path: Path) -> None:
    assert [name for name, job in jobs(path).items() if job.get("timeout-minutes", 1000) > 90] == []


@each
def test_commands_are_there_and_take_nothing_from_an_event(root: Path, path: Path) -> None:
    scripts = "\n".join(step["run"] for step in steps(path) if "run" in step)
    assert "${{" not in scripts, "text of an event goes through `env`"
    verbs = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z]+)$", scripts, re.MULTILINE)) <= verbs
    tools = re.findall(r"(?:^| )((?:tools/|[.]ci/)[a-z.]+)", scripts, re.MULTILINE)
    assert [name for name in tools if not (root / name).is_file()] == []
    subprocess.run(["sh", "-n"], check=True, input=scripts, text=True, timeout=60)


def test_the_audit_is_run_on_every_change_and_before_a_release(root: Path) -> None:
    assert all("make audit" in [step.get("run") for step in steps(path)] for path in WORKFLOWS)
    release = [step.get("run", "") for step in jobs(root / ".github/workflows/release.yml")["build"]["steps"]]
    assert release.index("make audit") < next(i for i, text in enumerate(release) if "make release" in text)
    assert [step.get("run") for step in jobs(root / ".github/workflows/ci.yml")["test"]["steps"]].count(".ci/run") == 1


@pytest.mark.policy
@pytest.mark.slow
def test_actionlint_finds_nothing(root: Path, tmp_path: Path) -> None:
    """Neither in our own workflows, nor in those that `pallas init` and docs/testing.md give to users."""
    actionlint = Path(run(root / "tools" / "policy").strip()) / "actionlint"
    page = (root / "docs/testing.md").read_text()
    shown = re.search(r"^```yaml\n(name: fleet\n.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert shown
    texts = {"shown": shown[1], "made": starter.beside()[PurePosixPath(".github/workflows/fleet.yaml")]}
    for name, text in texts.items():
        (tmp_path / f"{name}.yml").write_text(text)
    assert run(actionlint, "-no-color", "-shellcheck=", *WORKFLOWS, *sorted(tmp_path.glob("*.yml"))) == ""
