"""`pallas-gen bundle`: all of a fleet in one file, or nothing at all."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from pallas_gen.bundle import layout
from pallas_gen.commands import tool
from pallas_gen.running import tool as asked
from pallas_gen.running.tool import Done
from tests.generator.bundle import archives

FLEET = """\
name: x
agents:
  scout: {module: agents.scout, port: 8101, secrets: {KEY: {file: secrets/key}}}
services: {db: {image: "redis:8", port: 6379, provides: other}}
"""


@pytest.fixture
def project(make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's folder, entered, with a stand-in for docker that has all images but those named `gone`."""

    def inspect(command: Sequence[str]) -> Done:
        return Done(1 if "gone" in command[-1] else 0)

    def save(command: Sequence[str]) -> None:
        assert command[:3] == ["docker", "save", "--output"]
        archives.save(Path(command[3]), *command[4:])

    monkeypatch.delenv("PALLAS_IMAGES", raising=False)
    monkeypatch.setattr(asked, "run", inspect)
    monkeypatch.setattr(tool, "run", save)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").write_text("hush")
    make(FLEET)
    return tmp_path


def test_a_bundle_has_all_but_the_secrets_and_verifies(run, project: Path) -> None:
    code, out, err = run("bundle", "-o", "there/x.tar")
    assert (code, err) == (0, "")
    assert "wrote there/x.tar, with 3 images\n" in out
    with tarfile.open("there/x.tar") as archive:
        names = archive.getnames()
        manifest = json.load(archive.extractfile("x/MANIFEST.json"))
        assert not any(b"hush" in archive.extractfile(name).read() for name in names)
    assert {"x/fleet/compose.yaml", "x/fleet/agents/scout.py", f"x/{layout.CHART}", "x/README.md"} <= set(names)
    assert [image["name"] for image in manifest["images"]] == ["pallas-agent:0.1.0", "pallas-registry:0.1.0", "redis:8"]
    assert manifest["secrets"] == ["secrets/key"]
    assert run("bundle", "--verify", "there/x.tar")[0] == 0
    assert sorted(path.name for path in (project / "there").iterdir()) == ["x.tar"], "nothing is left beside it"
    assert run("bundle", "-o", "there/x.tar")[0] == 2, "nothing is overwritten"


def test_a_folder_is_one_too(run, project: Path) -> None:
    (project / "empty").mkdir()
    assert run("bundle", "-o", "empty")[0] == 0
    assert run("bundle", "--verify", "empty")[0] == 0


def test_what_is_not_here_is_named_and_nothing_is_written(run, make, project: Path) -> None:
    make(FLEET.replace("redis:8", "gone:1"))
    code, _, err = run("bundle", "-o", "x.tar")
    assert (code, err.splitlines()[0]) == (1, "gone:1: is not here")
    make(FLEET.replace("redis:8", "redis@sha256:" + "0" * 64))
    code, _, err = run("bundle", "-o", "x.tar")
    assert (code, "which `docker load` forgets" in err) == (2, True)
    assert not (project / "x.tar").exists()


def test_a_docker_that_is_not_here_or_fails_is_the_world(run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: Sequence[str]) -> None:
        raise tool.ToolFailed("no space left", shown=False)

    monkeypatch.setattr(tool, "run", fail)
    code, _, err = run("bundle")
    assert (code, err) == (1, "no space left\ndocker could not save the images; nothing was written\n")
    monkeypatch.setattr(asked, "run", lambda command: None)
    assert run("bundle")[::2] == (1, "docker is not here: it saves the images\n")
    assert not list(project.glob("*.tar"))


@pytest.mark.docker
def test_the_kits_own_images_are_saved_as_they_are(make, run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make("name: x\nagents:\n  scout: {module: agents.scout, port: 8101}\n")
    assert run("bundle", "-o", "x")[0] == 0
    assert run("bundle", "--verify", "x")[0] == 0
    for image in json.loads((tmp_path / "x" / "MANIFEST.json").read_text())["images"]:
        done = asked.run(["docker", "image", "inspect", "--format", "{{.Id}}", image["name"]])
        assert done.output.strip() == image["id"]
        sbom = json.loads((tmp_path / "x" / image["sbom"]).read_text())
        assert "pydantic" in {component["name"] for component in sbom["components"]}
