"""`pallas-gen build`: what is built, what is printed, and what it says without docker. Docker itself is a stand-in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pallas_contract import __version__
from pallas_gen.images import sources

ONE = "name: x\nimage: {names: 'r.example/{name}'}\nagents:\n  scout: {module: agents.scout, port: 8101}\n"
AGENT = f"r.example/pallas-agent:{__version__}"
REGISTRY = f"r.example/pallas-registry:{__version__}"
DOCKER = """\
#!/bin/sh
[ "$2" = inspect ] && { grep . "$HERE/$(basename "$5")" || { [ -f "$HERE/$(basename "$5")" ] && echo null; }; exit $?; }
echo "$1 $2 $(echo "$*" | grep -o 'tag [^ ]*')$(echo "$*" | grep -o ' PYTHON=[^ ]*')" >> "$HERE/log"
case "$*" in *--load*) test -f "$5" && grep -q index "$(echo "$*" | sed 's/.*id=pip,src=\\([^ ]*\\).*/\\1/')" ;; esac
"""


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for docker, and return the folder with its log; a file there has the labels of an image."""
    folder = tmp_path / "docker"
    folder.mkdir()
    (folder / "docker").write_text(DOCKER)
    (folder / "docker").chmod(0o755)
    (folder / "log").touch()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HERE", str(folder))
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    monkeypatch.delenv("PALLAS_IMAGES", raising=False)
    return folder


def test_what_is_not_here_is_built_and_all_is_pushed(make, run, docker: Path) -> None:
    (docker / REGISTRY.rpartition("/")[2]).touch()
    code, out, err = run("build", "-f", str(make(ONE)), "--push")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"building {AGENT}",
        f"pushing {AGENT}",
        f"pushing {REGISTRY}",
        f"{AGENT} is here",
        f"{REGISTRY} is here",
    ]
    assert (docker / "log").read_text().splitlines()[0] == f"buildx build tag {AGENT}"


def test_what_images_are_built_from_is_written_for_those_alone(make, run, docker: Path, monkeypatch) -> None:
    written: list[Path] = []
    write = sources.write
    monkeypatch.setattr(sources, "write", lambda folder: (written.append(folder), write(folder)))
    for image in (AGENT, REGISTRY):
        (docker / image.rpartition("/")[2]).touch()
    assert run("build", "-f", str(make(ONE)))[0] == 0
    assert written == []
    (docker / AGENT.rpartition("/")[2]).unlink()
    assert run("build", "-f", str(make(ONE)))[0] == 0
    assert len(written) == 1


