"""A first day with the kit: a project by `pallas init`, run by `up --watch`, asked, edited, added to, stopped."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.documentation import blocks
from tests.ports import free_port, free_ports

pytestmark = pytest.mark.slow

PALLAS = Path(sys.executable).with_name("pallas")
PATIENCE = 300.0
"""Seconds for what takes a few on a machine that has nothing else to do."""
PORTS = ("24200", "24201", "24202", "24210")


START, ASK = blocks.of("first-day")
"""How `docs/commands.md` runs that project, and asks it."""


@dataclass
class Project:
    folder: Path
    process: subprocess.Popen[bytes]
    ports: dict[str, str]
    """Those of the page, each with the one that is used instead."""
    output: Path
    """What the process prints."""
    seen: int = 0
    """How much of it has been waited for."""

    def pallas(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return end(self.folder, *words, stdin=stdin)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert old in text
        (self.folder / name).write_text(text.replace(old, new))

    def until[T](self, line: str, condition: Callable[[], T]) -> T:
        """Wait for a condition that commands look at: not before the process has printed `line`, which costs little.

        Returns what it was.
        """
        deadline = time.monotonic() + PATIENCE

        def wait(seconds: float) -> None:
            assert self.process.poll() is None, "pallas has ended"
            assert time.monotonic() < deadline, self.pallas("logs").stdout
            time.sleep(seconds)

        while (place := self.output.read_text().find(line, self.seen)) < 0:
            wait(0.1)
        self.seen = place + len(line)
        while not (met := condition()):
            wait(1.0)
        return met

    def state(self, agent: str) -> str | None:
        """Return the state of an agent as the registry has it; None while it is not listed, or nobody answers."""
        status = self.pallas("status", "--format", "json").stdout
        agents = json.loads(status)["agents"] if status else []
        return next((entry["status"] for entry in agents if entry["name"] == agent), None)

    def shell(self, text: str) -> subprocess.CompletedProcess[str]:
        """Run commands of a page as they stand, on this project's ports."""
        for old, new in self.ports.items():
            text = text.replace(old, new)
        environ = {**own_environ(), "PATH": f"{PALLAS.parent}{os.pathsep}{os.environ['PATH']}"}
        return subprocess.run(
            ["sh", "-ec", text],
            check=False,
            cwd=self.folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def logs(self, text: str) -> str:
        """Return what the process has logged if that holds `text`, else nothing."""
        logged = self.pallas("logs", "pallas").stdout
        return logged if text in logged else ""

    def answer(self, text: str) -> str:
        return self.pallas("call", "desk", text).stdout


def own_environ() -> dict[str, str]:
    """Return the environment without settings of another fleet."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PALLAS_", "OPENAI_"))}


def end(folder: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command of the kit as a user in that folder does."""
    command = [PALLAS, *words]
    return subprocess.run(
        command,
        check=False,
        cwd=folder,
        env=own_environ(),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """The project that `init` makes, on free ports, and up."""
    assert end(tmp_path, "init", "desk").returncode == 0
    folder = tmp_path / "desk"
    text = (folder / "agents.yaml").read_text()
    ports = dict(zip(PORTS, map(str, free_ports(4)), strict=True))
    for old, new in ports.items():
        text = text.replace(old, new)
    (folder / "agents.yaml").write_text(text)
    with (
        (tmp_path / "output").open("wb") as output,
        subprocess.Popen(
            [PALLAS, *shlex.split(START.text)[1:]],
            cwd=folder,
            env=own_environ(),
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        project = Project(folder, process, ports, tmp_path / "output")
        try:
            project.until("pallas   : all up", lambda: project.pallas("status").returncode == 0)
            yield project
        finally:
            process.terminate()
            process.wait(timeout=60)


def test_a_first_day(project: Project) -> None:
    assert "- count_words: 3 words\n" in project.answer("one two three")
    asked = project.shell(ASK.text)
    assert asked.returncode == 0, asked.stderr
    words, document, by_url = asked.stdout.split("The desk has asked its tools.", 3)[1:]
    assert words.startswith("\n- count_words: 5 words\n")
    assert asked.stdout.splitlines()[3].startswith('{"agent": "desk", "url": ')
    assert "- count_words: 3 words" in document
    assert by_url.startswith("\n- count_words: 5 words\n")
    talk = project.pallas("chat", "clerk", stdin="one\ntwo\n")
    assert talk.stdout == 'Noted: "one"\nNoted: "two"\n', talk.stderr

    logged = project.until("talk to it", lambda: project.logs("talk to it at http"))
    page = logged.partition("talk to it at ")[2].split()[0]
    listed = json.loads(httpx.get(f"{page}/agents.json", timeout=PATIENCE).text)
    assert (listed["fleet"], [agent["name"] for agent in listed["agents"]]) == ("desk", ["desk", "clerk"])

    project.edit("agents/desk.py", "{count} word", "counted {count} word")
    project.until("desk     : ready", lambda: "- count_words: counted 3 words\n" in project.answer("one two three"))

    assert project.pallas("add", "agent", "scout", "--port", str(free_port())).returncode == 0
    project.until("agent=scout code=Ok", lambda: project.state("scout") == "ok")

    registry = f"http://127.0.0.1:{project.ports['24200']}"
    locked = project.shell(f"pallas-gen lock --registry {registry} && pallas-gen lock --check --registry {registry}")
    assert locked.stdout == "wrote agents.lock\nagents.lock is what is here\n", locked.stderr
    project.edit("agents.lock", '"version": "', '"version": "9')
    project.until("drift: version", lambda: "drift: version" in project.pallas("status").stdout)

    project.edit("agents/desk.py", "from fast_agent", "import nosuchlib\nfrom fast_agent")
    assert "the edit is not taken over" in project.until("not taken over", lambda: project.logs("agents/desk.py:3"))
    assert "counted 1 word\n" in project.answer("one")
    assert {line.partition(" ")[0] for line in project.pallas("logs", "scout").stdout.splitlines()} == {"scout"}

    project.edit("agents.yaml", "name: desk", "name: [desk")
    broken = project.pallas("status")
    assert f"The fleet that runs is asked, at {registry}\n" in broken.stderr
    assert [line.split()[0] for line in broken.stdout.splitlines()[:3]] == ["NAME", "desk", "clerk"]
    project.edit("agents.yaml", "name: [desk", "name: desk")

    copy = project.folder.parent / "copy"
    shutil.copytree(project.folder, copy, ignore=shutil.ignore_patterns(".pallas"))
    assert "is that of another fleet of this name, whose fleet file is not" in end(copy, "status").stderr
    assert end(copy, "stop").stdout == "agents.yaml: this fleet does not run here\n"

    stopped = project.pallas("stop")
    assert stopped.stdout == "agents.yaml: stopped\n", stopped.stderr
    assert project.process.wait(timeout=60) == 0
    assert project.pallas("status").returncode == 1
