"""Files of the user's: whole ones up to a limit, and nothing that a reader would wait or starve for."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from pallas_contract import limited_file
from pallas_contract.limited_file import TooLarge


def test_a_file_may_have_as_many_bytes_as_the_limit_and_none_more(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 8)
    assert limited_file.read(path, 8) == b"x" * 8
    with pytest.raises(TooLarge):
        limited_file.read(path, 7)


def test_a_huge_file_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.touch()
    os.truncate(path, 1 << 30)
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge, match="Larger than 1 MiB"):
            limited_file.read(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_file_without_a_size_is_read_and_limited_too() -> None:
    """As those that the kernel makes up, and any other that grows while it is read."""
    status = Path("/proc/self/status")
    assert status.stat().st_size == 0
    assert limited_file.text(status).startswith("Name:")
    with pytest.raises(TooLarge):
        limited_file.read(status, 4)


def test_links_are_followed_as_kubernetes_mounts_secrets(tmp_path: Path) -> None:
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..2026" / "token").write_text("sesame")
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "token").symlink_to("..data/token")
    assert limited_file.text(tmp_path / "token") == "sesame"


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="Not a regular file"):
            limited_file.read(path)
    with pytest.raises(IsADirectoryError):
        limited_file.read(tmp_path)
    with pytest.raises(FileNotFoundError):
        limited_file.read(tmp_path / "none")


def test_text_has_one_kind_of_line_ends(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n\xff")
    assert limited_file.text(tmp_path / "f", encoding="utf-8-sig", errors="replace") == "a\nb\nc\n\ufffd"
    with pytest.raises(UnicodeDecodeError):
        limited_file.text(tmp_path / "f")
