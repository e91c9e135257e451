"""The wheel of this checkout, and environments that have it and nothing of the checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parent.parent


def end(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run to the end, however it ends."""
    return subprocess.run(list(map(str, command)), check=False, cwd=cwd, capture_output=True, text=True, timeout=300)


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Return what a command prints that ends well."""
    done = end(*command, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def build_wheel(folder: Path) -> Path:
    """Build it into `folder`."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    return next(folder.glob("*.whl"))


def installed_with(extra: str, wheel: Path, folder: Path) -> Path:
    """Install the wheel and one extra, in the versions of the locks, by uv: pip takes a second longer.

    Of the kit only what is used is compiled: 600 modules take a second of processor time, too.

    Returns the `bin` of the environment.
    """
    uv = Path(sys.executable).parent / "uv"
    pins = re.findall(r"^[A-Za-z0-9._-]+==[^ ;\\]+", (ROOT / "requirements" / "dev.lock").read_text(), re.MULTILINE)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(pins))
    python = folder / "venv" / "bin" / "python"
    run(uv, "venv", "-q", "--python", sys.executable, folder / "venv")
    run(uv, "pip", "install", "-q", "--python", python, "-c", constraints, f"{wheel}[{extra}]")
    run(uv, "pip", "check", "-q", "--python", python)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    share_bytecode(packages)
    return python.parent


def share_bytecode(packages: Path) -> None:
    """Give an environment what this one has compiled already, of files that are the same: uv links both to its cache.

    Compiling fast-agent and what it imports takes longer than all else that the tests do in such an environment.
    """
    ours = Path(sysconfig.get_path("purelib"))
    for compiled in ours.rglob("__pycache__/*.pyc"):
        source = compiled.parent.parent / f"{compiled.name.partition('.')[0]}.py"
        place = packages / source.relative_to(ours)
        with suppress(FileNotFoundError, FileExistsError):
            if source.samefile(place):
                target = place.parent / "__pycache__" / compiled.name
                target.parent.mkdir(exist_ok=True)
                os.link(compiled, target)
