"""tools/venv takes a Python that runs all tests, where one is here or may be installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

TOOLS = (
    "awk",
    "bash",
    "cat",
    "chmod",
    "cp",
    "dirname",
    "grep",
    "ls",
    "mkdir",
    "rm",
    "sed",
    "sh",
    "tail",
    "touch",
    "wc",
)
PYTHON = """#!/bin/sh
case "$*" in
  *sqlite3*) exit {without} ;;
  "-m venv "*)
    mkdir -p "$4/bin" && cp "$0" "$4/bin/python" && echo {name} > "$4/made-by"
    printf '#!/bin/sh\\n' > "$4/bin/uv" && chmod +x "$4/bin/uv" ;;
esac
"""
APT = """#!/bin/sh
echo "$*" >> {log}
case "$*" in *install*) cp {ready} {there} ;; esac
"""


class Machine:
    """A PATH with what the script needs, and the interpreters that a test puts there."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.root, self.bin, self.log = folder, root, folder / "bin", folder / "apt.log"
        self.distribution = folder / "usr" / "python3.13"
        self.bin.mkdir()
        self.distribution.parent.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool) or pytest.fail(f"{tool} is not here"))
        self.program(self.bin / "id", "#!/bin/sh\necho 1000\n")

    def program(self, path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def python(self, path: Path, *, extensions: bool) -> Path:
        self.program(path, PYTHON.format(name=path, without=int(not extensions)))
        return path

    def belongs_to_root(self) -> None:
        """Have the user be root, and apt bring the distribution's interpreter."""
        self.program(self.bin / "id", "#!/bin/sh\necho 0\n")
        (self.folder / "os-release").write_text("ID=debian\n")
        self.program(self.bin / "apt-cache", "#!/bin/sh\necho '  Candidate: 99'\n")
        self.program(self.bin / "dpkg", "#!/bin/sh\n")
        ready = self.folder / "packed"
        self.program(ready, PYTHON.format(name=self.distribution, without=0))
        self.program(self.bin / "apt-get", APT.format(log=self.log, ready=ready, there=self.distribution))

    def run(self, **environ: str) -> tuple[Path, str]:
        """Return the interpreter that was taken, and what was said."""
        env = {"PATH": str(self.bin), "HOME": str(self.folder), "DISTRIBUTION": str(self.distribution), **environ}
        env["OS_RELEASE"] = str(self.folder / "os-release")
        command = [str(self.root / "tools" / "venv"), str(self.folder / "venv")]
        done = subprocess.run(command, check=False, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return Path((self.folder / "venv" / "made-by").read_text().strip()), done.stderr


@pytest.fixture
def machine(tmp_path: Path, root: Path) -> Machine:
    return Machine(tmp_path, root)


def test_the_distributions_comes_first(machine: Machine) -> None:
    machine.python(machine.bin / "python3.13", extensions=True)
    distribution = machine.python(machine.distribution, extensions=True)
    assert machine.run()[0] == distribution


def test_one_whose_sqlite_loads_no_extensions_is_passed_by(machine: Machine) -> None:
    machine.python(machine.bin / "python3.13", extensions=False)
    other = machine.python(machine.bin / "python3.14", extensions=True)
    assert machine.run() == (
        other,
        f"venv: {machine.folder}/venv from \nvenv: {machine.folder}/venv is ready: , 0 packages\n",
    )


def test_root_on_debian_has_another_installed(machine: Machine) -> None:
    machine.python(machine.bin / "python3.13", extensions=False)
    machine.belongs_to_root()
    assert machine.run()[0] == machine.distribution
    assert "python3.13-venv" in machine.log.read_text()


@pytest.mark.parametrize("variables", [{}, {"PYTHON": "python3.13"}], ids=["the only one", "asked for"])
def test_elsewhere_it_is_taken_and_what_it_lacks_is_said(machine: Machine, variables: dict[str, str]) -> None:
    only = machine.python(machine.bin / "python3.13", extensions=False)
    if variables:
        machine.python(machine.bin / "python3.14", extensions=True)
    taken, said = machine.run(**variables)
    assert taken == only
    assert "this Python's SQLite loads no extensions" in said
