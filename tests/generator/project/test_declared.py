"""The packages that a project says it needs."""

from __future__ import annotations

from pathlib import Path

from pallas_gen.project import declared


def test_names_of_both_files(tmp_path: Path) -> None:
    text = "# tools\npandas==2.2 \\\n    --hash=sha256:0\n-r more.txt\n\nMy.Lib[x]>=1\n"
    (tmp_path / "requirements.txt").write_text(text)
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["httpx>=0.28", "yarl"]\n')
    assert declared.packages(tmp_path) == {"pandas", "My.Lib", "httpx", "yarl"}


def test_files_that_cannot_be_read_name_nothing(tmp_path: Path) -> None:
    assert declared.packages(tmp_path) == frozenset()
    (tmp_path / "requirements.txt").write_bytes(b"\xff")
    (tmp_path / "pyproject.toml").write_text("[project\n")
    assert declared.packages(tmp_path) == frozenset()
    (tmp_path / "pyproject.toml").write_text("project = 1\n")
    assert declared.packages(tmp_path) == frozenset()
