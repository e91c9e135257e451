"""tools/machine docker starts a daemon with crun where it can be had and works, and else with what Docker has."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

TOOLS = ("awk", "bash", "cat", "chmod", "cp", "dirname", "mkdir", "rm", "seq", "setsid", "sleep", "tail", "touch")
STAND_INS = {
    "id": "echo 0",
    "apt-get": 'case "$*" in *install*crun*) [ ! -e packed ] || cp packed bin/crun ;; esac; [ -e packed ]',
    "apt-cache": "echo '  Candidate: 99'",
    "dpkg": "exit 0",
    "dockerd": 'echo "$*" > started',
    "systemctl": 'echo "systemctl $*" > started',
    "docker": 'case "$*" in "info"* | "version"*) [ -e started ] && echo 26.1.5 ;; esac',
    "mount": 'echo "$*" >> mounted; [ ! -e forbidden ]',
}


class Machine:
    """A PATH with what the script needs, and stand-ins for what it would change."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.root, self.groups = folder, root, folder / "cgroup"
        (folder / "os-release").write_text("ID=debian\n")
        for made in (folder / "bin", self.groups):
            made.mkdir()
        for tool in TOOLS:
            (folder / "bin" / tool).symlink_to(shutil.which(tool) or pytest.fail(f"{tool} is not here"))
        for name, text in STAND_INS.items():
            self.program(f"bin/{name}", f"cd {folder}\n{text}")

    def program(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def starts(self) -> list[str]:
        """What the daemon is started with."""
        places = {"CGROUPS": self.groups, "LOG": self.folder / "log", "SYSTEMD": self.folder / "systemd"}
        places["OS_RELEASE"] = self.folder / "os-release"
        env = {"PATH": str(self.folder / "bin"), **{name: str(path) for name, path in places.items()}}
        command = [str(self.root / "tools" / "machine"), "docker"]
        done = subprocess.run(command, check=False, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return (self.folder / "started").read_text().split()

    def crun(self) -> list[str]:
        """What the daemon is started with where it is to use crun."""
        return ["--add-runtime", f"crun={self.folder}/bin/crun", "--default-runtime", "crun"]


@pytest.fixture
def machine(tmp_path: Path, root: Path) -> Machine:
    return Machine(tmp_path, root)


def test_crun_is_installed_and_used(machine: Machine) -> None:
    machine.program("packed", "")
    assert machine.starts() == machine.crun()
    assert not (machine.folder / "mounted").exists()


def test_what_is_left_of_control_groups_of_version_2_goes_to_the_first(machine: Machine) -> None:
    machine.program("bin/crun", "")
    (machine.groups / "unified").mkdir()
    (machine.groups / "unified" / "cgroup.controllers").write_text("hugetlb misc\n")
    assert machine.starts() == machine.crun()
    mounted = (machine.folder / "mounted").read_text().splitlines()
    assert mounted == [f"-t cgroup -o {name} cgroup {machine.groups}/{name}" for name in ("hugetlb", "misc")]


def test_a_machine_that_forbids_it_keeps_its_runtime(machine: Machine) -> None:
    machine.program("bin/crun", "")
    (machine.groups / "unified").mkdir()
    (machine.groups / "unified" / "cgroup.controllers").write_text("hugetlb\n")
    (machine.folder / "forbidden").touch()
    assert machine.starts() == []


def test_a_machine_without_crun_keeps_its_runtime(machine: Machine) -> None:
    assert machine.starts() == []


def test_a_daemon_that_systemd_starts_keeps_its_runtime(machine: Machine) -> None:
    machine.program("bin/crun", "")
    (machine.folder / "systemd").mkdir()
    assert machine.starts() == ["systemctl", "start", "docker"]
