"""tools/release, run in a clone whose CHANGELOG has the version; then the kit is installed from its files alone.

The registry's image is built a second time and compared, in ten seconds; the public workflow does that with both.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pallas_contract import __version__
from tests.installed import ROOT, end, run
from tools.supply_chain.image import oci

pytestmark = [pytest.mark.docker, pytest.mark.helm, pytest.mark.beside]

PATTERN = f"pallas-release-test-{os.getpid()}/{{name}}"
NAMES = ("pallas-agent", "pallas-registry")
ARCHIVES = {name: f"{name}-{__version__}.oci.tar.gz" for name in NAMES}
WHEEL = f"pallas_kit-{__version__}-py3-none-any.whl"
CHART = f"pallas-{__version__}.tgz"
FILES = {
    *(f"{name}{end}" for name in (*ARCHIVES.values(), WHEEL) for end in ("", ".cdx.json")),
    f"pallas_kit-{__version__}.tar.gz",
    CHART,
    "LICENCES.tsv",
    "NOTES.md",
    "SHA256SUMS",
    "provenance.json",
}


@dataclass(frozen=True)
class Released:
    """A release, and what `tools/release` printed."""

    folder: Path
    printed: str

    def sbom(self, name: str) -> dict[str, dict[str, str]]:
        """Return the components of an SBOM by name."""
        document = json.loads((self.folder / f"{name}.cdx.json").read_text())
        assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
        return {component["name"]: component for component in document["components"]}


def command(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHON": sys.executable, "PALLAS_IMAGES": PATTERN}
    return subprocess.run(
        [clone / "tools/release", *arguments], check=False, env=env, capture_output=True, text=True, timeout=590
    )


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of this checkout with all that is not committed, and a CHANGELOG for its version."""
    folder = tmp_path_factory.mktemp("clone") / "kit"
    run("git", "clone", "-q", ROOT, folder)
    for name in run("git", "ls-files", "-z", "--modified", "--others", "--exclude-standard").split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    text = (folder / "CHANGELOG.md").read_text()
    if f"## [{__version__}]" not in text:
        text = text.replace("## [Unreleased]\n", f"## [Unreleased]\n\n## [{__version__}] - 2030-01-31\n", 1)
    (folder / "CHANGELOG.md").write_text(text)
    who = ("-c", "user.name=a", "-c", "user.email=a@example")
    run("git", *who, "commit", "-qam", "release", "--allow-empty", cwd=folder)
    run("git", "add", ".", cwd=folder)
    run("git", *who, "commit", "-qm", "release", "--allow-empty", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def released(clone: Path) -> Iterator[Released]:
    # stored, by gzip: to compress what is thrown away takes a third of the processor time of a release
    done = command(clone, "--twice", "pallas-registry", "--level", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    yield Released(clone / "dist", done.stdout)
    images = [f"{PATTERN.format(name=name)}:{__version__}" for name in NAMES]
    subprocess.run(["docker", "rmi", "--force", *images], check=False, capture_output=True)


def test_a_checkout_that_is_not_clean_is_refused(clone: Path, released: Released) -> None:
    """And the release that is there stays."""
    (clone / "README.md").write_text("changed")
    try:
        done = command(clone)
    finally:
        run("git", "checkout", "-q", "README.md", cwd=clone)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "the checkout is not clean (README.md): commit it or take it back, then release\n"
    assert {path.name for path in released.folder.iterdir()} == FILES
    assert run("git", "status", "--porcelain", cwd=clone) == ""


def test_the_sums_are_those_of_all_files(released: Released) -> None:
    assert {path.name for path in released.folder.iterdir()} == FILES
    lines = run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=released.folder).splitlines()
    assert sorted(lines) == sorted(f"{name}: OK" for name in FILES - {"SHA256SUMS"})


def test_the_provenance_names_the_same_files_and_this_commit(clone: Path, released: Released) -> None:
    document = json.loads((released.folder / "provenance.json").read_text())
    digests = {subject["name"]: subject["digest"]["sha256"] for subject in document["subject"]}
    for name in FILES - {"SHA256SUMS", "provenance.json"}:
        assert digests.pop(name) == hashlib.sha256((released.folder / name).read_bytes()).hexdigest()
    images = {f"{PATTERN.format(name=name)}:{__version__}": ARCHIVES[name] for name in NAMES}
    assert {name: f"sha256:{digest}" for name, digest in digests.items()} == {
        name: oci.digest(released.folder / file) for name, file in images.items()
    }
    dependencies = document["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert dependencies[0]["digest"]["gitCommit"] == run("git", "rev-parse", "HEAD", cwd=clone).strip()
    by_name = {dependency["name"]: dependency["digest"] for dependency in dependencies}
    lock = hashlib.sha256((ROOT / "requirements/agent.lock").read_bytes()).hexdigest()
    assert by_name["requirements/agent.lock"] == {"sha256": lock}
    assert "python:3.13-slim" in by_name


def test_an_image_that_is_built_again_has_the_same_digest(released: Released) -> None:
    digest = oci.digest(released.folder / ARCHIVES["pallas-registry"])
    assert f"is built twice with one digest, {digest}" in released.printed


def test_the_sboms_list_what_is_there(released: Released) -> None:
    agent = released.sbom(ARCHIVES["pallas-agent"])
    registry = released.sbom(ARCHIVES["pallas-registry"])
    wheel = released.sbom(WHEEL)
    assert {"fast-agent-mcp", "mcp", "libc6"} < set(agent)
    assert {"fastapi", "libc6"} < set(registry)
    assert not {"fast-agent-mcp", "pip"} & set(registry)
    assert not {"hf_xet", "hf-xet", "pip"} & set(agent), "taken out of the image"
    assert {name for name, component in wheel.items() if component["scope"] == "required"} >= {"typer", "pydantic"}
    assert wheel["testcontainers"]["scope"] == "optional"
    assert agent["libc6"]["purl"].startswith("pkg:deb/debian/libc6@")
    assert all(component.get("licenses") for component in agent.values() if component["purl"].startswith("pkg:pypi/"))
    rows = [line.split("\t") for line in (released.folder / "LICENCES.tsv").read_text().splitlines()[1:]]
    listed = {name for _, name, _, _ in rows}
    assert listed == {*agent, *registry, *wheel}


def test_docker_loads_the_archives(released: Released) -> None:
    module = {"pallas-agent": "pallas_agent_runtime", "pallas-registry": "pallas_registry"}
    for name, archive in ARCHIVES.items():
        reference = f"{PATTERN.format(name=name)}:{__version__}"
        run("docker", "load", "--input", released.folder / archive)
        config = oci.config(released.folder / archive)
        image = json.loads(run("docker", "image", "inspect", "--format", "{{json .}}", reference))
        assert image["RootFS"]["Layers"] == config["rootfs"]["diff_ids"]
        assert image["Config"]["User"] == "10001:10001"
        help_text = run("docker", "run", "--rm", "--network", "none", reference, "-P", "-m", module[name], "--help")
        assert "usage: " in help_text.lower()


def test_pip_installs_the_wheel(released: Released, tmp_path: Path) -> None:
    """The dependencies come from the lock; tests/packaging/test_wheel.py runs every verb of such an environment."""
    python = tmp_path / "venv" / "bin" / "python"
    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "-q", "--python", sys.executable, tmp_path / "venv")
    lock = ROOT / "requirements" / "generator.lock"
    run(uv, "pip", "install", "-q", "--python", python, "--require-hashes", "-r", lock)
    run(uv, "pip", "install", "-q", "--python", python, "--offline", "--no-deps", released.folder / WHEEL)
    assert run(python.with_name("pallas-gen"), "--version", cwd=tmp_path) == f"pallas-gen {__version__}\n"
    code = "import importlib.util as u; print(u.find_spec('pallas_gen').origin)"
    assert Path(run(python, "-I", "-c", code).strip()).is_relative_to(tmp_path)


def test_the_sdist_has_what_the_wheel_is_built_from(released: Released, tmp_path: Path) -> None:
    with tarfile.open(released.folder / f"pallas_kit-{__version__}.tar.gz") as file:
        file.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    run(sys.executable, "-P", "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=source)
    with zipfile.ZipFile(tmp_path / WHEEL) as again, zipfile.ZipFile(released.folder / WHEEL) as wheel:
        assert {item.filename: item.CRC for item in again.infolist()} == {
            item.filename: item.CRC for item in wheel.infolist()
        }


def test_helm_takes_the_chart(clone: Path, released: Released, tmp_path: Path) -> None:
    package = released.folder / CHART
    example = shutil.copytree(ROOT / "examples" / "01-hello", tmp_path / "fleet")
    fleet = ["-m", "pallas_gen", "helm", "--values-only", "-f", "agents.yaml", "-o", "values"]
    run(sys.executable, *fleet, cwd=example)
    values = ["--values", example / "values" / "values.yaml"]
    run("helm", "lint", package, *values)
    manifests = run("helm", "install", "hello", package, *values, "--dry-run=client", cwd=tmp_path)
    assert "kind: Deployment" in manifests
    assert f"pallas-agent:{__version__}" in manifests
    with tarfile.open(package) as file:
        packed = {member.name.removeprefix("pallas/") for member in file if member.isreg()}
    listed = run("git", "ls-files", ".", cwd=clone / "deploy/helm/pallas").split()
    assert packed == set(listed) - {".helmignore"} | ({".helmignore"} & packed)


def test_the_notes_are_the_changelog_of_the_version(released: Released) -> None:
    notes = (released.folder / "NOTES.md").read_text()
    assert notes.startswith(f"# pallas-kit {__version__}\n\n### ")
    assert "\n## " not in notes


def test_a_file_that_is_damaged_fails_the_sums(released: Released, tmp_path: Path) -> None:
    for name in ("SHA256SUMS", CHART):
        shutil.copy(released.folder / name, tmp_path / name)
    content = bytearray((tmp_path / CHART).read_bytes())
    content[100] ^= 1
    (tmp_path / CHART).write_bytes(content)
    done = end("sha256sum", "--check", "--ignore-missing", "SHA256SUMS", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, f"{CHART}: FAILED\n")