def test_base_builds_both_again_and_needs_no_fleet(run, docker: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PALLAS_IMAGES", "r.example/{name}")
    (docker / REGISTRY.rpartition("/")[2]).touch()
    assert run("build", "--base")[0] == 0
    assert (docker / "log").read_text().splitlines() == [f"buildx build tag {AGENT}", f"buildx build tag {REGISTRY}"]


def test_an_image_that_was_made_from_another_python_is_built_again(make, run, docker: Path) -> None:
    python = f"mirror.example/python:3.13-slim@sha256:{'0' * 64}"
    for image, labels in ((AGENT, "null"), (REGISTRY, f'{{"org.opencontainers.image.base.name": "{python}"}}')):
        (docker / image.rpartition("/")[2]).write_text(labels)
    assert run("build", "-f", str(make(ONE.replace("image: {", f"image: {{python: '{python}', "))))[0] == 0
    assert (docker / "log").read_text() == f"buildx build tag {AGENT} PYTHON={python}\n"


def test_an_image_that_was_made_from_a_pin_is_built_again_without_it(make, run, docker: Path) -> None:
    """What has no label was made before there was one, and will do."""
    name = "org.opencontainers.image.base.name"
    for image, labels in ((AGENT, "null"), (REGISTRY, f'{{"{name}": "mirror.example/python:3.13-slim"}}')):
        (docker / image.rpartition("/")[2]).write_text(labels)
    assert run("build", "-f", str(make(ONE)))[0] == 0
    assert (docker / "log").read_text() == f"buildx build tag {REGISTRY}\n"
    (docker / "log").write_text("")
    (docker / REGISTRY.rpartition("/")[2]).write_text(f'{{"{name}": "python:3.13-slim"}}')
    assert run("build", "-f", str(make(ONE)))[0] == 0
    assert (docker / "log").read_text() == ""


def test_a_key_goes_into_no_image(make, run, docker: Path) -> None:
    file = str(make(ONE, fastagent__config__yaml="openai: {api_key: hunter2-hunter2}\n"))
    assert run("build", "-f", file)[0] == 0  # none of these images holds the project's files
    make(ONE, Dockerfile__fleet="FROM scratch\n")
    code, _, err = run("build", "-f", file)
    assert (code, "openai.api_key: a secret in plain text" in err) == (2, True)
    assert run("build", "-f", file, "--base")[0] == 0
    assert run("build", "-f", file, "--allow-plain-secrets")[0] == 0


def test_a_build_that_fails_ends_it_with_the_last_lines_of_docker_and_why(make, run, docker: Path) -> None:
    lines = 'i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo "line $i"; done; echo ERROR: no such base >&2'
    (docker / "docker").write_text(f"#!/bin/sh\n{lines}\nexit 1\n")
    code, out, err = run("build", "-f", str(make(ONE)))
    assert (code, out) == (1, f"building {AGENT}\n")
    assert err.splitlines() == [
        *(f"line {number}" for number in range(62, 101)),
        "ERROR: no such base",
        "to look into it by hand: `pallas-gen build --print` has the commands, the first writes what they build from",
        f"building {AGENT} failed:",
        "ERROR: no such base",
    ]


def test_a_push_that_fails_ends_it_with_its_command(make, run, docker: Path) -> None:
    for image in (AGENT, REGISTRY):
        (docker / image.rpartition("/")[2]).touch()
    script = (docker / "docker").read_text()
    (docker / "docker").write_text(f"{script}case $1 in push) echo denied; exit 1 ;; esac\n")
    code, _, err = run("build", "-f", str(make(ONE)), "--push")
    expected = f"denied\nthis failed: docker push --quiet {AGENT}\npushing {AGENT} failed\n"
    assert (code, err) == (1, expected)


def test_without_docker_it_says_what_there_is_instead(make, run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = run("build", "-f", str(make(ONE)))
    assert code == 1
    assert err.startswith("docker is not here. `-o DIR` writes the build context")


def test_without_the_tool_of_a_cluster_nothing_is_built(make, run, docker: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(docker))
    code, out, err = run("build", "-f", str(make(ONE)), "--load", "kind")
    assert (code, out) == (1, "")
    assert err.startswith("kind is not here; nothing was built. Install it, ")
    assert (docker / "log").read_text() == ""


def test_the_context_is_written_and_the_next_step_named(make, run, tmp_path: Path) -> None:
    code, out, _ = run("build", "-f", str(make(ONE)), "-o", str(tmp_path / "context"))
    assert (code, out.splitlines()[1]) == (0, f"next: pallas-gen build --print -o {tmp_path}/context")
    assert (tmp_path / "context" / "Dockerfile.agent").is_file()


def test_the_commands_are_printed_and_none_is_run(make, run, docker: Path) -> None:
    code, out, _ = run("build", "-f", str(make(ONE)), "--print", "--load", "k3d")
    assert code == 0
    assert out.splitlines()[0] == "pallas-gen build -o pallas-images"
    assert out.splitlines()[3] == f"k3d image import {AGENT}"
    assert (docker / "log").read_text() == ""


def test_a_bad_pattern_is_refused_with_or_without_a_fleet(make, run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PALLAS_IMAGES", "nothing")
    monkeypatch.chdir(tmp_path)
    expected = "$PALLAS_IMAGES: must be the name of an image with one `{name}`, such as ghcr.io/team/{name} or "
    assert run("build", "--base")[2].startswith(expected)
    code, _, err = run("compose", "-f", str(make(ONE)), "--stdout")
    assert (code, err.startswith(expected)) == (2, True)


def test_one_variable_names_the_images_of_every_target(make, run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PALLAS_IMAGES", "s.example/team/{name}:9")
    file = str(make(ONE))
    assert "image: s.example/team/pallas-agent:9\n" in run("compose", "-f", file, "--stdout")[1].replace('"', "")
    values = run("helm", "-f", file, "--stdout", "--values-only")[1]
    assert "repository: team/pallas-registry\n" in values
    assert "registry: s.example\n" in values
    assert "FROM s.example/team/pallas-agent:9\n" in run("image", "-f", file, "--stdout")[1]


def test_the_image_of_a_fleet_is_built_on_the_kits_own(make, run, docker: Path) -> None:
    for image in (AGENT, REGISTRY):
        (docker / image.rpartition("/")[2]).touch()
    code, out, err = run("build", "-f", str(make(ONE, requirements__txt="six\n")), "--push")
    assert (code, err) == (0, "")
    building, *others = out.splitlines()
    name = building.removeprefix("building ")
    assert name.startswith("r.example/x-agent:")
    assert f"pushing {name}" in others
    assert (docker / "log").read_text().splitlines()[0] == f"buildx build tag {name}"


def test_servers_without_a_lock_are_named_in_a_line_before_the_build(make, run, docker: Path) -> None:
    for image in (AGENT, REGISTRY):
        (docker / image.rpartition("/")[2]).touch()
    config = "mcp: {servers: {f: {command: uvx, args: [fetch]}}}\n"
    path = make(ONE, fastagent__config__yaml=config)
    advice, building, *_ = run("build", "-f", str(path))[1].splitlines()
    name = building.removeprefix("building ")
    what = "no servers.lock.json, so its MCP servers get the newest packages of today; `pallas-gen lock` pins them"
    assert advice == f"{name}: {what}"
    entry = '{"python fetch": {"requirements": ["fetch==1 --hash=sha256:aa"]}}'
    (path.parent / "servers.lock.json").write_text(f'{{"version": 1, "servers": {entry}}}')
    assert run("build", "-f", str(path))[1].startswith("building ")


def test_an_image_with_the_code_in_it_is_built_each_time(make, run, docker: Path, tmp_path: Path) -> None:
    path = make(ONE.replace("image: {names: 'r.example/{name}'}", "image: mine:1"))
    for image in ("mine:1", AGENT.rpartition("/")[2], REGISTRY.rpartition("/")[2]):
        (docker / image).touch()
    assert "mine:1" not in run("build", "-f", str(path))[1], "without a Dockerfile.fleet it is somebody else's"
    out = run("image", "-f", str(path))[1]
    assert out.splitlines()[1].startswith("next: pallas-gen build -f ")
    assert run("build", "-f", str(path))[1].splitlines()[0] == "building mine:1"


def test_the_context_holds_the_dockerfile_of_the_fleet(make, run, tmp_path: Path) -> None:
    run("build", "-f", str(make(ONE, requirements__txt="six\n")), "-o", str(tmp_path / "context"))
    text = (tmp_path / "context" / "Dockerfile.x-agent").read_text()
    assert f"\nFROM {AGENT}\nUSER root\n" in text
