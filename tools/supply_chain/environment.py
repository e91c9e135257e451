"""The programs that a release runs; those from packages have an environment of their own.

Their pins would hold back everybody else's.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = "requirements/release.lock"


def ready() -> Path:
    """Return the folder of the environment, made anew where the lock has changed.

    It is `$RELEASE_DIR`, by default `~/.cache/pallas-release`.

    Raises:
        subprocess.CalledProcessError: its packages cannot be had here.
    """
    folder = Path(os.environ.get("RELEASE_DIR") or Path.home() / ".cache" / "pallas-release")
    lock = ROOT / LOCK
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    mark = folder / ".ready"
    if not mark.is_file() or mark.read_text() != digest:
        uv = Path(sys.executable).with_name("uv")
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder], check=True)
        settings = {**os.environ, "VIRTUAL_ENV": str(folder), "UV_NO_PROGRESS": "1"}
        subprocess.run([uv, "pip", "sync", "--quiet", "--require-hashes", lock], check=True, env=settings)
        mark.write_text(digest)
    return folder


def output(*command: str, cwd: Path | None = None, **variables: str) -> str:
    """Return what a program prints that ends well; of one that does not, what it said goes to stderr.

    Raises:
        subprocess.CalledProcessError: it did not end well.
    """
    env = {**os.environ, **variables}
    done = subprocess.run(command, check=False, cwd=cwd, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stderr)
    done.check_returncode()
    return done.stdout
