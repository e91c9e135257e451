"""The build context: what the repository's own build takes, byte for byte."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from pallas_gen.images import sources

ROOT = Path(__file__).parents[3]


def copied() -> set[str]:
    """Return what the two Dockerfiles copy from their context."""
    texts = [(ROOT / name).read_text() for name in ("Dockerfile.agent", "Dockerfile.registry")]
    lines = re.findall(r"^COPY (?!--from)(.*) \S+$", "\n".join(texts), re.MULTILINE)
    return {word for line in lines for word in line.split()}


def test_it_is_what_the_dockerfiles_copy_and_they_themselves() -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *copied()]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=300).stdout.split()
    files = {str(path): content for path, content in sources.context().items()}
    assert set(files) == {*listed, "Dockerfile.agent", "Dockerfile.registry"}
    assert all((ROOT / name).read_bytes() == content for name, content in files.items())


def test_it_is_written_where_a_build_finds_it(tmp_path: Path) -> None:
    sources.write(tmp_path / "new")
    assert (tmp_path / "new" / "contract" / "pallas_contract" / "names.py").is_file()
